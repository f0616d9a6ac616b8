"""The variants of the kernels of one report, and the place of every launch among its namesakes.

A variant is a kernel under one geometry: name, grid, block, static and dynamic shared memory. Of a
kernel with more than MOST_SHAPES geometries it is all launches of one size, in powers of two of
the threads launched.

ncu counts the launches that its name filter matches, in the order of the API calls of a process
over all its GPUs: so do the places here, from 0. Correlation ids are given at the call, and keep
that order; the order in which the GPU begins is another.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import group_by, named_by, rows_before, rows_by_group
from nsightpy.analysis.ranking import durations
from nsightpy.analysis.selection.thresholds import MOST_SHAPES
from nsightpy.frames import Frame, Ints, Labels, distinct
from nsightpy.results import rank_order

SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
SHARED = ("static_shared_bytes", "dynamic_shared_bytes")
NAMES = ("mangled_name", "base_name", "name")
VARIANT = (*NAMES, *SHAPE, *SHARED)
UNKNOWN = ("", "[Unknown]")  # what old exports write for a name they do not have
COLUMNS = ("start_ns", "end_ns", "pid", "correlation_id", *VARIANT, "graph_node_id")

Extent = tuple[int, int, int]
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
    def any_name(self) -> str:
        """The name that people read, where there is one."""
        return self.name or self.base or self.mangled

    @property
    def surest_name(self) -> tuple[str, str]:
        """How ncu is to find it: the kind of name (--kernel-name-base), and the name."""
        if self.mangled:
            return "mangled", self.mangled
        return ("function", self.base) if self.base else ("demangled", self.name)

    @property
    def label(self) -> str:
        """A text that no other variant has."""
        return repr(self.order)

    @property
    def order(self) -> tuple[object, ...]:
        """A total order: by name, then by geometry."""
        names = (self.name, self.mangled, self.base)
        return (*names, self.size, self.grid, self.block, self.static_shared, self.dynamic_shared)


@dataclass(frozen=True, slots=True)
class Sample:
    """One launch: its duration, how many of its name came before it, its geometry."""

    duration_ns: int
    place: int
    shape: Variant


@dataclass(frozen=True, slots=True)
class Portion:
    """One variant in one process: its weight, and the launch that stands for it.

    `instances` and `total_ns` are of the launches that were weighed. No sample where none of them
    could be reached by ncu. Report and rank are known once all reports are.
    """

    variant: Variant
    pid: int
    instances: int
    total_ns: int
    sample: Sample | None = None
    from_graph: bool = False
    report: str = ""
    rank: int | None = None
    rank_source: str = ""

    @property
    def process(self) -> tuple[bool, int, str, int]:
        """The process that it is of; lower ranks come first."""
        return (*rank_order(self.rank), self.report, self.pid)


def _named_places(kernels: Frame, seen: Mask) -> Ints:
    """For each launch, how many of its surest name came before it in its process."""
    places = np.zeros(kernels.rows, dtype=np.int64)
    left = np.ones(kernels.rows, dtype=np.bool_)
    for name in NAMES:
        named = left & ~kernels.labels(name).equals(UNKNOWN)
        if named.any():
            counted = rows_before(group_by(kernels, ("pid", name)).codes, seen)
            places[named] = counted[named]
        left &= ~named
    return places


def _variants(frame: Frame) -> tuple[NDArray[np.int32], tuple[Variant, ...]]:
    """The variant of each row, as a code; those of kernels with many geometries by size."""
    kernel = group_by(frame, NAMES).codes.astype(np.int64)
    key = group_by(frame, (*SHAPE, *SHARED)).codes.astype(np.int64)
    wide = int(key.max(initial=0)) + 1
    pairs, _ = distinct(kernel * wide + key)
    classed = (np.bincount(pairs // wide) > MOST_SHAPES)[kernel]
    threads = math.prod(np.maximum(frame.ints(name), 1).astype(np.float64) for name in SHAPE)
    size = np.frexp(threads)[1].astype(np.int64) - 1  # of each row, a power of two rounded down
    key[classed] = wide + size[classed]
    pairs, codes = distinct(kernel * (int(key.max(initial=0)) + 1) + key)
    any_row = np.zeros(len(pairs), dtype=np.int64)
    any_row[codes] = np.arange(len(codes))
    variants = [
        Variant(shape.mangled, shape.base, shape.name, (0, 0, 0), (0, 0, 0), size=int(size[row]))
        if classed[row]
        else shape
        for row, shape in zip(any_row, _shapes_at(frame, any_row), strict=True)
    ]
    return codes, tuple(variants)


def _shapes_at(frame: Frame, rows: Sequence[int] | Ints) -> list[Variant]:
    shapes = frame.select(VARIANT).take(np.asarray(rows, dtype=np.int64))
    return [variant_of(key) for key in shapes.tuples(*VARIANT)]


def shaped(extent: Sequence[int]) -> str:
    """A grid or block as 128x1x1."""
    return "x".join(map(str, extent))


def variant_of(key: Sequence[int | str | None]) -> Variant:
    """The variant of a group of kernels by VARIANT."""
    mangled, base, name, *numbers = key
    names = ["" if text in UNKNOWN else str(text) for text in (mangled, base, name)]
    gx, gy, gz, bx, by, bz, static, dynamic = (int(value or 0) for value in numbers)
    return Variant(names[0], names[1], names[2], (gx, gy, gz), (bx, by, bz), static, dynamic)


def variant_labels(kernels: Frame) -> Labels:
    """The label of each kernel's variant."""
    return named_by(kernels, VARIANT, lambda *key: variant_of(key).label)


