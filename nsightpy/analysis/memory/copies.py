"""Copies by the kind of host memory that they touch, and rates that no hardware reaches."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Frame, Labels
from nsightpy.results import Table

PAGEABLE, PINNED, MANAGED = "pageable", "pinned", "managed"
UNIFIED = "[CUDA memcpy Unified "
# Below this, latency is the larger part of a copy on any link, and pageable memory is not staged.
SMALL_BYTES = 16_384
SETS = "[CUDA memset]"
DIRECTIONS = {
    "h2d": ("[CUDA memcpy Host-to-Device]", "[CUDA memcpy Host-to-Array]"),
    "d2h": ("[CUDA memcpy Device-to-Host]", "[CUDA memcpy Array-to-Host]"),
    "d2d": (
        "[CUDA memcpy Device-to-Device]",
        "[CUDA memcpy Peer-to-Peer]",
        "[CUDA memcpy Device-to-Array]",
        "[CUDA memcpy Array-to-Device]",
        SETS,
    ),
}
# Faster than the memory of any GPU, in bytes per second: for captures that do not describe theirs.
BEYOND_ANY = 25_000_000_000_000
_RATE = "throughput_gb_per_s"
_GIGA = 1e9


def host_memory(operations: Frame) -> Labels:
    """The kind of host memory that each operation touches: pageable, pinned, managed or none."""
    source, target = operations.labels("source_memory"), operations.labels("target_memory")
    kinds = (PAGEABLE, PINNED, MANAGED)
    codes = np.zeros(operations.rows, dtype=np.int32)
    for code, names in ((3, ("Managed", "Managed Static")), (2, ("Pinned",)), (1, ("Pageable",))):
        codes[source.equals(names) | target.equals(names)] = code
    return Labels(codes, ("", *kinds))


def large(operations: Frame) -> NDArray[np.bool_]:
    """Which memory operations are of 16 KiB or more; those of unknown size are no small ones."""
    size = operations.ints("bytes")
    mask: NDArray[np.bool_] = (size >= SMALL_BYTES) | (size < 0)
    return mask


def believable(table: Table, fastest: int) -> Table:
    """The ranking of memory operations without rates beyond `fastest`, and a note on those.

    Every operation reads or writes device memory at least once, so none is faster than the
    fastest memory among the devices, in bytes per second; 0 where the capture does not say.
    """
    limit, at = (fastest or BEYOND_ANY) / _GIGA, table.columns.index(_RATE)
    rows = tuple(
        (*row[:at], None, *row[at + 1 :]) if float(row[at] or 0) > limit else row
        for row in table.rows
    )
    if rows == table.rows:
        return table
    whose = f"the GPU's memory ({limit:,.0f} GB/s)" if fastest else "any GPU's memory"
    note = f"No rate where it would be beyond {whose}: the recorded times do not cover the work."
    return replace(table, rows=rows, notes=(*table.notes, note))
