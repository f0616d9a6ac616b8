"""A frame of many rows in parts: some ten thousand rows at a time, in the order of the frame.

nsys writes a table nearly in the order of time, so that little has to wait for rows that come later
in the file and begin earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from nsightpy.frames import SCHEMAS, Frame, Labels
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
    export: NsysExport, name: str, reader: Reader, columns: Sequence[str], order: str
) -> Iterator[Frame]:
    """The rows of a frame of `are_many` rows by the column `order`, those of one time as always."""
    notes: list[str] = []
    blocks, firsts = _by_first(export, _blocks(export, TABLES[name]), reader, order)
    waiting = Frame.empty(SCHEMAS[name], columns)
    for block, end in zip(blocks, [*firsts[1:], None], strict=False):
        part = block.of(export)
        rows = Frame.concatenate([waiting, reader(part, columns)]).ordered(order)
        notes += part.notes
        count = rows.rows if end is None else int(np.searchsorted(rows.ints(order), end))
        waiting = _used(rows.take(np.arange(count, rows.rows)))
        yield rows.take(np.arange(count))
    for note in summed_notes(notes):
        export.notes[note] = None


@dataclass(frozen=True, slots=True)
class _Block:
    """The rows low to high - 1 of a table; `others` are the frame's other tables."""

    table: str
    low: int
    high: int
    others: frozenset[str]

    def of(self, export: NsysExport) -> NsysExport:
        """The export with these rows alone."""
        return export.part(self.table, self.low, self.high, without=self.others)


def _blocks(export: NsysExport, tables: Sequence[str]) -> Iterator[_Block]:
    """The blocks of tables, in the order of the file."""
    for table in filter(export.holds_rows, tables):
        first, last = export.file.row_bounds(table) or (0, -1)
        edges = [*range(first, last + 1, BLOCK_ROWS), last + 1]
        for low, high in pairwise(edges):
            yield _Block(table, low, high, frozenset(tables) - {table})


def _by_first(
    export: NsysExport, blocks: Iterable[_Block], reader: Reader, order: str
) -> tuple[list[_Block], list[int]]:
    """The blocks that have rows, by the first time in them, and those times."""
    found = []
    for block in blocks:
        times = reader(block.of(export), (order,)).ints(order)
        if len(times):
            found.append((int(times.min()), block))
    found.sort(key=itemgetter(0))
    return [block for _, block in found], [first for first, _ in found]


def _used(frame: Frame) -> Frame:
    """The rows without names that only others have."""
    return Frame(
        {name: data.used() if isinstance(data, Labels) else data for name, data in frame.items()}
    )
