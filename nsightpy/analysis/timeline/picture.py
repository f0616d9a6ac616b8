"""A timeline reduced to as many columns as a picture has: exact shares of each column's time."""

from collections.abc import Iterable, Mapping
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.communication import operation_of
from nsightpy.analysis.intervals import (
    Spans,
    clip,
    complement,
    measure_before,
    union,
    union_of,
)
from nsightpy.analysis.nvtx.ranges import plain_name
from nsightpy.analysis.timeline.lanes import by_start, levels_of
from nsightpy.frames import Frame, Ints, Labels
from nsightpy.results.tracks import (
    CATEGORIES,
    COMMUNICATION,
    COMPUTE,
    COPY,
    GRAPH,
    RANGE,
    RANGES,
    STREAM,
    Band,
    Boxes,
    Lane,
    Picture,
    Row,
    Timeline,
    Track,
)

# Rows beyond which each is one stacked band; levels of NVTX ranges above the streams of a row.
MOST_UNSTACKED = 8
RANGE_LEVELS = 3
# Columns that an event covers to be drawn on its own.
WIDE_COLUMNS = 3


MOST_JOINS = 60
IDLE = "idle"


class _Grid:
    """The columns of a picture: equal parts of its window."""

    def __init__(self, start_ns: int, end_ns: int, columns: int) -> None:
        self.start, self.end, self.columns = start_ns, end_ns, columns
        parts = np.arange(columns + 1, dtype=np.float64) / columns
        self.edges = start_ns + np.rint(parts * (end_ns - start_ns)).astype(np.int64)

    def shares(self, spans: Spans) -> NDArray[np.float64]:
        """The share of each column's time that is in the set; above 0 where any of the set lies."""
        covered = np.diff(measure_before(spans, self.edges))
        widths: Ints = np.maximum(np.diff(self.edges), 1)
        return covered / widths

    def is_wide(self, starts: Ints, ends: Ints) -> NDArray[np.bool_]:
        """The events that cover some columns whole, as far as they lie inside."""
        inside = np.minimum(ends, self.end) - np.maximum(starts, self.start)
        wide: NDArray[np.bool_] = inside * self.columns >= WIDE_COLUMNS * (self.end - self.start)
        return wide


def picture(timeline: Timeline, columns: int = 1500) -> Picture:
    """The timeline's window in that many columns; more than a few rows are stacked, one band each.

    No event is left out but NVTX ranges nested deeper than is drawn, and those of stacked rows.
    """
    grid = _Grid(timeline.start_ns, timeline.end_ns, columns)
    stacked = len(timeline.owners) > MOST_UNSTACKED
    rows: dict[int, Row] = {}
    parts: dict[int, list[tuple[int, int, int]]] = {}
    for track in timeline.tracks(False):
        number = timeline.owners.index(track.owner)
        rows[number] = _row(track, grid, stacked)
        for lane in track.lanes_of(STREAM):
            for collective, start, end in _collectives(lane, grid):
                parts.setdefault(collective, []).append((number, start, end))
    places = {
        number: place for place, number in enumerate(sorted(rows))
    }  # what is left out has none
    shared = [
        sorted((places[number], start, end) for number, start, end in part)
        for part in parts.values()
        if len(part) > 1
    ]
    shared.sort(key=lambda part: (-max(end - start for _, start, end in part), part))
    return Picture(
        start_ns=grid.start,
        end_ns=grid.end,
        columns=columns,
        rows=tuple(rows[each] for each in sorted(rows)),
        stacked=stacked,
        joins=() if stacked else tuple(map(tuple, shared[:MOST_JOINS])),
        clock=timeline.clock,
        inputs=timeline.inputs,
        path=timeline.path(),
    )


def _row(track: Track, grid: _Grid, stacked: bool) -> Row:
    lanes = [lane.within(grid.start, grid.end) for lane in track.lanes_of(STREAM)]
    sets = {category: _spans(lanes, category, grid) for category in _DEVICE}
    if stacked:
        return Row(track.owner, _stacked_bands(lanes, sets, grid))
    bands = [_band(lanes, category, sets[category], grid) for category in _DEVICE]
    bands = [band for band in bands if band.events or band.kind != CATEGORIES[GRAPH]]
    idle = complement(union_of(sets.values()), grid.start, grid.end)
    bands.append(Band(IDLE, grid.shares(idle), None, 0))
    return Row(track.owner, (*_range_bands(track, grid), *bands))


