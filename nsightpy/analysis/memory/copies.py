"""Copies by the kind of host memory that they touch, and rates that no hardware reaches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Frame, Labels
from nsightpy.results import Table, Value
from nsightpy.units import format_bytes, format_time, significant

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
MOST_NOTES = 3
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
    """The ranking of memory operations without rates beyond `fastest`, and notes on those.

    Every operation reads or writes device memory at least once, so none is faster than the
    fastest memory among the devices, in bytes per second; 0 where the capture does not say.
    """
    limit = fastest or BEYOND_ANY
    place = table.columns.index(_RATE)
    rows: list[tuple[Value, ...]] = []
    notes = []
    for row in table.rows:
        rate = row[place]
        if isinstance(rate, float) and rate * _GIGA > limit:
            notes.append(_note(dict(zip(table.columns, row, strict=True)), rate, fastest))
            rows.append((*row[:place], None, *row[place + 1 :]))
        else:
            rows.append(row)
    more = [f"{len(notes) - MOST_NOTES} more rows have no rate for the same reason."]
    shown = notes[:MOST_NOTES] + (more if len(notes) > MOST_NOTES else [])
    return replace(table, rows=tuple(rows), notes=(*table.notes, *shown))


def _note(row: dict[str, Value], rate: float, fastest: int) -> str:
    size = format_bytes(float(row["Total (MB)"] or 0) * 1e6)
    time = format_time(float(row["Total Time (ns)"] or 0))
    than = f"the GPU's memory ({fastest / _GIGA:,.0f} GB/s)" if fastest else "any GPU's memory"
    return (
        f"No rate for {str(row['Operation']).strip('[]')}: {size} in {time} would be "
        f"{significant(rate)} GB/s, beyond {than}; the recorded times do not cover the work."
    )
