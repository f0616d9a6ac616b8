"""Columns of a frame as the cells of a listing, row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nsightpy.frames import Frame, Ints, Labels
from nsightpy.reports.system import SystemReport
from nsightpy.results import Value

MEGA = 10**6
NS_PER_S = 10**9
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


def listed(values: Any) -> list[Value]:
    """An array as plain numbers."""
    cells: list[Value] = values.tolist()
    return cells


def texts(labels: Labels) -> list[Value]:
    """Names row by row; the empty one is not known."""
    names: list[Value] = [value or None for value in labels.values]
    return [names[code] for code in labels.codes.tolist()]


def megabytes(sizes: Ints) -> list[Value]:
    """Bytes as MB = 10^6 bytes."""
    return listed(sizes / MEGA)


def positive(values: Ints) -> list[Value]:
    """Numbers, where 0 means none."""
    return [value or None for value in values.tolist()]


def absent(rows: int) -> list[Value]:
    return [None] * rows


def throughputs(sizes: Ints, lengths: Ints) -> list[Value]:
    """MB/s as nsys counts them: bytes times the whole number of such lengths (ns) in a second."""
    pairs = zip(sizes.tolist(), lengths.tolist(), strict=True)
    return [size * (NS_PER_S // ns) / MEGA if ns > 0 else None for size, ns in pairs]


def rows_of(columns: Sequence[Sequence[Value]]) -> list[tuple[Value, ...]]:
    """The rows of columns of one length."""
    return list(zip(*columns, strict=True))
