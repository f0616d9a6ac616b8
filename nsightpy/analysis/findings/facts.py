"""What the checks of `findings` look at: plain figures about devices and kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nsightpy.analysis.findings.outliers import SlowCollectives
from nsightpy.analysis.idle.causes import IdleCauses
from nsightpy.analysis.idle.starvation import Starvation
from nsightpy.analysis.memory.copies import CopyTime
from nsightpy.analysis.tally import Statistics
from nsightpy.analysis.time_budget import TimeBudget


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
    input_copies: CopyTime | None = None
    pageable: CopyTime | None = None
    unified: CopyTime | None = None
    slow_collectives: SlowCollectives | None = None
    iterations: int | None = None

    @property
    def name(self) -> str:
        return f"device {self.device}" if self.rank is None else f"rank {self.rank}"

    @property
    def span(self) -> str:
        """What the budget covers, as it is said to people."""
        if self.iterations is None:
            return f"{self.name}'s window"
        return f"{self.name}'s {self.iterations} steady iterations"


@dataclass(frozen=True)
class Facts:
    """What the checks look at. `problems` are those of the captures, each on one line."""

    devices: Sequence[DeviceFacts]
    kernels: Statistics
    report: str = "REPORT"
    problems: Sequence[str] = field(default_factory=tuple)
    unlaunched: int = 0

    @property
    def window_ns(self) -> int:
        return sum(one.budget.window_ns for one in self.devices)
