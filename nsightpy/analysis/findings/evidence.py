"""The evidence that rules judge: a row for each device, and one for all of a question's reports.

A row is made in one pass from the frames and the work graph of a report; times in ns, sizes in
bytes. What was not recorded is empty: no causes, no groups, None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nsightpy.analysis.findings.groups import NONE, Gpu, Group, Latency, Place
from nsightpy.analysis.findings.thresholds import (
    BEGUN,
    FEW_NAMES,
    LAUNCHES_BIND,
    MOMENT_NS,
    SHORT_SHARE,
    STARTUP_SHARE,
)
from nsightpy.analysis.overlap_cost import OverlapCost
from nsightpy.analysis.time_budget import UNUSED, TimeBudget
from nsightpy.results import Note, Said
from nsightpy.units import format_time


@dataclass(frozen=True, slots=True)
class LongestGap:
    """The longest idle interval of a device: where, its main cause, and what the host did."""

    place: Place
    cause: str
    host: str


@dataclass(frozen=True)
class Idle:
    """Why a device was idle: ns by cause (work_graph CAUSES), and where each cause is worst.

    `run_ahead_lost_ns`: launch-bound time brought about by blocking calls, `put_off_ns`: host-gap
    time after them, `before_loading_ns`: until code was loaded; `overdue_ns`: what was launched
    1 ms or more before it began, `ended_ns`: what comes after all that was launched. `beside`: most
    of host-gap lies in intervals that another cause has more of. `host` says for people what the
    host did in host gaps, `calls` which call each cause is mostly in, `blocked_by` the blocking
    call in which most of the host gaps opened.
    """

    causes: Mapping[str, int] = field(default_factory=dict)
    worst: Mapping[str, Place] = field(default_factory=dict)
    run_ahead_lost_ns: int = 0
    put_off_ns: int = 0
    before_loading_ns: int = 0
    overdue_ns: int = 0
    ended_ns: int = 0
    beside: bool = False
    drained: int = 0
    longest: LongestGap | None = None
    host: str = ""
    calls: Mapping[str, str] = field(default_factory=dict)
    blocked_by: str = ""


@dataclass(frozen=True)
class Repetition:
    """A device's steady iterations (None: not known), and what is outside of them.

    `first_ns` is when the first operation on the device began, `whole_ns` the time from it to the
    end of the last one. `lead_ns` is the time from the process's first API call to the first
    operation (None without calls), `loading_ns` that since code was first loaded or the context
    made, by `loading_call`, to the begin of the steady iterations, else to the first operation.
    `capture_ns` is how long the whole capture lasted, 0 where it does not say.
    """

    iterations: int | None = None
    outside: str = ""
    lead_ns: int | None = None
    loading_ns: int = 0
    loading_call: str = ""
    first_ns: int = 0
    whole_ns: int = 0
    capture_ns: int = 0


@dataclass(frozen=True, slots=True)
class SlowCollectives:
    """Abnormal collectives of one rank: its time beyond their medians, and the worst of them.

    `called` and `cause` are for people; `late` is the rank that most of it waited for, if any.
    """

    count: int
    lost_ns: int
    called: str
    duration_ns: int
    ratio: float
    cause: str
    worst: Place | None = None
    late: str = ""


@dataclass(frozen=True, slots=True)
class Straggler:
    """The rank that the others wait for: how often it came last, what that cost them, in ns.

    `times`: it came late so many times only; 0 where it is late as a rule. `worst`: the collective
    in which they waited longest. `slower_ns` is what its kernels take longer than the others'
    median, as far as that explains the cost, `ratio` that many times as long.
    """

    last_share: float
    caused_ns: int
    times: int = 0
    worst: Place | None = None
    slower_ns: int = 0
    ratio: float = 0.0


@dataclass(frozen=True, slots=True)
class Imbalance:
    """Compute of a device beyond the mean of several, as far as another one waits meanwhile."""

    beyond_ns: int
    ratio: float
    devices: int
    worst: Place | None = None


@dataclass(frozen=True, slots=True)
class SlowLink:
    """Large collectives of one group that are slow for its link, and what they took too long, ns.

    `called` is for people; rates in GB/s, that of the fastest one and that of the `link`.
    `measured`: the link's is that of nccl-tests.
    """

    called: str
    gb_per_s: float
    link: str
    link_gb_per_s: float
    lost_ns: int
    measured: bool = False


@dataclass(frozen=True)
class Evidence:
    """One device of one rank in its window: the steady iterations, or else the whole.

    Times are the report's own; `ahead_ns` more, they are moments on the clock of all ranks. `label`
    is what it is called where its rank says nothing. `short_ns` is what kernels under 10 us and the
    waits for their launches take, `begun_ns` when a tenth of the kernels' work was done, from the
    window's begin. `in_graphs`: most kernels share their launching call with another one;
    `directives`: most of the work is in regions of OpenMP or OpenACC; `overlap`: the kernel that
    loses most beside communication; `peak_bytes` the largest size of live memory (0: not
    recorded), of `memory_bytes`; `traced`: by PyTorch's
    profiler; `costly`: what the profiler adds to each operator, for people.
    """

    rank: int | None
    device: int
    budget: TimeBudget
    gpu: Gpu = field(default_factory=Gpu)
    idle: Idle = field(default_factory=Idle)
    groups: Mapping[str, Group] = field(default_factory=dict)
    names: int = 0
    latency: Mapping[str, Latency] = field(default_factory=dict)
    short_ns: int = 0
    begun_ns: int = 0
    in_graphs: bool = False
    directives: bool = False
    repetition: Repetition = field(default_factory=Repetition)
    overlap: OverlapCost | None = None
    peak_bytes: int = 0
    memory_bytes: int = 0
    slow: SlowCollectives | None = None
    link: SlowLink | None = None
    straggler: Straggler | None = None
    imbalance: Imbalance | None = None
    ahead_ns: int = 0
    label: str = ""
    has_ranges: bool = True
    traced: bool = False
    costly: str = ""

    def __getitem__(self, group: str) -> Group:
        return self.groups.get(group, NONE)

    def caused(self, cause: str) -> int:
        """The idle time of one cause, in ns; 0 where causes are not known."""
        return self.idle.causes.get(cause, 0)

    @property
    def window_ns(self) -> int:
        return self.budget.window_ns

    @property
    def iterations(self) -> int | None:
        """The steady iterations that the window holds; None where they are not known."""
        return self.repetition.iterations

    @property
    def name(self) -> str:
        return self.label or (f"device {self.device}" if self.rank is None else f"rank {self.rank}")

    @property
    def window(self) -> str:
        """What the budget covers, in a word: steady or whole."""
        return "whole" if self.iterations is None else "steady"

    @property
    def span(self) -> str:
        """What the budget covers, as it is said to people."""
        if self.iterations is None:
            return f"{self.name}'s window"
        if self.iterations == 1:
            return f"{self.name}'s steady iteration"
        return f"{self.name}'s {self.iterations:,} steady iterations"

    def per_iteration(self, time_ns: int) -> str:
        """What a time in the window is per iteration, in brackets; empty without iterations."""
        if not self.iterations:
            return ""
        return f" ({format_time(time_ns / self.iterations)} per iteration)"

    @property
    def whole_ns(self) -> int:
        """From the first to the last operation, in ns."""
        return max(self.repetition.whole_ns, self.budget.window_ns)

    @property
    def capture_ns(self) -> int:
        """From the begin of the capture, or the process's first call, to the end, in ns."""
        return max(self.repetition.capture_ns, self.whole_ns + (self.repetition.lead_ns or 0))

    @property
    def short(self) -> bool:
        """Whether the device worked for a moment only, after a long start-up."""
        lead = self.repetition.lead_ns
        if lead is None:
            return self.whole_ns < MOMENT_NS
        return self.whole_ns < SHORT_SHARE * (self.whole_ns + lead)

    @property
    def moment(self) -> bool:
        """Whether what it did may never be done again: one moment, and no iterations."""
        return self.short and self.iterations is None

    @property
    def waits_for_launches(self) -> bool:
        """Whether faster kernels would only wait longer for the next launch."""
        return self.caused("launch-bound") > LAUNCHES_BIND * self.window_ns

    @property
    def late_ns(self) -> int:
        """The time until a tenth of the kernels' work is done, and that takes no such time itself.

        0 where it is waiting.
        """
        waits = 2 * self.idle.overdue_ns >= self.begun_ns
        late = self.begun_ns - round(BEGUN * self["kernels"].work_ns)
        return 0 if waits or self.iterations is not None else max(late, 0)

    @property
    def startup_ns(self) -> int:
        """What of the capture is no steady work, where that is most of it; else 0."""
        useful = self.window_ns - self.late_ns
        outside = self.capture_ns - useful
        return outside if outside > STARTUP_SHARE * self.capture_ns else 0

    @property
    def startup(self) -> Place:
        """The longest stretch of what is no steady work."""
        first, begin = self.repetition.first_ns or self.budget.start_ns, self.budget.start_ns
        end = self.budget.end_ns
        lead = self.repetition.lead_ns or 0
        before = Place(first - lead, begin + self.late_ns - first + lead)
        after = Place(end, max(first + self.repetition.whole_ns - end, 0))
        return max(before, after, key=lambda place: place.duration_ns)

    @property
    def few_kernels(self) -> bool:
        """Whether one of its kernels has the most work whatever it does."""
        return self.names <= FEW_NAMES

    @property
    def unexplained_ns(self) -> int:
        """Idle time that no recorded call explains, in ns."""
        if not self.idle.causes:
            return self.budget.idle_ns
        return self.caused("unknown") - self.idle.ended_ns

    # Figures of sentences.

    @property
    def mean_kernel_ns(self) -> float:
        return self["kernels"].work_ns / max(self["kernels"].count, 1)

    @property
    def mean_collective_ns(self) -> float:
        return self["collectives"].work_ns / max(self["collectives"].count, 1)

    @property
    def each_compute(self) -> str:
        return self.per_iteration(self.budget.compute_ns)

    @property
    def top_latency(self) -> Latency:
        return self.latency[self["top"].name]


@dataclass(frozen=True)
class JobEvidence:
    """All reports of a question, and the files and options that a next command is about.

    `problems` is what is said of the captures; `unlaunched` of the `kernels` have no recorded
    launch. `host` says what the threads of captures without GPU work did, as CPU samples show;
    `is_part`: a stretch of the time was asked for, `of_iterations`: iterations were.
    """

    devices: Sequence[Evidence]
    report: str = "REPORT"
    problems: Sequence[Note] = field(default_factory=tuple)
    kernels: int = 0
    unlaunched: int = 0
    options: str = ""
    of_iterations: bool = False
    is_part: bool = False
    has_ranges: bool = True
    has_calls: bool = True
    has_collectives: bool = False
    host: str = ""
    notes: tuple[Said, ...] = ()

    @property
    def used(self) -> list[Evidence]:
        """The devices that did material work: a context on another one is no starved device."""
        least = UNUSED * max((row.budget.busy_ns for row in self.devices), default=0)
        return [row for row in self.devices if row.window_ns and row.budget.busy_ns > least]

    def texts(self, *kinds: str) -> list[str]:
        """What is said of the captures, of these kinds."""
        return [str(note).removesuffix(".") for note in self.problems if note.kind in kinds]
