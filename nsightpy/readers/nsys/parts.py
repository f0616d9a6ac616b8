"""A frame of many rows in parts: some ten thousand rows at a time, in the order of the frame.

nsys writes a table nearly in the order of time, so that little has to wait for rows that come later
in the file and begin earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from nsightpy.frames import Frame, Labels
from nsightpy.readers.nsys.countable import summed_notes
from nsightpy.readers.nsys.events import KERNEL, MEMCPY, MEMSET, RUNTIME
from nsightpy.readers.nsys.host_tables import LIBRARY_TABLES, OSRT, SAMPLES
from nsightpy.readers.nsys.memory import FAULT_TABLES, MEMORY_USAGE
from nsightpy.readers.nsys.metrics import GPU_SAMPLES
from nsightpy.readers.nsys.nvtx import NVTX
from nsightpy.readers.nsys.streams import CUDA_EVENT, SYNCHRONIZATION
from nsightpy.readers.nsys.tables import MPI_TABLES, NsysExport

Reader: TypeAlias = Callable[[NsysExport, Sequence[str]], Frame]

# The tables of the frames that may have many rows.
TABLES: Mapping[str, Sequence[str]] = {
    "kernels": (KERNEL,),
    "memory_operations": (MEMCPY, MEMSET),
    "api_calls": (RUNTIME,),
    "nvtx_ranges": (NVTX,),
    "synchronizations": (SYNCHRONIZATION,),
    "cuda_events": (CUDA_EVENT,),
    "memory_usage": (MEMORY_USAGE,),
    "mpi_calls": MPI_TABLES,
    "library_calls": tuple(LIBRARY_TABLES),
    "page_faults": FAULT_TABLES,
    "os_calls": (OSRT,),
    "gpu_metrics": (GPU_SAMPLES,),
    "cpu_samples": (SAMPLES,),
}
BLOCK_ROWS = 1 << 16
# Row numbers for each row, on average, of tables that are read in blocks.
MOST_GAPS = 4
_POSITION = "position"


def are_many(export: NsysExport, name: str, rows: int) -> bool:
    """Whether a frame may have so many rows and can be read in parts: tables have row numbers."""
    counts = [_rows_and_numbers(export, table) for table in TABLES.get(name, ())]
    dense = all(numbers <= MOST_GAPS * (counted + BLOCK_ROWS) for counted, numbers in counts)
    return bool(counts) and dense and sum(counted for counted, _ in counts) >= rows


def _rows_and_numbers(export: NsysExport, table: str) -> tuple[int, int]:
    """How many rows a table has, and how many row numbers they span (a view has none)."""
    if not export.holds_rows(table):
        return 0, 0
    bounds = export.file.row_bounds(table)
    return export.count(table), 2**63 if bounds is None else bounds[1] + 1 - bounds[0]


def in_parts(
    export: NsysExport, name: str, reader: Reader, columns: Sequence[str], order: str | None
) -> Iterator[Frame]:
    """The rows of a frame of `are_many` rows as its reader gives them, by the column `order`.

    Without an order they come as in the file.
    """
    blocks = list(_blocks(export, TABLES[name]))
    notes: list[str] = []
    firsts: list[int] = []
    if order is not None:
        blocks, firsts = _by_first(export, blocks, reader, order)
    waiting: Frame | None = None
    for place, block in enumerate(blocks):
        part = block.of(export)
        read = reader(part, columns)
        notes += part.notes
        if order is None:
            yield read
            continue
        rows = Frame({**read, _POSITION: block.position + np.arange(read.rows, dtype=np.int64)})
        rows = rows if waiting is None else Frame.concatenate([waiting, rows])
        times = rows.ints(order)
        now = np.lexsort((rows.ints(_POSITION), times))
        last = place + 1 == len(blocks)
        count = len(now) if last else int(np.searchsorted(times[now], firsts[place + 1]))
        waiting = _used(rows.take(now[count:]))
        yield rows.take(now[:count]).select(columns)
    for note in summed_notes(notes):
        export.notes[note] = None


@dataclass(frozen=True, slots=True)
class _Block:
    """The rows low to high - 1 of a table; `others` are the frame's other tables.

    `position` numbers the first of them in the order of the files.
    """

    table: str
    low: int
    high: int
    others: frozenset[str]
    position: int

    def of(self, export: NsysExport) -> NsysExport:
        """The export with these rows alone."""
        return export.part(self.table, self.low, self.high, without=self.others)


def _blocks(export: NsysExport, tables: Sequence[str]) -> Iterator[_Block]:
    """The blocks of tables, in the order of the file."""
    count = 0
    for table in filter(export.holds_rows, tables):
        first, last = export.file.row_bounds(table) or (0, -1)
        edges = [*range(first, last + 1, BLOCK_ROWS), last + 1]
        for low, high in pairwise(edges):
            yield _Block(table, low, high, frozenset(tables) - {table}, count * BLOCK_ROWS)
            count += 1


def _by_first(
    export: NsysExport, blocks: Sequence[_Block], reader: Reader, order: str
) -> tuple[list[_Block], list[int]]:
    """The blocks that have rows, by the first time in them, and those times."""
    firsts = []
    for place, block in enumerate(blocks):
        times = reader(block.of(export), (order,)).ints(order)
        if len(times):
            firsts.append((int(times.min()), place))
    firsts.sort()
    return [blocks[place] for _, place in firsts], [first for first, _ in firsts]


def _used(frame: Frame) -> Frame:
    """The rows without names that only others have."""
    return Frame(
        {name: data.used() if isinstance(data, Labels) else data for name, data in frame.items()}
    )
