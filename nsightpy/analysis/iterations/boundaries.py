"""Where units of work may begin, as positions in it: marks of a cycle, waits, graph launches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsightpy.analysis.iterations.repetition import Cycle, places_of_run
from nsightpy.analysis.iterations.work import LaunchedWork
from nsightpy.frames import Ints

GAP_SHARE = 0.002
NEARLY_ALL = 0.9


def cuts(cycle: Cycle, work: LaunchedWork) -> Ints | None:
    """Where the turns of a cycle begin, as positions in the work."""
    runs = [places_of_run(work.name.codes, run) for run in cycle.marks]
    most = max((len(places) for places in runs), default=0)
    return widest([places for places in runs if len(places) >= max(most - 1, 2)], work)


def widest(marks: Sequence[Ints], work: LaunchedWork) -> Ints | None:
    """Of places that mark each turn once those before which the device is idle longest.

    Places in the middle of what one call launched, a CUDA graph, begin a turn only where no others
    mark it.
    """
    if not marks:
        return None
    marks = [places for places in marks if not within_launches(places, work)] or marks
    length = float(np.median(np.diff(work.end[marks[0]])))
    gaps = [float(np.median(work.idle_before[places])) for places in marks]
    floor = max(max(gaps) / 2, GAP_SHARE * length) if max(gaps) > GAP_SHARE * length else min(gaps)
    wide = [places for places, wait in zip(marks, gaps, strict=True) if wait >= floor]
    most = max(len(places) for places in wide)
    return min(
        (places for places in wide if len(places) >= most - 1),
        key=lambda places: (int(places[0]), -len(places)),
    )


def after_waits(work: LaunchedWork) -> Ints:
    """Positions of the first work launched after each wait of the host."""
    places = np.unique(np.searchsorted(work.issued, work.waits))
    return np.unique(np.concatenate([[0], places[places < len(work)]])).astype(np.int64)


def graph_launches(work: LaunchedWork) -> Ints:
    """Positions of the first kernel of each launch of many, where nearly all work is in such."""
    first = np.flatnonzero(np.diff(work.issued, prepend=work.issued[:1] - 1))
    sizes = np.diff(first, append=len(work))
    many = sizes > 1
    return first[many] if sizes[many].sum() >= NEARLY_ALL * len(work) else first[:0]


def within_launches(places: Ints, work: LaunchedWork) -> bool:
    """Whether most of some places lie in the middle of what one call launched: a CUDA graph."""
    later = places[places > 0]
    return len(later) > 0 and bool(np.mean(work.issued[later] == work.issued[later - 1]) > 0.5)
