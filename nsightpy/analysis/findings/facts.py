"""What the checks of `findings` look at: plain figures about devices and kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nsightpy.analysis.idle.causes import IdleCauses
from nsightpy.analysis.idle.launch_waits import LongLaunches
from nsightpy.analysis.idle.starvation import Starvation
from nsightpy.analysis.memory.copies import CopyTime
from nsightpy.analysis.tally import Statistics
from nsightpy.analysis.time_budget import TimeBudget

# A device that was busy for less than this part of the busiest one is not used.
UNUSED = 0.01


@dataclass(frozen=True, slots=True)
class TinyKernels:
    """Compute kernels of a few microseconds, and what they cost a device at most, in ns.

    `lost_ns` is their own time where nothing else ran, and the launch latency before them.
    """

    kernels: int
    of: int
    lost_ns: int


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


@dataclass(frozen=True, slots=True)
class Straggler:
    """The rank that the others wait for: how often it came last, what that cost them, in ns."""

    last_share: float
    caused_ns: int


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """One device of one rank: its budget, and why it was idle where the capture tells.

    `iterations` is how many the window holds, None where they are not known. Times in ns.
    """

    rank: int | None
    device: int
    budget: TimeBudget
    causes: IdleCauses | None = None
    starvation: Starvation | None = None
    launch_bound_kernels: int = 0
    launch_bound_idle_ns: int = 0
    long_launches: LongLaunches | None = None
    tiny: TinyKernels | None = None
    input_copies: CopyTime | None = None
    pageable: CopyTime | None = None
    unified: CopyTime | None = None
    slow_collectives: SlowCollectives | None = None
    straggler: Straggler | None = None
    iterations: int | None = None

    @property
    def name(self) -> str:
        return f"device {self.device}" if self.rank is None else f"rank {self.rank}"

    @property
    def span(self) -> str:
        """What the budget covers, as it is said to people."""
        if self.iterations is None:
            return f"{self.name}'s window"
        if self.iterations == 1:
            return f"{self.name}'s steady iteration"
        return f"{self.name}'s {self.iterations:,} steady iterations"


@dataclass(frozen=True)
class Facts:
    """What the checks look at. `problems` are those of the captures, each on one line.

    `report` and `options` are what a next command is about: files and the part of them.
    """

    devices: Sequence[DeviceFacts]
    kernels: Statistics
    report: str = "REPORT"
    problems: Sequence[str] = field(default_factory=tuple)
    unlaunched: int = 0
    options: str = ""
    has_ranges: bool = True
    has_collectives: bool = False
    notes: tuple[str, ...] = ()

    @property
    def window_ns(self) -> int:
        return sum(one.budget.window_ns for one in self.devices)

    @property
    def used(self) -> list[DeviceFacts]:
        """The devices that did material work: a context on another one is no starved device."""
        least = UNUSED * max((one.budget.busy_ns for one in self.devices), default=0)
        return [one for one in self.devices if one.budget.window_ns and one.budget.busy_ns > least]

    def command(self, verb: str, one: DeviceFacts | None = None, *, more: str = "") -> str:
        """The command line of a verb about these reports, or about one device among several."""
        parts = ["nsightpy", verb, self.report, more, self.options, self._only(one)]
        return " ".join(part for part in parts if part)

    def _only(self, one: DeviceFacts | None) -> str:
        if one is None or len(self.devices) < 2:
            return ""
        if one.rank is None:
            return f"--device {one.device}"
        alone = sum(other.rank == one.rank for other in self.devices) == 1
        return f"--rank {one.rank}" if alone else f"--rank {one.rank} --device {one.device}"
