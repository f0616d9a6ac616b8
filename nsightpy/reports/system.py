"""What commands ask of one report of a whole system, whatever kind of file it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeAlias, TypeVar

from nsightpy.frames import Frame
from nsightpy.frames.frame import blank
from nsightpy.readers.extent import Extent
from nsightpy.readers.host_calls import HostCalls
from nsightpy.readers.nsys.capture_start import CaptureStart
from nsightpy.readers.nsys.identity import Evidence
from nsightpy.readers.nsys.session import Session
from nsightpy.readers.nsys.threads import ThreadNames
from nsightpy.readers.nsys.windows import SCHEMAS as LISTED
from nsightpy.reports.owned_frames import OwnedFrames
from nsightpy.reports.system_frames import SystemFrames

T = TypeVar("T")
# Columns by frame.
Wanted: TypeAlias = Mapping[str, Sequence[str]]
Progress: TypeAlias = Callable[[float | None, str], None]


@dataclass(frozen=True)
class ReportFacts:
    """The little that is worth knowing about a report without opening it again."""

    pids: list[int]
    session: Session
    notes: list[str]
    evidence: list[Evidence] | None


class SystemReport(SystemFrames):
    """One report with GPU work and the host's calls: of Nsight Systems, or a PyTorch trace.

    Frames have the columns of `nsightpy.frames`, times in ns from the report's own zero.
    """

    kind: ClassVar[str]  # nsys or torch
    path: Path
    use_cache: bool
    threads: int | None = None  # that read one table at most; None: as many as pay
    # rank and evidence by process, once ranks were decided for a whole set
    ranks: dict[int, tuple[int | None, str]]
    _owned: OwnedFrames

    @property
    @abstractmethod
    def session(self) -> Session:
        """Host, versions, clocks and length of the capture."""

    @property
    @abstractmethod
    def capture_start(self) -> CaptureStart:
        """What began the capture, and how late that was."""

    @property
    @abstractmethod
    def tool_version(self) -> str:
        """The tool that captured; empty where it is not known."""

    @property
    @abstractmethod
    def pids(self) -> list[int]:
        """The processes with GPU work, ascending."""

    @property
    @abstractmethod
    def evidence(self) -> list[Evidence]:
        """What the report says about its rank or ranks, strongest first."""

    @property
    @abstractmethod
    def reading_bytes(self) -> int:
        """Memory that reading it takes at most, estimated from the size of the file."""

    @property
    @abstractmethod
    def facts(self) -> ReportFacts:
        """What another process needs that has to do with the same report."""

    @abstractmethod
    def adopt(self, facts: ReportFacts) -> None:
        """Take over what another process found out; this one then need not open the file."""

    @property
    @abstractmethod
    def notes(self) -> list[str]:
        """What a reader of any figure of this report must know."""

    @property
    @abstractmethod
    def calls(self) -> HostCalls:
        """The API calls, a few columns at a time."""

    @property
    @abstractmethod
    def extent(self) -> Extent:
        """Where and when the GPU work was."""

    @property
    @abstractmethod
    def has_memory_usage(self) -> bool:
        """Whether allocations were recorded."""

    @abstractmethod
    def frame(self, name: str, columns: Sequence[str] | None = None) -> Frame:
        """A frame, or only the wanted columns of it; its rows do not depend on the columns."""

    @abstractmethod
    def rank_of(self, pid: int) -> tuple[int | None, str]:
        """The rank of a process and the evidence for it; None where unknown."""

    @abstractmethod
    def bounds(self, *, gpu: bool) -> tuple[int, int] | None:
        """First start and last end of the host's events, and of the GPU's; None without any."""

    def stretches(
        self, wanted: Wanted, low_ns: int | None, high_ns: int | None
    ) -> Iterator[dict[str, list[Frame]]]:
        """The wanted columns of some frames, a stretch of time after the other, from first to last.

        A stretch holds the rows that start in it. What surely lies after high_ns, or before low_ns,
        may be left out. Columns that the report does not have are not known.
        """
        yield {name: [self._known(name, columns)] for name, columns in wanted.items()}

    def _known(self, name: str, columns: Sequence[str]) -> Frame:
        known = self.frame(name)
        absent = {c: blank(LISTED[name][c], known.rows) for c in columns if c not in known}
        return Frame({c: known[c] if c in known else absent[c] for c in columns})

    @property
    def threads_named(self) -> ThreadNames:
        """Priority and name of threads by process and thread, where the report tells them."""
        return {}

    def derived(self, key: Hashable, make: Callable[[], T]) -> T:
        """What a question made of the frames: made once, kept until the report is closed."""
        return self._owned.derived(key, make)

    @abstractmethod
    def close(self) -> None:
        """Let go of the file and of what was read; what is asked next opens it again."""
