"""What commands ask of one report of a whole system, whatever kind of file it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from nsightpy.frames import Frame
from nsightpy.readers.extent import Extent
from nsightpy.readers.host_calls import HostCalls
from nsightpy.readers.nsys.capture_start import CaptureStart
from nsightpy.readers.nsys.identity import Evidence
from nsightpy.readers.nsys.session import Session


class SystemReport(Protocol):
    """One report with GPU work and the host's calls: of Nsight Systems, or a PyTorch trace.

    Frames have the columns of `nsightpy.frames`, times in ns from the report's own zero.
    """

    path: Path
    use_cache: bool
    ranks: dict[int, tuple[int | None, str]]
    """Rank and evidence by process, once ranks were decided for a whole set."""

    @property
    def kind(self) -> str:
        """nsys or torch."""

    @property
    def session(self) -> Session:
        """Host, versions, clocks and length of the capture."""

    @property
    def capture_start(self) -> CaptureStart:
        """What began the capture, and how late that was."""

    @property
    def tool_version(self) -> str:
        """The tool that captured; empty where it is not known."""

    @property
    def pids(self) -> list[int]:
        """The processes with GPU work, ascending."""

    @property
    def evidence(self) -> list[Evidence]:
        """What the report says about its rank or ranks, strongest first."""

    @property
    def notes(self) -> list[str]:
        """What a reader of any figure of this report must know."""

    @property
    def calls(self) -> HostCalls:
        """The API calls, a few columns at a time."""

    @property
    def extent(self) -> Extent:
        """Where and when the GPU work was."""

    @property
    def has_memory_usage(self) -> bool:
        """Whether allocations were recorded."""

    def frame(self, name: str, columns: Sequence[str] | None = None) -> Frame:
        """A frame, or only the wanted columns of it."""

    def rank_of(self, pid: int) -> tuple[int | None, str]:
        """The rank of a process and the evidence for it; None where nothing tells."""

    def bounds(self, *, gpu: bool) -> tuple[int, int] | None:
        """First start and last end of the host's events, and of the GPU's; None without any."""

    def add_note(self, note: str) -> None:
        """Add what a reader of the figures must know, found out later."""

    def close(self) -> None:
        """Let go of the file; what is asked next opens it again."""
