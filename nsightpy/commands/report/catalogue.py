"""The sections of the page in their order: a command each, with options of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nsightpy.command_table import COMMANDS
from nsightpy.results import Finding

MOST_ROWS = 100
MOMENTS = 240


@dataclass(frozen=True, eq=False)
class Entry:
    """A section: the command that answers it with these of its own options.

    `rows` of its table are shown at most, 0: only the picture; `keeps` of them even where the page
    is too large.
    """

    id: str
    title: str
    name: str = ""
    own: Mapping[str, Any] = field(default_factory=dict)
    rows: int = MOST_ROWS
    keeps: int = 0

    @property
    def command(self) -> Any:
        """The command itself."""
        return COMMANDS[self.name or self.id].load()

    @property
    def asked(self) -> dict[str, Any]:
        """What it is asked with, as people ask."""
        return {**self.command.for_people, **self.own}

    @property
    def words(self) -> tuple[str, ...]:
        """Its own options as they are typed."""
        typed = ((self.command.own[name].typed, value) for name, value in self.own.items())
        return tuple(option if value is True else f"{option} {value}" for option, value in typed)


BREAKDOWN = Entry("breakdown", "Where the time went", rows=256, keeps=128)
TIMELINE = Entry("timeline", "Timeline")
INSTANCES = Entry("instances", "The kernel with the most time")
ROOFLINE = Entry("roofline", "Rooflines (Nsight Compute)", own={"by": "variant"})
HEADROOM = Entry("headroom", "What there is to gain")
MEMORY_USAGE = Entry("memory-usage", "Allocated memory")
SELECT = Entry("select", "Kernels to measure")
CAPTURE = Entry("capture", "About the capture", "info")
ENTRIES = (
    BREAKDOWN,
    TIMELINE,
    Entry("utilization", "Utilization over time", "breakdown", {"bins": MOMENTS}, rows=0),
    Entry("iterations", "Iterations"),
    Entry("ranks", "Ranks", rows=256, keeps=128),
    Entry("collectives", "Collectives"),
    Entry("imbalance", "Kernels by rank", "ranks", {"by": "kernel"}),
    Entry("kernels", "Kernels"),
    Entry("categories", "Kernels by what they compute", "kernels", {"by": "category"}),
    Entry("lines", "Kernels by line of the program", "kernels", {"by": "line"}),
    HEADROOM,
    ROOFLINE,
    INSTANCES,
    Entry("operators", "PyTorch operators"),
    Entry("modules", "Modules", "operators", {"by": "module"}),
    Entry("nvtx", "Code ranges"),
    Entry("metrics", "GPU metrics of code ranges", "nvtx", {"metrics": True}),
    Entry("gaps", "Why devices were idle"),
    Entry("intervals", "Longest idle intervals", "gaps", {"by": "gap"}),
    Entry("waits", "Synchronising calls", "gaps", {"by": "call"}),
    Entry("launches", "Launches"),
    Entry("queues", "Launch queues", "launches", {"by": "stream"}),
    Entry("graphs", "CUDA graphs"),
    Entry("api", "CUDA API calls"),
    Entry("memory", "Copies and memory sets", own={"by": "memory"}),
    MEMORY_USAGE,
    CAPTURE,
)


def section_of_finding(finding: Finding) -> str:
    """The section that answers a finding's next command; what no section answers is the capture."""
    words = finding.next_command.split()
    alike = [entry for entry in ENTRIES if (entry.name or entry.id) in words[1:2]]
    exact = [entry for entry in alike if all(str(value) in words for value in entry.own.values())]
    return next((entry.id for entry in (*exact, *alike)), CAPTURE.id)
