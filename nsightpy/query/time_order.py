"""The rows of frames in time order, some ten thousand at a time: what listings are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from nsightpy.frames import Frame
from nsightpy.frames.frame import blank
from nsightpy.query.scope import Scope
from nsightpy.readers.nsys.windows import SCHEMAS, blocks, read_block, windows
from nsightpy.reports.nsys import NsysReport
from nsightpy.reports.system import SystemReport

Wanted = Mapping[str, Sequence[str]]
BATCH_ROWS = 1 << 16


def in_time_order(report: SystemReport, wanted: Wanted, scope: Scope) -> Iterator[dict[str, Frame]]:
    """The rows in scope of some frames with the wanted columns, a stretch of time after the other.

    Each stretch holds the rows of every frame that start in it, in the frame's own order. Of a
    report of Nsight Systems only one stretch is in memory at a time.
    """
    columns = {
        name: tuple(dict.fromkeys((*own, "start_ns", "end_ns", *_needed(name, scope))))
        for name, own in wanted.items()
    }
    if not isinstance(report, NsysReport):
        yield {name: scope.narrow(report, _whole(report, name, columns[name])) for name in wanted}
        return
    every = [block for name in wanted for block in blocks(report.export, name)]
    for begin, end, mine in windows(report.export, every, *scope.bounds(report)):
        stretch: dict[str, list[Frame]] = {}
        for block in mine:
            rows = read_block(report.export, block, begin, end, columns[block.frame])
            stretch.setdefault(block.frame, []).append(scope.narrow(report, rows))
        yield {name: Frame.concatenate(parts) for name, parts in stretch.items()}


def _needed(name: str, scope: Scope) -> tuple[str, ...]:
    """The columns that narrowing needs and the frame has."""
    return tuple(column for column in scope.columns if column in SCHEMAS[name].names)


def _whole(report: SystemReport, name: str, columns: Sequence[str]) -> Frame:
    """A frame that is in memory already; what it lacks is not known."""
    known = report.frame(name)
    absent = {c: blank(SCHEMAS[name][c], known.rows) for c in columns if c not in known}
    return Frame({c: known[c] if c in known else absent[c] for c in columns})


def batches(frame: Frame) -> Iterator[Frame]:
    """The rows of a frame, some ten thousand at a time."""
    for low in range(0, frame.rows, BATCH_ROWS):
        yield frame.take(np.arange(low, min(low + BATCH_ROWS, frame.rows)))