def portions(kernels: Frame, visible: Mask, weighed: Mask) -> list[Portion]:
    """The variants of every process of kernels (COLUMNS), with representative launches.

    `visible` are those that ncu's NVTX filter lets through, and so counts; `weighed` those that
    count here and may be chosen. The first launch of a variant in its process is never chosen while
    others are there. The one nearest the median of the rest represents it, the earliest of equals.
    """
    # by process, then by API call; nodes of one graph launch by their start
    order = np.lexsort([kernels.ints(name) for name in ("start_ns", "correlation_id", "pid")])
    if np.any(order[1:] < order[:-1]):
        kernels, visible, weighed = kernels.take(order), visible[order], weighed[order]
    codes, variants = _variants(kernels)
    places, length = _named_places(kernels, visible), durations(kernels)
    columns = {"pid": kernels["pid"], "variant": codes.astype(np.int64)}
    groups = group_by(Frame(columns), ("pid", "variant"))
    warm = rows_before(groups.codes) > 0
    order = rows_by_group(groups.codes)
    order = order[weighed[order]]
    graph = kernels.ints("graph_node_id") > 0
    counts = np.bincount(groups.codes[order], minlength=len(groups.keys))
    edges = np.concatenate([[0], np.cumsum(counts)]).tolist()
    found: list[Portion] = []
    for (pid, variant), (low, high) in zip(groups.keys, pairwise(edges), strict=True):
        if low == high:
            continue
        rows = order[low:high]
        seen = rows[visible[rows]]
        sample = None
        if len(seen):
            row = _nearest_median(length, seen[warm[seen]] if warm[seen].any() else seen[-1:])
            shape = _shapes_at(kernels, [row])[0]
            sample = Sample(int(length[row]), int(places[row]), shape)
        of, weight = variants[int(variant or 0)], int(length[rows].sum())
        in_graph = bool(graph[rows].any())
        found.append(Portion(of, int(pid or 0), high - low, weight, sample, in_graph))
    return found


def _nearest_median(length: Ints, rows: Ints) -> int:
    """The first of these rows whose length is nearest the median of theirs."""
    # twice the distance to the median, so that the mean of two middle values stays exact
    lengths, middle = length[rows], [(len(rows) - 1) // 2, len(rows) // 2]
    return int(rows[np.argmin(np.abs(2 * lengths - np.partition(lengths, middle)[middle].sum()))])
