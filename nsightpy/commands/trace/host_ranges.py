"""trace -r nvtx_pushpop_trace: push/pop ranges on the host by start, with what is inside them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nsightpy.analysis.nvtx.nesting import PUSH_POP, ROOT, nest
from nsightpy.commands.trace.cells import Place, listed, rows_of
from nsightpy.commands.trace.projections import numbered, range_names, stacks
from nsightpy.frames import Frame, Labels
from nsightpy.query.scope import Scope
from nsightpy.results import Field, Row, fields_in

FIELDS = (
    *(Field(f"{name} (ns)", "ns") for name in ("Start", "End", "Duration")),
    *(Field(f"{name} (ns)", "ns") for name in ("DurChild", "DurNonChild")),
    Field("Name", "text"),
    *fields_in("id", "PID", "TID", "Lvl"),
    Field("NumChild"),
    Field("RangeId", "id"),
    Field("ParentId", "id"),
    Field("RangeStack", "text"),
    Field("NameTree", "text"),
)
_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "name", "domain", "style")
_BATCH = 1 << 16


def listing(place: Place, scope: Scope, _: str = "") -> Iterator[Row]:
    """The rows of a report; ids count ranges by start."""
    report = place.report
    ranges = report.frame("nvtx_ranges", _COLUMNS)
    ranges = ranges.take(ranges.labels("style").equals([PUSH_POP])).ordered()
    # what a thread pushed last is popped first, whatever its domain
    nesting = nest(Frame({**ranges, "domain": Labels.constant("", ranges.rows)}))
    lengths = ranges.ints("end_ns") - ranges.ints("start_ns")
    inner = np.flatnonzero(nesting.parent != ROOT)
    above = nesting.parent[inner]
    children = np.bincount(above, minlength=ranges.rows)
    inside = np.zeros(ranges.rows, dtype=np.int64)
    np.add.at(inside, above, lengths[inner])
    rows = numbered(report, ranges, scope)
    for low in range(0, len(rows), _BATCH):
        mine = rows[low : low + _BATCH]
        some, names = ranges.take(mine), range_names(ranges.take(mine))
        levels = nesting.level[mine].tolist()
        yield from rows_of(
            [
                place.times(some, some.ints("start_ns")),
                place.times(some, some.ints("end_ns")),
                *(listed(part[mine]) for part in (lengths, inside, lengths - inside)),
                names,
                listed(some.ints("pid")),
                listed(some.ints("tid")),
                levels,
                listed(children[mine]),
                listed(mine + 1),
                [row + 1 if row != ROOT else None for row in nesting.parent[mine].tolist()],
                stacks(mine, nesting.parent),
                [f"{'--' * level}{name}" for level, name in zip(levels, names, strict=True)],
            ]
        )
