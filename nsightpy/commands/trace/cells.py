"""What listings are made of: rows in time order, batch by batch, and columns as their cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nsightpy.frames import SCHEMAS, Frame, Ints, Labels
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport, Wanted
from nsightpy.results import Value

MEGA = 10**6
NS_PER_S = 10**9
BATCH_ROWS = 1 << 16
# Times of one process (pid) of the report, on the clock of all ranks.
Clock = Callable[[int, Ints], Ints]


@dataclass(frozen=True)
class Place:
    """A report, and how times of its processes become those that are shown."""

    report: SystemReport
    clock: Clock

    def times(self, frame: Frame, values: Ints) -> list[Value]:
        """Times (ns) of the rows of a frame, each of its process, as they are shown."""
        shown = np.array(values)
        pids = frame.ints("pid")
        for pid in np.unique(pids).tolist():
            rows = pids == pid
            shown[rows] = self.clock(pid, shown[rows])
        return listed(shown)

    def correlations(self, frame: Frame) -> list[Value]:
        """Correlation ids, as nsys lists them; what a trace does not write is not known."""
        ids = frame.ints("correlation_id")
        return positive(ids) if self.report.kind == "torch" else listed(ids)


def listed(values: Any) -> list[Value]:
    """An array as plain numbers."""
    cells: list[Value] = values.tolist()
    return cells


def texts(labels: Labels) -> list[Value]:
    """Names row by row; the empty one is not known."""
    names: list[Value] = [value or None for value in labels.values]
    return [names[code] for code in labels.codes.tolist()]


def megabytes(sizes: Ints) -> list[Value]:
    """Bytes as MB = 10^6 bytes; below 0 they are not known."""
    return [None if size < 0 else size / MEGA for size in sizes.tolist()]


def positive(values: Ints) -> list[Value]:
    """Numbers, where 0 means none."""
    return [value or None for value in values.tolist()]


def absent(rows: int) -> list[Value]:
    return [None] * rows


def throughputs(sizes: Ints, lengths: Ints) -> list[Value]:
    """MB/s as nsys counts them: bytes times the whole number of such lengths (ns) in a second."""
    pairs = zip(sizes.tolist(), lengths.tolist(), strict=True)
    return [size * (NS_PER_S // ns) / MEGA if size >= 0 and ns > 0 else None for size, ns in pairs]


def rows_of(columns: Sequence[Sequence[Value]]) -> list[tuple[Value, ...]]:
    """The rows of columns of one length."""
    return list(zip(*columns, strict=True))


def in_time_order(report: SystemReport, wanted: Wanted, scope: Scope) -> Iterator[dict[str, Frame]]:
    """The rows in scope of some frames with the wanted columns, a stretch of time after the other.

    Each stretch holds the rows of every frame that start in it, in the frame's own order. Of a
    report of Nsight Systems only one stretch is in memory at a time.
    """
    columns = {
        name: tuple(dict.fromkeys((*asked, "start_ns", "end_ns", *_needed(name, scope))))
        for name, asked in wanted.items()
    }
    _, high_ns = scope.bounds(report)
    for stretch in report.stretches(columns, high_ns):
        yield {name: scope.narrow(report, part) for name, part in stretch.items()}


def _needed(name: str, scope: Scope) -> tuple[str, ...]:
    """The columns that narrowing needs and the frame has."""
    return tuple(column for column in scope.columns if column in SCHEMAS[name].names)


def batches(frame: Frame) -> Iterator[Frame]:
    """The rows of a frame, some ten thousand at a time."""
    return frame.in_parts(BATCH_ROWS)
