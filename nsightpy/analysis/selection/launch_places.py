"""The variants of the kernels of one report, and the place of every launch among its namesakes.

A variant is a kernel under one geometry: name, grid, block, static and dynamic shared memory. Of a
kernel with more than MOST_SHAPES geometries it is all launches of one size, in powers of two of
the threads launched: nobody measures thousands of shapes of one kernel one by one.

ncu counts the launches that its name filter matches, in the order of the API calls of a process
over all its GPUs: so do the places here, from 0. Correlation ids are given at the call, and keep
that order; the order in which the GPU begins is another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import Groups, group_by
from nsightpy.analysis.ranking import durations
from nsightpy.frames import Frame, Ints, Labels, distinct

SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
SHARED = ("static_shared_bytes", "dynamic_shared_bytes")
NAMES = ("mangled_name", "base_name", "name")
VARIANT = (*NAMES, *SHAPE, *SHARED)
UNKNOWN = ("", "[Unknown]")  # what old exports write for a name they do not have
COLUMNS = ("start_ns", "end_ns", "pid", "correlation_id", *VARIANT, "graph_node_id")

# From here on the geometries of one kernel are grouped by size.
MOST_SHAPES = 20

Extent = tuple[int, int, int]
NO_EXTENT = (0, 0, 0)
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Variant:
    """A kernel under one launch geometry; shared memory in bytes per block.

    `size`: of a group of geometries, that 2^size to 2^(size + 1) - 1 threads were launched; grid
    and block are 0 then. -1 for one geometry.
    """

    mangled: str
    base: str
    name: str
    grid: Extent
    block: Extent
    static_shared: int = 0
    dynamic_shared: int = 0
    size: int = -1

    @property
    def order(self) -> tuple[object, ...]:
        """A total order: by name, then by geometry."""
        names = (self.name, self.mangled, self.base)
        return (*names, self.size, self.grid, self.block, self.static_shared, self.dynamic_shared)


@dataclass(frozen=True, slots=True)
class LaunchCounts:
    """How many launches of its process with the same name came before this one."""

    mangled: int
    function: int
    demangled: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One launch: its duration, its places, why it was chosen (median or outlier), its geometry."""

    duration_ns: int
    places: LaunchCounts
    role: str = "median"
    shape: Variant | None = None


@dataclass(frozen=True, slots=True)
class Portion:
    """One variant in one process: its weight, and the launches that stand for it.

    `instances` and `total_ns` are of the launches that were weighed. No samples where none of them
    could be reached by ncu. `warm_up` launches were not considered.
    """

    variant: Variant
    pid: int
    instances: int
    total_ns: int
    samples: tuple[Sample, ...]
    warm_up: int = 0
    from_graph: bool = False


@dataclass(frozen=True)
class Launches:
    """The launches of a report in API order, with the group of each under every kind of name.

    `visible` are those that ncu's NVTX filter lets through: only they are counted by places.
    """

    frame: Frame
    variants: tuple[Variant, ...]
    variant: NDArray[np.int32]
    visible: Mask
    places: tuple[Ints, Ints, Ints]

    def places_of(self, row: int) -> LaunchCounts:
        return LaunchCounts(*(int(column[row]) for column in self.places))

    def shape_of(self, row: int) -> Variant:
        """The geometry of one launch."""
        return _shape_at(self.frame, row)


def in_api_order(kernels: Frame) -> Ints:
    """The rows by process, then by API call; nodes of one graph launch by their start."""
    return np.lexsort(
        (kernels.ints("start_ns"), kernels.ints("correlation_id"), kernels.ints("pid"))
    )


