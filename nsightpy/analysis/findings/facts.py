"""What the checks of `findings` look at: plain figures about devices and kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nsightpy.analysis.findings.copy_use import CopyUses
from nsightpy.analysis.findings.kernel_use import Gpu, KernelUse
from nsightpy.analysis.time_budget import UNUSED, TimeBudget
from nsightpy.results import Note, Said
from nsightpy.units import format_time

# What takes less of a window than this is no finding, and nothing is looked up for it.
LEAST_SHARE = 0.01
# A GPU window this short after the first API call is one of a start-up; where no calls tell when
# that was, one of less time than any start-up takes.
SHORT_SHARE = 0.2
MOMENT_NS = 1_000_000
# A steady state that is less than this part of the GPU's window is not what totals are about.
LEAST_STEADY = 0.25


# Commands whose figures are those of a finding where they are asked about its window.
WINDOWED = frozenset(
    (
        *("api", "breakdown", "collectives", "gaps", "kernels", "launches", "memory", "nvtx"),
        "ranks",
    )
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where to look: start in the report's own time and length, in ns."""

    start_ns: int
    duration_ns: int


@dataclass(frozen=True, slots=True)
class SlowCollectives:
    """Abnormal collectives of one rank: its time beyond their medians, and the worst of them.

    `called` and `cause` are for people: "Broadcast of 1.18 MB in 0-1", "it waited for rank 1".
    """

    instances: int
    lost_ns: int
    called: str
    duration_ns: int
    ratio: float
    cause: str
    worst: Place | None = None


@dataclass(frozen=True, slots=True)
class StragglerFact:
    """The rank that the others wait for: how often it came last, what that cost them, in ns.

    `times`: it came late so many times only; 0 where it is late as a rule. `worst`: the collective
    in which they waited longest, from the first arrival to its end.
    """

    last_share: float
    caused_ns: int
    times: int = 0
    worst: Place | None = None


@dataclass(frozen=True, slots=True)
class LongestGap:
    """The longest idle interval of a device: where, its main cause, and what the host did."""

    place: Place
    cause: str
    host: str


