"""What commands ask of one report of a whole system, whatever kind of file it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, TypeAlias, TypeVar

import numpy as np

from nsightpy.frames import Frame, Labels
from nsightpy.frames.frame import blank
from nsightpy.readers.extent import Extent
from nsightpy.readers.host_calls import HostCalls
from nsightpy.readers.nsys.capture_start import CaptureStart
from nsightpy.readers.nsys.identity import Evidence, decide_ranks, evidence_for
from nsightpy.readers.nsys.session import Session
from nsightpy.readers.nsys.threads import ThreadNames
from nsightpy.readers.nsys.windows import SCHEMAS as LISTED
from nsightpy.reports.owned_frames import OwnedFrames
from nsightpy.reports.presentation import SystemFrames

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
    earlier_cycles = 0  # traces of the same process that were left out

    def __init__(
        self,
        path: Path | str,
        *,
        use_cache: bool = True,
        rank_regex: str | None = None,
        progress: Progress | None = None,
        threads: int | None = None,
    ) -> None:
        self.path = Path(path)
        self.use_cache = use_cache
        self.rank_regex = rank_regex
        self.threads = threads  # that read one table at most; None: as many as pay
        # rank and evidence by process, once ranks were decided for a whole set
        self.ranks: dict[int, tuple[int | None, str]] = {}
        self._progress = progress
        self._owned = OwnedFrames()
        self._adopted_notes: list[str] | None = None
        self._prepare()

    def _prepare(self) -> None:
        """Import what reading takes long to import: processes that are forked then share it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def __getstate__(self) -> dict[str, object]:
        """What another process needs to open the same report: no connections, no frames."""
        fresh = type(self)(
            self.path,
            use_cache=self.use_cache,
            rank_regex=self.rank_regex,
            threads=self.threads,
        )
        return {**fresh.__dict__, "ranks": self.ranks}

    @cached_property
    def session(self) -> Session:
        """Host, versions, clocks and length of the capture."""
        return self._read_session()

    @cached_property
    def pids(self) -> list[int]:
        """The processes with GPU work, ascending."""
        return self._read_pids()

    @cached_property
    def evidence(self) -> list[Evidence]:
        """What the report says about its rank or ranks, strongest first."""
        return self._read_evidence()

    @property
    def notes(self) -> list[str]:
        """What a reader of any figure of this report must know."""
        return self._read_notes() if self._adopted_notes is None else list(self._adopted_notes)

    @property
    def facts(self) -> ReportFacts:
        """What this process knows and another one needs that has to do with the same report."""
        return ReportFacts(self.pids, self.session, self.notes, self.__dict__.get("evidence"))

    def adopt(self, facts: ReportFacts) -> None:
        """Take over what another process found out; this one then need not open the file."""
        self.pids, self.session = facts.pids, facts.session
        self._adopted_notes = facts.notes
        if facts.evidence is not None:
            self.evidence = facts.evidence

    def rank_of(self, pid: int) -> tuple[int | None, str]:
        """The rank of a process and the evidence for it; None where unknown."""
        if not self.ranks:
            by_process = {
                (str(self.path), pid): evidence_for(self.evidence, pid) for pid in self.pids
            }
            self.ranks = {pid: rank for (_, pid), rank in decide_ranks(by_process).items()}
        return self.ranks.get(pid, (None, ""))

    @abstractmethod
    def _read_session(self) -> Session: ...

    @abstractmethod
    def _read_pids(self) -> list[int]: ...

    @abstractmethod
    def _read_evidence(self) -> list[Evidence]: ...

    @abstractmethod
    def _read_notes(self) -> list[str]: ...

    @abstractmethod
    def _process_names(self) -> Mapping[int, str]:
        """The name of a process by its id, where it is known."""

    def _processes(self) -> Frame:
        names = self._process_names()
        ranks = [self.rank_of(pid) for pid in self.pids]
        return Frame(
            {
                "pid": np.asarray(self.pids, dtype=np.int64),
                "name": Labels.of(names.get(pid, "") for pid in self.pids),
                "rank": np.asarray([-1 if r is None else r for r, _ in ranks], dtype=np.int64),
                "rank_source": Labels.of(source for _, source in ranks),
            }
        )

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
    def reading_bytes(self) -> int:
        """Memory that reading it takes at most, estimated from the size of the file."""

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

    def parts(self, name: str) -> Iterator[Frame]:
        """The rows of a frame one part after the other, for who only passes them on."""
        yield self.frame(name)

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

    @contextmanager
    def held(self) -> Iterator[None]:
        """What is read in this process meanwhile stays for the next question, though it closes."""
        self._owned.are_held = True
        try:
            yield
        finally:
            self._owned.are_held = False
            self.close()

    @abstractmethod
    def close(self) -> None:
        """Let go of the file and of what was read; what is asked next opens it again."""
