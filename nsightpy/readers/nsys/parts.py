"""A frame of many rows in parts: some ten thousand rows at a time, in the order of the frame.

nsys writes a table nearly in the order of time, so that little has to wait for rows that come later
in the file and begin earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from nsightpy.frames import Frame, Labels
from nsightpy.readers.nsys import cpu_samples, gpu_metrics, page_faults
from nsightpy.readers.nsys.countable import summed_notes
from nsightpy.readers.nsys.events import KERNEL, MEMCPY, MEMSET, RUNTIME
from nsightpy.readers.nsys.host_tables import LIBRARY_TABLES, OSRT
from nsightpy.readers.nsys.memory_usage import MEMORY_USAGE
from nsightpy.readers.nsys.nvtx import NVTX
from nsightpy.readers.nsys.streams import CUDA_EVENT, SYNCHRONIZATION
from nsightpy.readers.nsys.table_names import MPI_TABLES
from nsightpy.readers.nsys.tables import NsysExport

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
    "page_faults": page_faults.TABLES,
    "os_calls": (OSRT,),
    "gpu_metrics": (gpu_metrics.SAMPLES,),
    "cpu_samples": (cpu_samples.SAMPLES,),
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
    if order is None:
        for block in blocks:
            yield reader(block, columns)
    else:
        yield from _by_time(blocks, reader, columns, order)
    for note in summed_notes([note for block in blocks for note in block.notes]):
        export.notes[note] = None


def _blocks(export: NsysExport, tables: Sequence[str]) -> Iterator[NsysExport]:
    """The export with some ten thousand rows of one of these tables at a time, in file order."""
    for table in filter(export.holds_rows, tables):
        first, last = export.file.row_bounds(table) or (0, -1)
        edges = [*range(first, last + 1, BLOCK_ROWS), last + 1]
        others = frozenset(tables) - {table}
        for low, high in pairwise(edges):
            yield export.part(table, low, high, without=others)


def _by_time(
    blocks: Sequence[NsysExport], reader: Reader, columns: Sequence[str], order: str
) -> Iterator[Frame]:
    """The rows of blocks by time, those of one time in the order of the file."""
    starts: list[tuple[int, int]] = []
    for place, block in enumerate(blocks):
        times = reader(block, (order,)).ints(order)
        if len(times):
            starts.append((int(times.min()), place))
        block.notes.clear()
    starts.sort()
    asked = tuple(dict.fromkeys((*columns, order)))
    waiting: Frame | None = None
    for place, following in zip([p for _, p in starts], [*starts[1:], None], strict=False):
        read = reader(blocks[place], asked)
        position = place * BLOCK_ROWS + np.arange(read.rows, dtype=np.int64)
        read = Frame({**read, _POSITION: position})
        rows = read if waiting is None else Frame.concatenate([waiting, read])
        times = rows.ints(order)
        now = np.lexsort((rows.ints(_POSITION), times))
        count = len(now)
        if following is not None:
            count = int(np.searchsorted(times[now], following[0]))
        waiting = _used(rows.take(now[count:]))
        yield rows.take(now[:count]).select(columns)


def _used(frame: Frame) -> Frame:
    """The rows without names that only others have."""
    return Frame(
        {name: data.used() if isinstance(data, Labels) else data for name, data in frame.items()}
    )