@dataclass(frozen=True)
class IdleFacts:
    """Why a device was idle, in ns by cause (work_graph.CAUSES), and where each cause is worst.

    There are no causes where they are not known. `run_ahead_lost_ns`: launch-bound time brought
    about by blocking calls, `put_off_ns`: host-gap time after them, `before_loading_ns`: until
    code was loaded. `overdue_ns`: what was launched 1 ms or more before it began, `ended_ns`: what
    comes after all that was launched. `beside`: most of host-gap lies in intervals that another
    cause has more of. `host` says for people what the host did in host gaps, `calls` which call
    each cause is mostly in. `blocked_by` is the blocking call in which most of the host gaps
    opened, if any did.
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
    """What is known of a device's iterations: how many steady ones, of what, and what is outside.

    `lead_ns` is the time from the process's first API call to the first operation on the device,
    None without calls, `loading_ns` the time since code was first loaded or the context made, by
    `loading_call`, to the begin of the steady iterations, or to that operation without any;
    `first_ns` is when that operation began, `whole_ns` the time from it to the end of the last one.
    """

    iterations: int | None = None
    source: str = ""
    outside: str = ""
    lead_ns: int | None = None
    loading_ns: int = 0
    loading_call: str = ""
    first_ns: int = 0
    whole_ns: int = 0


@dataclass(frozen=True)
class DeviceFacts:
    """One device of one rank: its budget in the window that is looked at, and why it was idle.

    Times are the report's own; `ahead_ns` more, they are moments on the clock of all ranks. `label`
    is what it is called where its rank says nothing. `in_graphs`: most kernels share their
    launching call with another one, as those of graphs do. `exposed`: the longest time of
    communication alone; `opaque`: the longest graph traced as a whole. `in_turn`: on how many
    streams copies and kernels ran and never two at a time.
    """

    rank: int | None
    device: int
    budget: TimeBudget
    gpu: Gpu = field(default_factory=Gpu)
    idle: IdleFacts = field(default_factory=IdleFacts)
    kernels: KernelUse = field(default_factory=KernelUse)
    short_cost_ns: int = 0
    in_graphs: bool = False
    copies: CopyUses = field(default_factory=CopyUses)
    exposed: Place | None = None
    opaque: Place | None = None
    in_turn: int = 0
    repetition: Repetition = field(default_factory=Repetition)
    slow_collectives: SlowCollectives | None = None
    straggler: StragglerFact | None = None
    ahead_ns: int = 0
    label: str = ""

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
    def short(self) -> bool:
        """Whether the device worked for a moment only, after a long start-up."""
        lead = self.repetition.lead_ns
        if lead is None:
            return self.whole_ns < MOMENT_NS
        return self.whole_ns < SHORT_SHARE * (self.whole_ns + lead)

    @property
    def mostly_steady(self) -> bool:
        """Whether a good part of what the device did is in its steady iterations."""
        return self.iterations is not None and self.window_share >= LEAST_STEADY

    @property
    def window_share(self) -> float:
        """The part of the time from the first to the last operation that the budget covers."""
        return self.budget.window_ns / max(self.whole_ns, 1)

    @property
    def whole_ns(self) -> int:
        """From the first to the last operation, in ns."""
        return max(self.repetition.whole_ns, self.budget.window_ns)

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

    def caused_ns(self, cause: str) -> int:
        """The idle time of one cause, in ns; 0 where causes are not known."""
        return self.idle.causes.get(cause, 0)


@dataclass(frozen=True)
class Facts:
    """What the checks look at. `problems` is what is said of the captures.

    `host` says what the threads of captures without GPU work did, as CPU samples show.
    `report` and `options` are what a next command is about: files and the part of them;
    `of_iterations`: that part is iterations already.
    """

    devices: Sequence[DeviceFacts]
    report: str = "REPORT"
    problems: Sequence[Note] = field(default_factory=tuple)
    kernels: int = 0
    unlaunched: int = 0
    options: str = ""
    of_iterations: bool = False
    has_ranges: bool = True
    has_collectives: bool = False
    notes: tuple[Said, ...] = ()
    has_calls: bool = True
    host: str = ""

    @property
    def window_ns(self) -> int:
        return sum(device.budget.window_ns for device in self.devices)

    @property
    def used(self) -> list[DeviceFacts]:
        """The devices that did material work: a context on another one is no starved device."""
        least = UNUSED * max((device.budget.busy_ns for device in self.devices), default=0)
        return [
            device
            for device in self.devices
            if device.budget.window_ns and device.budget.busy_ns > least
        ]

    def command(
        self,
        command: str,
        device: DeviceFacts | None = None,
        *,
        more: str = "",
        whole: bool = False,
    ) -> str:
        """The command line of a command about these reports, or about one device of several.

        It is about the window that findings speak of, or about the `whole` capture.
        """
        parts = ["nsightpy", command, self.report, more, self.options, self._only(device)]
        parts += [] if whole else self._steady(command)
        return " ".join(part for part in parts if part)

    def _steady(self, command: str) -> list[str]:
        """What narrows a command to the window that findings speak of."""
        steady = bool(self.used) and all(device.window == "steady" for device in self.used)
        narrowed = steady and command in WINDOWED and not self.of_iterations
        return ["--iteration steady"] if narrowed else []

    def _only(self, device: DeviceFacts | None) -> str:
        if device is None or len(self.devices) < 2:
            return ""
        if device.rank is None:
            return f"--device {device.device}"
        alone = sum(other.rank == device.rank for other in self.devices) == 1
        return (
            f"--rank {device.rank}" if alone else f"--rank {device.rank} --device {device.device}"
        )
