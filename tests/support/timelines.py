"""Timelines made by hand: lanes of a few events on one device a rank."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from nsightpy.analysis.timeline.lanes import levels_of
from nsightpy.frames import Labels
from nsightpy.results.tracks import COMPUTE, STREAM, Lane, Owner, Timeline, Track


def lane_of(
    starts: Sequence[int],
    ends: Sequence[int],
    names: Sequence[str] = (),
    *,
    kind: str = STREAM,
    category: int = COMPUTE,
    **more: Any,
) -> Lane:
    """Events of one stream or thread; those that overlap are on levels of their own."""
    first, last = np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64)
    labels = Labels.of(names or [f"k{n}" for n in range(len(first))])
    kinds, levels = np.full(len(first), category, dtype=np.uint8), levels_of(first, last)
    about = (kind, f"{kind} 7", 7)
    return Lane(*about, first, last, labels, levels, kinds, details=labels, **more)


def timeline_of(end: int, *lanes: Lane, ranks: int = 1, start: int = 0, **more: Any) -> Timeline:
    """The same lanes on each of so many ranks; `counters` of every track, `marks` of all."""
    counters, marks = more.pop("counters", ()), more.pop("marks", ())
    owners = [Owner("<b>r</b>.sqlite", "</script><i>host", 1, rank, 0) for rank in range(ranks)]
    tracks = [Track(owner, lanes, counters) for owner in owners]
    given = {"inputs": ("r.sqlite",), **more}
    return Timeline(
        *(tuple(owners), start, end, "clock", lambda _: iter(tracks), lambda: start),
        marks=lambda: marks,
        **given,
    )


def written(write: Callable[[Timeline, BinaryIO], None], timeline: Timeline, path: Path) -> Path:
    """The file that a writer makes of a timeline."""
    with path.open("wb") as file:
        write(timeline, file)
    return path
