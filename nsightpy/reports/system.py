"""What commands ask of one report of a whole system, whatever kind of file it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from nsightpy.frames import EVERY_SCHEMA, GPU_FRAMES, Frame, Labels
from nsightpy.readers.activity import Extent, HostCalls, bounds_of, extent_of_frames
from nsightpy.readers.export.nsys_export import Progress
from nsightpy.readers.limits import available_memory
from nsightpy.readers.nsys.capture import Capture
from nsightpy.readers.nsys.identity import Evidence, decide_ranks, evidence, evidence_for
from nsightpy.readers.nsys.session import Session
from nsightpy.readers.tools.file_check import file_size
from nsightpy.reports.one_file import OneFile
from nsightpy.results import Note
from nsightpy.store.cache import COLUMNS, cache_folder, entry_name, session_folder
from nsightpy.store.column_file import Rows
from nsightpy.store.store import FrameSource, Store

T = TypeVar("T")
# Columns by frame.
Wanted: TypeAlias = Mapping[str, Sequence[str]]

HOST_FRAMES = ("api_calls", "nvtx_ranges", "operators")
# Sizes of grids and blocks are made of their axes.
_SIZES = {
    name: tuple(f"{shape}_{axis}" for axis in "xyz")
    for name, shape in (("blocks", "grid"), ("threads", "block"))
}
# Rows of more than LARGE_ROWS are passed on PART_ROWS at a time.
LARGE_ROWS = 1 << 20
PART_ROWS = 1 << 16

# Changes whenever what is imported, or how it is kept, does.
LAYOUT = "columns 12"
# Smaller reports are imported again as fast.
LEAST_BYTES = 256 * 1024
# Without the cache, memory holds what is this part of it at most.
_MEMORY_PART = 8
_STEM = "report"


class SystemReport(OneFile, ABC):
    """One report with GPU work and the host's calls: of Nsight Systems, or a PyTorch trace.

    Frames have the columns of `nsightpy.frames`, times in ns from the report's own zero.
    """

    kind: ClassVar[str]  # nsys or torch
    schemas = EVERY_SCHEMA

    def __init__(
        self,
        path: Path | str,
        *,
        use_cache: bool = True,
        rank_regex: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(path)
        self.use_cache = use_cache
        self.rank_regex = rank_regex
        # rank and evidence by process, once ranks were decided for a whole set
        self.ranks: dict[int, tuple[int | None, str]] = {}
        self._progress = progress
        self._derived: dict[Hashable, Any] = {}
        # as another process found them
        self._notes: list[Note] | None = None

    def __getstate__(self) -> dict[str, object]:
        """What another process needs to open the same report: no connections, no frames."""
        fresh = type(self)(self.path, use_cache=self.use_cache, rank_regex=self.rank_regex)
        return {**fresh.__dict__, "ranks": self.ranks}

    @cached_property
    def capture(self) -> Capture:
        """What the report says of its capture."""
        return self.store.facts(Capture, self._read_capture)

    @abstractmethod
    def _read_capture(self) -> Capture: ...

    @cached_property
    def session(self) -> Session:
        """Host, versions, clocks and length of the capture."""
        return self.capture.session

    @cached_property
    def pids(self) -> list[int]:
        """The processes with GPU work, ascending; without any, those of the host."""
        return self.capture.pids

    @cached_property
    def evidence(self) -> list[Evidence]:
        """What the report says about its rank or ranks, strongest first."""
        recorded = (self.capture.ranks, self.capture.launched)
        return evidence(*recorded, self.path.name, self.pids, self.rank_regex)

    @property
    def notes(self) -> list[Note]:
        """What a reader of any figure of this report must know."""
        if self._notes is not None:
            return list(self._notes)
        # which table says something first is chance
        own = map(Note, filter(None, [self.store.problem, *sorted(self.store.notes)]))
        return [*map(Note, self._input_notes), *self.capture.notes, *own]

    @property
    def _input_notes(self) -> Sequence[str]:
        """Where the report was read from, if not from its own file."""
        return ()

    @property
    def facts(self) -> dict[str, Any]:
        known = {"evidence": self.evidence} if "evidence" in self.__dict__ else {}
        return {"pids": self.pids, "session": self.session, "_notes": self.notes, **known}

    def rank_of(self, pid: int) -> tuple[int | None, str]:
        """The rank of a process and the evidence for it; None where unknown."""
        if not self.ranks:
            by_process = {
                (str(self.path), pid): evidence_for(self.evidence, pid) for pid in self.pids
            }
            self.ranks = {pid: rank for (_, pid), rank in decide_ranks(by_process).items()}
        return self.ranks.get(pid, (None, ""))

    def _processes(self) -> Frame:
        names = self.capture.processes
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
    def tool_version(self) -> str:
        """The tool that captured; empty where it is not known."""
        return self.capture.tool_version

    @property
    def calls(self) -> HostCalls:
        """The API calls, a few columns at a time; all those of a trace count as launching."""
        return HostCalls(partial(self._part, "api_calls"), every=self.kind == "torch")

    @property
    def extent(self) -> Extent:
        """Where and when the GPU work was."""
        columns = ("start_ns", "end_ns", "pid", "device")
        work = [self.frame(name, columns) for name in GPU_FRAMES]
        return extent_of_frames(work[0].rows, work)

    def bounds(self) -> tuple[int, int] | None:
        """First start and last end of the host's events, and of the GPU's; None without any."""
        names = (*GPU_FRAMES, *HOST_FRAMES)
        return bounds_of(self.frame(name, ("start_ns", "end_ns")) for name in names)

    @property
    def has_memory_usage(self) -> bool:
        """Whether allocations were recorded."""
        return self.frame("memory_usage", ("start_ns",)).rows > 0

    def frame(self, name: str, columns: Sequence[str] | None = None) -> Frame:
        """A frame, or only the wanted columns of it, in nsightpy's own columnar form.

        Its rows and their order do not depend on the columns. Each column is imported once.
        """
        if name == "processes":
            whole = self._processes()
            return whole if columns is None else whole.select(columns)
        return self._part(name, columns)

    def started_between(self, name: str, columns: Sequence[str], low: int, high: int) -> Frame:
        """The wanted columns of what starts from one moment until before another, in ns."""
        starts = self.frame(name, ("start_ns",)).ints("start_ns")
        return self._part(name, columns, (starts >= low) & (starts < high))

    def _part(self, name: str, columns: Sequence[str] | None, rows: Rows | None = None) -> Frame:
        """Some rows of a frame, which lie in the order of its frame. Raises KeyError."""
        schema = self.schema_of(name)
        source = self._source(name)
        if source is None:
            return Frame.empty(schema, columns)
        wanted = tuple(columns or schema.names)
        sizes = _SIZES if name == "kernels" else {}
        needed = dict.fromkeys(axis for column in wanted for axis in sizes.get(column, (column,)))
        stored = self.store.frame(source, tuple(needed), rows)
        if needed.keys() >= set(wanted):
            return stored
        computed = {
            column: reduce(np.multiply, map(stored.ints, sizes[column]))
            for column in wanted
            if column in sizes
        }
        return Frame({**stored, **computed}).select(wanted)

    @abstractmethod
    def _source(self, name: str) -> FrameSource | None:
        """How a frame is imported; None for one that such a report cannot have."""

    @cached_property
    def store(self) -> Store:
        """The columns of the report that were imported so far."""
        return Store(_store_folder(self._stored_as, use_cache=self.use_cache))

    @property
    def _stored_as(self) -> Path:
        """The file that columns are imported from."""
        return self.path

    def stretches(self, wanted: Wanted, high_ns: int | None) -> Iterator[dict[str, Frame]]:
        """The wanted columns of some frames, a stretch of time after the other, from first to last.

        A stretch holds the rows that start in it. What lies after high_ns may be left out.
        """
        starts = {name: self.frame(name, ("start_ns",)).ints("start_ns") for name in wanted}
        most = max(starts.values(), key=len)
        edges = np.unique(most[PART_ROWS::PART_ROWS])
        cuts = {
            name: [0, *np.searchsorted(times, edges).tolist(), len(times)]
            for name, times in starts.items()
        }
        for part in range(len(edges) + 1):
            if part and high_ns is not None and edges[part - 1] >= high_ns:
                return
            yield {
                name: self._part(name, columns, slice(*cuts[name][part : part + 2]))
                for name, columns in wanted.items()
            }

    def parts(self, name: str) -> Iterator[Frame]:
        """The rows of a frame one part after the other, for who only passes them on."""
        first = next(iter(EVERY_SCHEMA[name].names))
        rows = self.frame(name, (first,)).rows
        if rows <= LARGE_ROWS or self._source(name) is None:
            yield self.frame(name)
            return
        for low in range(0, rows, PART_ROWS):
            part = self._part(name, None, slice(low, low + PART_ROWS))
            used = {n: d.used() if isinstance(d, Labels) else d for n, d in part.items()}
            yield Frame(used)

    def derived(self, key: Hashable, make: Callable[[], T]) -> T:
        """What a question made of the frames: made once, kept until the report is closed."""
        if key not in self._derived:
            self._derived[key] = make()
        value: T = self._derived[key]
        return value

    def close(self) -> None:
        """Let go of the file and of what was read; what is asked next opens it again."""
        self._derived.clear()
        if "store" in self.__dict__:
            self.store.close()


def _store_folder(path: Path, *, use_cache: bool) -> Path | None:
    """Where the columns of a file are kept; None for memory: of small files, and without a cache,
    where those of large files last as long as the process."""
    size = file_size(path)
    free = None if use_cache else available_memory()
    if size < LEAST_BYTES or not (use_cache or (free is not None and size >= free // _MEMORY_PART)):
        return None  # nothing is read of a pipe, which has no size
    try:
        name = entry_name(path, LAYOUT, kind=COLUMNS, stem=_STEM)
    except OSError:  # who reads it says so
        return None
    return (cache_folder() if use_cache else session_folder()) / name
