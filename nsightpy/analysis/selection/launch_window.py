"""One run for several kernels: the shortest row of launches that holds one of each.

`-k` takes one expression, and `--launch-skip` and `--launch-count` count all launches it matches:
what one run profiles is a stretch of the launches of all its kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.ranking import durations
from nsightpy.analysis.selection.launch_places import Launches, Mask, Variant
from nsightpy.frames import Ints

OTHER = -1


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the launches of some names: skip, count, what stands for each variant in it."""

    skip: int
    count: int
    durations_ns: tuple[int, ...]
    shapes: tuple[Variant, ...] = ()


def shortest_window(
    done: Launches,
    pid: int,
    variants: Sequence[Variant],
    *,
    name: str,
    may_stand: Mask,
    typical_ns: Sequence[int],
) -> Window | None:
    """The shortest stretch of a process's launches with one of every variant.

    `name` is the column whose values the filter matches, `may_stand` masks the launches that may
    represent their variant. Of equally short ones that whose durations are nearest `typical_ns`,
    then the earliest. None where there is no such stretch.
    """
    rows = _matching(done, pid, variants, name)
    place = {variant: number for number, variant in enumerate(variants)}
    number = np.asarray([place.get(variant, OTHER) for variant in done.variants], dtype=np.int64)
    kinds = np.where(may_stand[rows], number[done.variant[rows]], OTHER)
    length = durations(done.frame)[rows]
    best: tuple[int, float, int] | None = None
    lengths: tuple[int, ...] = ()
    places: list[int] = []
    last: dict[int, int] = {}
    for end, kind in enumerate(kinds.tolist()):
        if kind == OTHER:
            continue
        last[kind] = end
        if len(last) < len(variants):
            continue
        ends = [last[which] for which in range(len(variants))]
        start = min(ends)
        if best is not None and end - start + 1 > best[0]:
            continue
        times_ns = tuple(int(length[end]) for end in ends)
        rank = (end - start + 1, _strangeness(times_ns, typical_ns), start)
        if best is None or rank < best:
            best, lengths, places = rank, times_ns, ends
    if best is None:
        return None
    shapes = tuple(done.shapes_of(rows[places].tolist()))
    return Window(best[2], best[0], lengths, shapes)


def _matching(done: Launches, pid: int, variants: Sequence[Variant], name: str) -> Ints:
    """The visible launches of the process whose name the filter matches, in API order."""
    attribute = {"mangled_name": "mangled", "base_name": "base", "name": "name"}[name]
    wanted = {getattr(variant, attribute) for variant in variants}
    hit = done.visible & (done.frame.ints("pid") == pid)
    return np.flatnonzero(hit & done.frame.labels(name).equals(tuple(wanted)))


def _strangeness(times_ns: Sequence[int], typical: Sequence[int]) -> float:
    """How far durations are from the typical ones, as the largest ratio."""
    pairs = zip(times_ns, typical, strict=True)
    return round(max(abs(math.log(max(length, 1) / max(usual, 1))) for length, usual in pairs), 9)
