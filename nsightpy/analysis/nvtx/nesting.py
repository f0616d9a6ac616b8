"""How NVTX ranges contain each other: push/pop ranges form a tree per thread and domain.

A range's parent is the innermost range of the same thread and domain that contains it. Start/end
ranges overlap at will: each is a root of its own.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import rows_by_group
from nsightpy.analysis.tally import Key
from nsightpy.errors import TooMuchError
from nsightpy.frames import Frame, Ints, Labels, distinct, last_before

_BEYOND = 2**63
ROOT = -1
PUSH_POP = "PushPop"
SEPARATOR = "\x1f"
# Of all different paths of a report together.
MOST_CHARACTERS = 1 << 26
# Ranges around one another where each lists all of those around it.
MOST_LISTED = 1_000


@dataclass(frozen=True, slots=True)
class Nesting:
    """For each row of a frame of ranges: its depth (0 = outermost) and the row of its parent."""

    level: Ints
    parent: Ints


def nest(ranges: Frame) -> Nesting:
    """The nesting of ranges (columns start_ns, end_ns, pid, tid, domain, style)."""
    level = np.zeros(ranges.rows, dtype=np.int64)
    parent = np.full(ranges.rows, ROOT, dtype=np.int64)
    rows = np.flatnonzero(ranges.labels("style").equals([PUSH_POP]))
    if len(rows) == 0:
        return Nesting(level, parent)
    start = ranges.ints("start_ns")[rows]
    end = np.maximum(ranges.ints("end_ns")[rows], start)
    track = _tracks(ranges)[rows]
    if np.all(start[1:] > start[:-1]):
        order = rows_by_group(track)
    else:
        order = np.lexsort((-end, start, track))
    rows, start, end, track = rows[order], start[order], end[order], track[order]
    depth = _open_before(start, end, track)
    above = _last_above(depth)
    torn = (above != ROOT) & (end[above] < end)
    if torn.any():
        for number in np.unique(track[torn]).tolist():
            own = np.flatnonzero(track == number)
            depth[own], above[own] = _stacked(start[own], end[own], int(own[0]))
    level[rows] = depth
    parent[rows] = np.where(above == ROOT, ROOT, rows[above])
    return Nesting(level, parent)


def paths(names: Labels, nesting: Nesting) -> Labels:
    """The path of each range from its root, names joined by SEPARATOR; equal paths share a code.

    Raises TooMuchError where ranges are so deep inside each other that paths fill the memory.
    """
    names = names.renamed(lambda name: name.replace(SEPARATOR, " "))
    codes = np.full(len(names), ROOT, dtype=np.int64)
    values: list[str] = []
    length = 0
    by_level = np.argsort(nesting.level, kind="stable")
    depth = int(nesting.level.max(initial=-1)) + 1
    edges = np.searchsorted(nesting.level[by_level], np.arange(depth + 1))
    for level in range(depth):
        rows = by_level[edges[level] : edges[level + 1]]
        above = codes[nesting.parent[rows]] if level else np.full(len(rows), ROOT, np.int64)
        keys, places = distinct((above + 1) * len(names.values) + names.codes[rows])
        codes[rows] = places + len(values)
        for key in keys.tolist():
            upper, name = divmod(key, len(names.values))
            here = names.values[name]
            values.append(f"{values[upper - 1]}{SEPARATOR}{here}" if upper else here)
            length += len(values[-1])
            if length > MOST_CHARACTERS:
                raise TooMuchError(f"nests ranges {depth:,} deep: too much text as paths")
    return Labels(codes.astype(np.int32), tuple(values))


def depth_first(keys: Collection[Key], place: Callable[[Key], Any]) -> list[Key]:
    """Keys that begin with a path, outer ones first; those inside one parent by their place."""
    ways: dict[Key, list[Any]] = {}
    for key in sorted(keys, key=lambda key: str(key[0]).count(SEPARATOR)):
        above, inner, _ = str(key[0]).rpartition(SEPARATOR)
        parent = ways.get((above, *key[1:]), []) if inner else []
        ways[key] = [*parent, place(key)]
    return sorted(keys, key=ways.__getitem__)


def in_one_domain(spans: Frame) -> Frame:
    """Spans of threads that nest whatever their domain and style."""
    columns = {"domain": "", "style": PUSH_POP}
    return Frame(
        {**spans, **{name: Labels.constant(text, spans.rows) for name, text in columns.items()}}
    )


def innermost(spans: Frame, moments: Frame) -> Ints:
    """The row of the innermost span that is open on the thread at each start; ROOT: none.

    Spans have start_ns, end_ns, pid, tid and the row of their parent. The one that began last is in
    whichever of those before it were open then: of it and its parents the first one that is still
    open is the innermost.
    """
    thread, start, end = thread_key(spans), spans.ints("start_ns"), spans.ints("end_ns")
    rows, at = np.lexsort((-end, start, thread)), moments.ints("start_ns")
    begun = last_before((thread[rows], start[rows]), (thread_key(moments), at))
    found = np.append(rows, ROOT)[begun]
    while True:
        inside = np.flatnonzero(found != ROOT)
        closed = inside[end[found[inside]] <= at[inside]]
        if not len(closed):
            return found
        found[closed] = spans.ints("parent")[found[closed]]


def thread_key(frame: Frame) -> Ints:
    """Process and thread of each row as one number."""
    return (frame.ints("pid") << 24) | frame.ints("tid")


def _tracks(ranges: Frame) -> Ints:
    """One number for each thread and domain."""
    _, thread = distinct(thread_key(ranges))
    domains = ranges.labels("domain").merged()
    return thread.astype(np.int64) * max(len(domains.values), 1) + domains.codes


def _open_before(start: Ints, end: Ints, track: Ints) -> Ints:
    """How many ranges of its track are open when each begins; rows by (track, start, -end).

    A range that ends when another begins is closed; an empty one closes after it began.
    """
    base, width = int(start.min()), int(end.max()) - int(start.min()) + 2
    code = distinct(track)[1].astype(np.int64)
    if 2 * (int(code.max()) + 1) * width >= _BEYOND:
        # too far apart to lay the tracks end to end; only their order counts
        moments = np.unique(np.concatenate([start, end]))
        start, end = np.searchsorted(moments, start), np.searchsorted(moments, end)
        base, width = 0, len(moments) + 1
    opens = 2 * (code * width + (start - base))
    closes = 2 * (code * width + (end - base)) + (start == end)
    closes.sort()
    return np.arange(len(start)) - np.searchsorted(closes, opens, side="right")


def _last_above(depth: Ints) -> Ints:
    """The last row before each that is one level less deep; ROOT for depth 0."""
    above = np.full(len(depth), ROOT, dtype=np.int64)
    by_depth = rows_by_group(depth)
    edges = np.searchsorted(depth[by_depth], np.arange(int(depth.max()) + 2))
    for level in range(1, len(edges) - 1):
        upper = by_depth[edges[level - 1] : edges[level]]
        rows = by_depth[edges[level] : edges[level + 1]]
        above[rows] = upper[np.searchsorted(upper, rows) - 1]
    return above


def _stacked(start: Ints, end: Ints, first: int) -> tuple[NDArray[np.int64], Ints]:
    """Depth and parent on a track whose ranges overlap without containing each other."""
    depth, above, stack = [], [], list[int]()
    ends = end.tolist()
    for row, (begins, ends_at) in enumerate(zip(start.tolist(), ends, strict=True)):
        while stack and (ends[stack[-1]] < ends_at or ends[stack[-1]] <= begins < ends_at):
            stack.pop()
        depth.append(len(stack))
        above.append(first + stack[-1] if stack else ROOT)
        stack.append(row)
    return np.asarray(depth, dtype=np.int64), np.asarray(above, dtype=np.int64)
