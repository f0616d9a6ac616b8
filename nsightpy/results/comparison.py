"""What a comparison of runs hands to renderers: quantities on both sides, and what to make of them.

The table that it is has the columns of the command line; more than they say is in the fields.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from nsightpy.results.keys import Value
from nsightpy.results.run_summary import RunSummary
from nsightpy.results.tables import Field, Table

SLOWER, FASTER, SAME, CANNOT_TELL = "slower", "faster", "same", "cannot tell"
NEW, GONE = "new", "gone"
# What a name before and one after are taken for the same by, and what became of it.
FULL_NAME, BASE_NAME, ORDER = "full name", "name without arguments", "order of launches"
COMPARE_FIELDS = (
    Field("name", "name", importance=1),
    Field("before_ns", "time", importance=4),
    Field("after_ns", "time", importance=5),
    Field("delta_ns", "time", importance=2),
    Field("ratio", "ratio", 4, importance=6),
    Field("before_n"),
    Field("after_n"),
    Field("verdict", "text", own=True, importance=3),
    Field("section", "text", own=True),
    Field("ratio_low", "ratio", 4, importance=7),
    Field("ratio_high", "ratio", 4, importance=8),
    Field("p_value", "ratio", 4),
    Field("matched_by", "text", own=True),
)
# How far one launch that ncu measured lies from the median of its kernel and grid: 12 % at most in
# captures of ncu that repeat launches (24 of a stencil on six V100, GEMM on A10G and A100).
LAUNCH_SPREAD = 0.15
# What is less than this part of the unit is no change of a part of it.
LEAST_SHARE = 0.001


@dataclass(frozen=True, slots=True)
class Limits:
    """What a change must pass to be one: `relative` of the time before (0.03 is 3 %), and ns."""

    relative: float = 0.01
    absolute_ns: int = 1_000

    def at(self, before_ns: float) -> float:
        """What a change of this time must pass, in ns: both limits."""
        return max(self.relative * before_ns, float(self.absolute_ns))


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """The runs of one side. `baseline` is the file that they come from, where they do."""

    runs: tuple[RunSummary, ...]
    baseline: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(run.name for run in self.runs)


@dataclass(frozen=True, slots=True)
class ComparedQuantity:
    """One time per unit on both sides, in ns; None where a side has none of it.

    section: step, time (a part of the step), kernel, collective, range or category (of kernels).
    `before_runs` and `after_runs` are the values of the single runs. Counts are launches per unit,
    and the two deltas add up to the change. The interval of the ratio is at 95 %, or what single
    launches of ncu may be off by; `p_value` is None below four runs a side. `runs_needed` runs a
    side would tell, where the verdict is that one cannot.
    `before_name` is what a kernel, collective or range is called before; `communicates` marks
    kernels. `figures`: name, before, after of what ncu measured.
    """

    name: str
    section: str
    before_ns: int | None
    after_ns: int | None
    before_runs: tuple[int, ...] = ()
    after_runs: tuple[int, ...] = ()
    before_count: float | None = None
    after_count: float | None = None
    delta_from_count_ns: int | None = None
    delta_from_duration_ns: int | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    p_value: float | None = None
    verdict: str = CANNOT_TELL
    runs_needed: int | None = None
    matched_by: str = ""
    before_name: str = ""
    communicates: bool = False
    figures: tuple[tuple[str, float | None, float | None], ...] = ()

    @property
    def delta_ns(self) -> int:
        """The change of the time per unit; what a side lacks takes no time."""
        return (self.after_ns or 0) - (self.before_ns or 0)

    @property
    def ratio(self) -> float | None:
        """After by before; None where there is nothing to divide by."""
        if not self.before_ns or self.after_ns is None:
            return None
        return self.after_ns / self.before_ns

    @property
    def row(self) -> tuple[Value, ...]:
        """Under COMPARE_FIELDS."""
        counts = {"before_n": len(self.before_runs), "after_n": len(self.after_runs)}
        names = (field.name for field in COMPARE_FIELDS)
        return tuple(counts[name] if name in counts else getattr(self, name) for name in names)


@dataclass(frozen=True, slots=True)
class CircumstanceDifference:
    """Something that the sides ran on or with, and that is not the same."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """Whether a gate held: `reason` says why in one sentence. `on`: the name of the quantity."""

    limits: Limits
    on: str
    strict: bool
    verdict: str
    failed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """A against A: how far runs of the same thing lie apart.

    Halves of the runs differ by `relative` and `absolute_ns` at most (95 % of them).
    """

    relative: float
    absolute_ns: int
    runs: int


@dataclass(frozen=True, repr=False)
class Comparison(Table):
    """Two sides of runs, in `unit` (step, window, launch).

    The changes of `parts` add up to that of `step`. Kernels, collectives, ranges and categories of
    kernels come with the greatest change first. `spread` says what intervals are made of: runs,
    steps or nothing. Of each of these `top` are shown, all where it is None.
    """

    before: ComparedSide = field(default_factory=lambda: ComparedSide(()))
    after: ComparedSide = field(default_factory=lambda: ComparedSide(()))
    unit: str = "step"
    step: ComparedQuantity = field(default_factory=lambda: ComparedQuantity("step", "step", 0, 0))
    parts: tuple[ComparedQuantity, ...] = ()
    kernels: tuple[ComparedQuantity, ...] = ()
    collectives: tuple[ComparedQuantity, ...] = ()
    ranges: tuple[ComparedQuantity, ...] = ()
    categories: tuple[ComparedQuantity, ...] = ()
    circumstances: tuple[CircumstanceDifference, ...] = ()
    limits: Limits = field(default_factory=Limits)
    spread: str = "runs"
    gate: GateOutcome | None = None
    noise: NoiseFloor | None = None
    next_steps: tuple[tuple[str, str], ...] = ()
    top: int | None = None

    @property
    def quantities(self) -> tuple[ComparedQuantity, ...]:
        """Everything compared, in the order of the rows."""
        return replace(self, top=None).shown

    @property
    def limit_ns(self) -> float:
        """What a change of the step must pass to be one."""
        return self.limits.at(self.step.before_ns or 0)

    def cut(self, top: int | None) -> Comparison:
        """The same with so many rows of each section shown; None: with all."""
        cut = replace(self, top=top, total_rows=None if top is None else len(self.quantities))
        return replace(cut, rows=tuple(quantity.row for quantity in cut.shown))

    @property
    def shown(self) -> tuple[ComparedQuantity, ...]:
        """What the rows are about: the step, its parts, the first `top` of each section."""
        sections = (self.kernels, self.collectives, self.ranges, self.categories)
        return (self.step, *self.parts, *(row for rows in sections for row in rows[: self.top]))

    def members(self) -> dict[str, Any]:
        """What the rows do not say: unit, circumstances, limits, gate, noise, matching."""
        return {
            "unit": self.unit,
            "spread": self.spread,
            "limits": asdict(self.limits),
            "circumstances": [asdict(circumstance) for circumstance in self.circumstances],
            "gate": None if self.gate is None else asdict(self.gate),
            "noise": None if self.noise is None else asdict(self.noise),
            "runs_needed": self.step.runs_needed,
            "details": [asdict(quantity) for quantity in self.shown],
            "next_steps": [{"command": command, "why": why} for command, why in self.next_steps],
        }
