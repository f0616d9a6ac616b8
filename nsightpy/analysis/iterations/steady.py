"""Iterations of one process: where they are, by what evidence, which are steady, which are slow.

What the program calls its steps goes first; then other ranges that hold the work, where the order
of the launches does not contradict them; then that order alone. The steady state is the stretch
without warm-up and without what the profiler's start or stop cut.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.intervals import Spans, measure_before
from nsightpy.analysis.iterations.levels import NEVER, Level, owner_of, work_of
from nsightpy.analysis.iterations.steps import (
    RangeGroup,
    find_levels,
    level_that_user_named,
    range_groups,
)
from nsightpy.analysis.iterations.thresholds import (
    FEW,
    LISTED,
    LOOKED_AT,
    MOST_SLOW,
    REPEATS,
    SLOW_DEVIATIONS,
    SLOW_SHARE,
    SLOWER,
    USUALLY,
    WARMING,
)
from nsightpy.analysis.iterations.vocabulary import WAIT, Role
from nsightpy.analysis.thresholds import CLOSE, MOST
from nsightpy.analysis.time_budget import Activity
from nsightpy.frames import Frame, Ints
from nsightpy.results import Note, Said
from nsightpy.units import format_time

# What shows the steps of a program, in a report of nsys and in a PyTorch trace.
MARK_STEPS = (
    "An NVTX range around each step shows them.",
    "The profiler's step(), or a record_function around each step, shows them.",
)
WARM_UP, STEADY, EDGE = "warm-up", "steady", "edge"
# What a user chooses: numbers of iterations, or STEADY.
Chosen: TypeAlias = "frozenset[int] | str"


@dataclass(frozen=True)
class Iterations:
    """The iterations of one process, windows in ns of the report's own time.

    `phase` of each: warm-up, steady, or edge (cut off by the profiler's start or stop). Without
    any, `notes` say why. `levels`: all on which the process repeats; `level`: which of them the
    iterations are, counted from 1, 0 for none.
    """

    source: str = ""
    start: Ints = field(default_factory=lambda: NEVER)
    end: Ints = field(default_factory=lambda: NEVER)
    kernels: Ints = field(default_factory=lambda: NEVER)
    phase: tuple[str, ...] = ()
    notes: tuple[Said, ...] = ()
    levels: tuple[Level, ...] = ()
    level: int = 0

    def __len__(self) -> int:
        return len(self.start)

    @property
    def duration(self) -> Ints:
        """Lengths in ns."""
        return self.end - self.start

    @property
    def steady(self) -> Ints:
        """The places of the steady iterations, ascending."""
        return np.flatnonzero(np.asarray(self.phase) == STEADY)

    @property
    def others(self) -> list[Level]:
        """The levels that are not the iterations, those of most time first."""
        others = [level for number, level in enumerate(self.levels, 1) if number != self.level]
        return sorted(others, key=_time_of, reverse=True)


@dataclass(frozen=True, slots=True)
class SteadyState:
    """The steady part of a run: its time, and the iterations in it."""

    window: Spans
    count: int
    source: str
    median_ns: float


def find_iterations(
    launched: Frame,
    calls: Frame,
    ranges: Frame,
    host: Frame,
    *,
    named: Frame | None = None,
    text: str = "",
    first_ns: int = 0,
    level: int | None = None,
) -> Iterations:
    """The iterations of one process, from its frames.

    `launched`: start_ns, end_ns, pid, device, correlation_id, name of kernels and graphs; `calls`:
    start_ns, pid and correlation_id of those that launch, by start; `ranges`: RANGE_COLUMNS;
    `host`: start_ns and name of other calls, of which those count that wait for the GPU.
    `named`: the ranges that the user called iterations, as `text`; `level`: the level that the user
    chose. `first_ns`: when the process's first operation on a GPU began, copies among them.
    """
    if not launched.rows:
        return _none("no kernels and no graph launches")
    waits = host.ints("start_ns")[host.labels("name").where(WAIT.search)]
    work = work_of(launched, calls, waits, first_ns)
    if named is not None and (chosen := level_that_user_named(named, work, text)) is not None:
        return _phased(chosen, [])
    groups = range_groups(ranges)
    chosen, levels = find_levels(work, groups)
    listed, why = _listed(chosen, levels), _reason(levels)
    if level is not None:
        chosen = listed[level - 1] if level <= len(listed) else None
        why = f"there is no level {level} among {len(listed)} that repeat"
    if chosen is not None:
        return replace(
            _phased(chosen, groups), levels=tuple(listed), level=listed.index(chosen) + 1
        )
    if len(work) > LOOKED_AT:
        why += f" (looked for in the middle {LOOKED_AT:,} of {len(work):,} launches)"
    return _none(why, listed)


def _listed(chosen: Level | None, every: Sequence[Level]) -> list[Level]:
    """The chosen level and those with the most time, the shortest first; of equal ones one."""
    kept = [] if chosen is None else [chosen]
    for level in sorted(every, key=_time_of, reverse=True):
        near = (
            (level.role is None) == (other.role is None)
            and abs(level.period_ns - other.period_ns) <= CLOSE * level.period_ns
            for other in kept
        )
        if len(kept) < LISTED and not any(near):
            kept.append(level)
    return sorted(kept, key=lambda level: (level.period_ns, level.source))


def _time_of(level: Level) -> float:
    return len(level) * level.period_ns


def _reason(levels: Sequence[Level]) -> str:
    """Why nothing was chosen."""
    most = max((level for level in levels if level.why), key=_time_of, default=None)
    if most is None:
        return "nothing repeats through most of the run; --nvtx RANGE names what does"
    times = f"{len(most)} x {format_time(most.period_ns)}"
    return (
        f"what repeats is no step of the program: {most.source} ({times}): {most.why}; "
        "--nvtx RANGE names the steps"
    )


def steady_state(iterations: Iterations) -> SteadyState | None:
    """The steady stretch of a run; None where fewer than three iterations are steady."""
    steady = iterations.steady
    if len(steady) < REPEATS:
        return None
    start, end = int(iterations.start[steady[0]]), int(iterations.end[steady[-1]])
    median = float(np.median(iterations.duration[steady]))
    # the iterations of damaged times may have no length
    if end <= start:
        return None
    return SteadyState(Spans.of(start, end), len(steady), iterations.source, median)


def _phased(chosen: Level, groups: Sequence[RangeGroup]) -> Iterations:
    """The iterations of a level with the phase of each."""
    work = chosen.work
    compute = chosen.sums(np.where(is_communication(work.name), 0, work.spent))
    phase = np.full(len(chosen), STEADY, dtype=object)
    phase[_edges(chosen, compute)] = EDGE
    warm = np.zeros(len(chosen), dtype=np.bool_)
    for group in groups:
        if group.role is Role.WARM_UP:
            warm |= (owner_of(group.start, group.end, chosen.issued) >= 0) & (phase == STEADY)
    if not warm.all():
        phase[warm] = WARM_UP
    whole = np.flatnonzero(phase == STEADY)
    phase[whole[: _warming(chosen, compute, whole)]] = WARM_UP
    windows = (chosen.source, chosen.start, chosen.end, chosen.launches)
    return Iterations(*windows, tuple(phase.tolist()))


def _warming(chosen: Level, compute: Ints, whole: Ints) -> int:
    """How many of the first iterations last longer, or compute longer, than nearly all later ones.

    Later ones are the second half: a slow one among them that comes again is no warm-up. Of few
    iterations the usual spread is unknown, so that only much longer ones are taken for warm-up. A
    run that never settles has none.
    """
    if len(whole) < REPEATS:
        return 0
    slack = SLOWER if len(whole) >= FEW else CLOSE
    slow: NDArray[np.bool_] = np.zeros(len(whole), dtype=np.bool_)
    for figure in (chosen.end - chosen.start, compute):
        usual = float(np.quantile(figure[whole[len(whole) // 2 :]], USUALLY, method="higher"))
        slow |= figure[whole] > (1 + slack) * usual
    first = int(np.argmin(slow))
    return first if first <= max(REPEATS, WARMING * len(whole)) else 0


def _edges(chosen: Level, compute: Ints) -> list[int]:
    """The first and last iteration where they are no whole ones.

    They have too few launches, or compute less than half as long as the shortest of the others. Of
    three, the first is cut, too, when it lasts less than half as long: what lies before its first
    kernel is unknown.
    """
    usual, last = float(np.median(chosen.launches)), len(chosen) - 1
    least = MOST * int(compute[1:-1].min()) if last > 1 else 0.0
    lengths = chosen.end - chosen.start
    short = last + 1 == REPEATS and lengths[0] < MOST * int(lengths[1:].min())
    edges = [
        number
        for number in (0, last)
        if chosen.launches[number] < USUALLY * usual
        or compute[number] < least
        or (short and not number)
    ]
    return edges if len(chosen) > len(edges) else []


def _none(why: str, levels: Sequence[Level] = ()) -> Iterations:
    notes = (Note(f"No iterations found: {why}.", *MARK_STEPS),)
    return Iterations(notes=notes, levels=tuple(levels))


class SlowIteration(NamedTuple):
    """A steady iteration far above the median: which part grew most against it, by how many ns."""

    ratio: float
    iteration: int
    part: str
    grew_ns: int


def iteration_parts(iterations: Iterations, activity: Activity) -> dict[str, Ints]:
    """What each iteration is made of on one device, from what that did (sets of time), in ns."""

    def within(time: Spans) -> Ints:
        return measure_before(time, iterations.end) - measure_before(time, iterations.start)

    # compute has millions of intervals: the others, without it, are few
    compute, copies = within(activity.compute), within(activity.memory - activity.compute)
    exposed = within(activity.communication - activity.compute - activity.memory)
    idle = iterations.duration - compute - exposed - copies
    return {"compute": compute, "exposed communication": exposed, "copies": copies, "idle": idle}


def slow_iterations(steady: Ints, every: Ints, parts: Mapping[str, Ints]) -> list[SlowIteration]:
    """The slowest of the steady iterations (places) that stand out, slowest first.

    One stands out from 5 % and three standard deviations (4.45 median deviations) above the median.
    `every` are the lengths of all, `parts` what they are made of, in ns.
    """
    median = float(np.median(every[steady])) if len(steady) >= REPEATS else 0.0
    if not median:  # most begin and end at once: none is so many times as long
        return []
    deviation = float(np.median(np.abs(every[steady] - median)))
    slow = steady[every[steady] > median + max(SLOW_SHARE * median, SLOW_DEVIATIONS * deviation)]
    found = []
    for number in slow[np.argsort(-every[slow], kind="stable")][:MOST_SLOW].tolist():
        grew, part = max(
            (int(part[number] - np.median(part[steady])), name) for name, part in parts.items()
        )
        found.append(SlowIteration(float(every[number]) / median, number, part, grew))
    return found