_DEVICE = (COMPUTE, GRAPH, COMMUNICATION, COPY)
# What single events are called.
_SHORT = {COMMUNICATION: operation_of, RANGE: plain_name}


def _spans(lanes: Iterable[Lane], category: int, grid: _Grid) -> Spans:
    """When anything of a category ran, inside the window."""
    chosen = (lane.take(lane.categories == category) for lane in lanes)
    return clip(union_of(union(lane.starts, lane.ends) for lane in chosen), grid.start, grid.end)


def _stacked_bands(lanes: list[Lane], spans: Mapping[int, Spans], grid: _Grid) -> tuple[Band, ...]:
    """Compute, then communication on its own, then copies on their own: together at most 1."""
    work = union_of((spans[COMPUTE], spans[GRAPH]))
    sets = {
        COMPUTE: work,
        COMMUNICATION: spans[COMMUNICATION] - union_of((work, spans[COPY])),
        COPY: spans[COPY] - union_of((work, spans[COMMUNICATION])),
    }
    events = sum(map(len, lanes))
    return tuple(
        Band(CATEGORIES[category], grid.shares(own), None, events * (category == COMPUTE))
        for category, own in sets.items()
    )


def _times(lanes: list[Lane]) -> tuple[Ints, Ints]:
    none = np.empty(0, dtype=np.int64)
    return (
        np.concatenate([none, *(lane.starts for lane in lanes)]),
        np.concatenate([none, *(lane.ends for lane in lanes)]),
    )


def _band(lanes: list[Lane], category: int, spans: Spans, grid: _Grid) -> Band:
    """Events of some width one by one, the rest as shares of the time that these leave."""
    chosen = [lane.take(lane.categories == category) for lane in lanes]
    events = sum(map(len, chosen))
    wide = [lane.take(grid.is_wide(lane.starts, lane.ends)) for lane in chosen]
    if not any(map(len, wide)):
        return Band(CATEGORIES[category], grid.shares(spans), None, events)
    names = Frame.concatenate([Frame({"name": lane.names}) for lane in wide]).labels("name")
    if category in _SHORT:
        names = names.renamed(_SHORT[category])
    boxes = _boxes(*_times(wide), names, grid)
    rest = spans - union(boxes.starts, boxes.ends)
    return Band(CATEGORIES[category], grid.shares(rest), boxes, events)


def _boxes(starts: Ints, ends: Ints, names: Labels, grid: _Grid) -> Boxes:
    order = by_start(starts, ends)
    starts, ends = starts[order], ends[order]
    levels = levels_of(starts, ends)
    inside = np.maximum(starts, grid.start), np.minimum(ends, grid.end)
    return Boxes(*inside, names.take(order), levels, int(levels.max(initial=0)) + 1)


def _range_bands(track: Track, grid: _Grid) -> list[Band]:
    """The outermost levels of NVTX ranges, from the threads whose ranges cover most."""
    lanes = [lane.within(grid.start, grid.end) for lane in track.lanes_of(RANGES)]
    window = Spans.of(grid.start, grid.end)
    lanes.sort(key=lambda lane: (-(union(lane.starts, lane.ends) & window).total, lane.label))
    levels = (lane.take(lane.levels == n) for lane in lanes for n in range(lane.depth))
    return [_band([x], RANGE, _spans([x], RANGE, grid), grid) for x in islice(levels, RANGE_LEVELS)]


def _collectives(lane: Lane, grid: _Grid) -> list[tuple[int, int, int]]:
    if lane.collectives is None:
        return []
    rows = np.flatnonzero(
        (lane.collectives >= 0) & (lane.ends > grid.start) & (lane.starts < grid.end)
    )
    columns = (lane.collectives[rows], lane.starts[rows], lane.ends[rows])
    return list(zip(*(column.tolist() for column in columns), strict=True))