def variant_launches(kernels: Frame, visible: Mask | None = None) -> Launches:
    """Variants and places of kernels (COLUMNS); `visible` as in Launches, all by default."""
    seen = np.ones(kernels.rows, dtype=np.bool_) if visible is None else visible
    order, frame = in_api_order(kernels), kernels
    if np.any(order[1:] < order[:-1]):
        frame, seen = kernels.take(order), seen[order]
    codes, variants = _variants(frame)
    places = tuple(_places(group_by(frame, ("pid", name)).codes, seen) for name in NAMES)
    mangled, function, demangled = places
    return Launches(frame, variants, codes, seen, (mangled, function, demangled))


def _variants(frame: Frame) -> tuple[NDArray[np.int32], tuple[Variant, ...]]:
    """The variant of each row, as a code; those of kernels with many geometries by size."""
    kernel = _codes(frame, NAMES)
    geometry = _codes(frame, (*SHAPE, *SHARED))
    geometries = int(geometry.max(initial=-1)) + 1
    pairs, codes = distinct(kernel.astype(np.int64) * max(geometries, 1) + geometry)
    counts = np.bincount(pairs // max(geometries, 1))
    many = counts > MOST_SHAPES
    if not many.any():
        return codes, tuple(_shape_at(frame, row) for row in _first_rows(codes, len(pairs)))
    size = _size_of(frame)
    classed = many[kernel]
    key = np.where(classed, geometries + size, geometry)
    wide = geometries + int(size.max()) + 1
    pairs, codes = distinct(kernel.astype(np.int64) * wide + key)
    variants = []
    for row in _first_rows(codes, len(pairs)):
        shape = _shape_at(frame, row)
        names = (shape.mangled, shape.base, shape.name)
        variants.append(
            Variant(*names, NO_EXTENT, NO_EXTENT, size=int(size[row])) if classed[row] else shape
        )
    return codes, tuple(variants)


def _codes(frame: Frame, names: Sequence[str]) -> NDArray[np.int32]:
    """Which rows agree in all the named columns, as one code a row; without the values."""
    codes: NDArray[np.int32] = np.zeros(frame.rows, dtype=np.int32)
    for name in names:
        data = frame[name]
        part = data.merged().codes if isinstance(data, Labels) else distinct(frame.ints(name))[1]
        wide = int(part.max(initial=0)) + 1
        if wide > 1:
            codes = distinct(codes.astype(np.int64) * wide + part)[1]
    return codes


def _first_rows(codes: NDArray[np.int32], groups: int) -> list[int]:
    """The first row of every group."""
    first = np.zeros(groups, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first.tolist()


def _size_of(frame: Frame) -> Ints:
    """The power of two of the threads that each row launched, rounded down."""
    threads = np.ones(frame.rows, dtype=np.float64)
    for name in SHAPE:
        threads *= np.maximum(frame.ints(name), 1)
    return np.frexp(threads)[1].astype(np.int64) - 1


def _shape_at(frame: Frame, row: int) -> Variant:
    names = [frame.labels(name)[row] for name in NAMES]
    return variant_of((*names, *(int(frame.ints(name)[row]) for name in (*SHAPE, *SHARED))))


def variant_of(key: Sequence[int | str | None]) -> Variant:
    """The variant of a group of kernels by VARIANT."""
    mangled, base, name, *numbers = key
    names = ["" if text in UNKNOWN else str(text) for text in (mangled, base, name)]
    gx, gy, gz, bx, by, bz, static, dynamic = (int(value or 0) for value in numbers)
    return Variant(names[0], names[1], names[2], (gx, gy, gz), (bx, by, bz), static, dynamic)


def _places(codes: NDArray[np.int32], visible: Mask) -> Ints:
    """For each row, the number of visible rows before it with the same code."""
    order = np.argsort(codes, kind="stable")
    seen = visible[order].astype(np.int64)
    before: Ints = np.cumsum(seen) - seen
    starts = np.flatnonzero(np.concatenate([[True], codes[order][1:] != codes[order][:-1]]))
    lengths = np.diff(np.append(starts, len(order)))
    places = np.empty(len(order), dtype=np.int64)
    places[order] = before - np.repeat(before[starts], lengths) if len(order) else before
    return places


def warm(done: Launches, warm_up: int) -> Mask:
    """Mask of the launches that are no warm-up: not of the first ones of their variant and process.

    The last launch of a variant always is warm.
    """
    groups = _units(done)
    every = np.ones(done.frame.rows, dtype=np.bool_)
    sizes = np.bincount(groups.codes, minlength=len(groups.keys))
    cold = np.minimum(warm_up, sizes - 1)
    hot: Mask = _places(groups.codes, every) >= cold[groups.codes]
    return hot


def standing(done: Launches, weighed: Mask, warm_up: int) -> Mask:
    """Mask of the launches that may stand for their variant: those weighed that are no warm-up.

    Where that leaves none of a variant, its last one that is weighed.
    """
    mask: Mask = weighed & warm(done, warm_up)
    codes = _units(done).codes
    covered = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.bool_)
    covered[codes[mask]] = True
    rows = np.flatnonzero(weighed & ~covered[codes])
    last = np.full(len(covered), -1, dtype=np.int64)
    last[codes[rows]] = rows
    mask[last[last >= 0]] = True
    return mask


def _units(done: Launches) -> Groups:
    """The launches grouped by process and variant."""
    columns = {"pid": done.frame["pid"], "variant": done.variant.astype(np.int64)}
    return group_by(Frame(columns), ("pid", "variant"))


def portions(
    done: Launches, weighed: Mask | None = None, *, warm_up: int = 1, outlier: bool = False
) -> list[Portion]:
    """The variants of every process, with representative launches.

    `weighed` masks the launches, in the order of `done.frame`, that count and may be chosen. The
    first `warm_up` launches of a variant in its process are never chosen while others are there.
    The one nearest the median of the rest represents it, the earliest of equals; with `outlier`
    the slowest is added.
    """
    frame = done.frame
    counted = np.ones(frame.rows, dtype=np.bool_) if weighed is None else weighed
    hot = warm(done, warm_up)
    groups = _units(done)
    order = np.argsort(groups.codes, kind="stable")
    edges = np.searchsorted(groups.codes[order], np.arange(len(groups.keys) + 1)).tolist()
    length = durations(frame)
    graph = frame.ints("graph_node_id") > 0
    made = []
    for (pid, variant), (low, high) in zip(groups.keys, pairwise(edges), strict=True):
        rows = order[low:high]
        rows = rows[counted[rows]]
        if len(rows) == 0:
            continue
        visible = rows[done.visible[rows]]
        usable = visible[hot[visible]]
        chosen = _samples(done, length, usable if len(usable) else visible, outlier=outlier)
        made.append(
            Portion(
                done.variants[int(variant or 0)],
                int(pid or 0),
                len(rows),
                int(length[rows].sum()),
                chosen,
                int(np.count_nonzero(~hot[rows])),
                bool(graph[rows].any()),
            )
        )
    return made


def _samples(done: Launches, length: Ints, rows: Ints, *, outlier: bool) -> tuple[Sample, ...]:
    if len(rows) == 0:
        return ()
    lengths = length[rows]
    # twice the distance to the median, so that the mean of two middle values stays exact
    middle = np.partition(lengths, (len(lengths) - 1) // 2)[(len(lengths) - 1) // 2]
    upper = np.partition(lengths, len(lengths) // 2)[len(lengths) // 2]
    nearest = int(np.argmin(np.abs(2 * lengths - (middle + upper))))
    at = int(rows[nearest])
    chosen = [Sample(int(lengths[nearest]), done.places_of(at), shape=done.shape_of(at))]
    slowest = int(np.argmax(lengths))
    if outlier and lengths[slowest] > lengths[nearest]:
        row = int(rows[slowest])
        chosen.append(
            Sample(int(lengths[slowest]), done.places_of(row), "outlier", done.shape_of(row))
        )
    return tuple(chosen)
