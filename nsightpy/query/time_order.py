"""The rows of frames in time order, some ten thousand at a time: what listings are made of."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nsightpy.frames import Frame
from nsightpy.query.scope import Scope
from nsightpy.readers.nsys.windows import SCHEMAS
from nsightpy.reports.system import SystemReport, Wanted

BATCH_ROWS = 1 << 16


def in_time_order(report: SystemReport, wanted: Wanted, scope: Scope) -> Iterator[dict[str, Frame]]:
    """The rows in scope of some frames with the wanted columns, a stretch of time after the other.

    Each stretch holds the rows of every frame that start in it, in the frame's own order. Of a
    report of Nsight Systems only one stretch is in memory at a time.
    """
    columns = {
        name: tuple(dict.fromkeys((*asked, "start_ns", "end_ns", *_needed(name, scope))))
        for name, asked in wanted.items()
    }
    for stretch in report.stretches(columns, *scope.bounds(report)):
        yield {
            name: Frame.concatenate([scope.narrow(report, part) for part in parts])
            for name, parts in stretch.items()
        }


def _needed(name: str, scope: Scope) -> tuple[str, ...]:
    """The columns that narrowing needs and the frame has."""
    return tuple(column for column in scope.columns if column in SCHEMAS[name].names)


def batches(frame: Frame) -> Iterator[Frame]:
    """The rows of a frame, some ten thousand at a time."""
    for low in range(0, frame.rows, BATCH_ROWS):
        yield frame.take(np.arange(low, min(low + BATCH_ROWS, frame.rows)))
