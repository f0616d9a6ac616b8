"""NVTX ranges grouped by what they name: host time, projected GPU time, share of the busy time."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.nvtx.nesting import nest, paths
from nsightpy.analysis.nvtx.projection import Launched, Projection, busy_by_group
from nsightpy.analysis.tally import Key, Tally, merge, summed, tally
from nsightpy.frames import Frame, Labels

BY = ("name", "domain", "style")

# What PyTorch (emit_nvtx) appends to distinguish instances of one operator:
# "aten::mm, seq = 12, op_id = 7, sizes = [[2, 3]], input_op_ids = [(5,0)]".
_SUFFIX = re.compile(
    r",\s*(?:(?:stashed )?seq ?= ?-?\d+|op_id = \d+|sizes = \[|input_op_ids = \[|thread = \d+)"
)

# A number that is a word of its own: not the 2 of conv2d, the 16 of fp16, the 0 of MmBackward0.
_NUMBER = re.compile(r"(?<![A-Za-z0-9])\d+(?![A-Za-z0-9])")
_LIST = re.compile(r"([\[(])\s*\d+(?:\s*[,x]\s*\d+)+\s*,?\s*([\])])")


def numberless(name: str) -> str:
    """The name with * for its numbers and lists of numbers: layer 3 -> layer *, as --nvtx reads."""
    return _NUMBER.sub("*", _LIST.sub(r"\1*\2", name))


def plain_name(name: str) -> str:
    """A range's name without what frameworks append to distinguish its instances."""
    suffix = _SUFFIX.search(name)
    return name[: suffix.start()] if suffix else name


def folded(names: Labels) -> Labels:
    """Names without framework suffixes, equal ones sharing a code."""
    return names.renamed(plain_name)


@dataclass(frozen=True, slots=True)
class RangeTallies:
    """Ranges by (name or path, domain, style); what several reports merge. Times in ns.

    `ranges` and `projected` tally lengths; the latter only of instances with operations. `work` by
    key: how many operations the range's own thread launched, and how many others did; for how long
    any of the latter ran, and any of both. `whole_busy_ns`: for how long anything ran.
    `known`: whether calls that launch were recorded; `outside_ns` of the `work_ns` of all
    operations was launched inside no range.
    """

    ranges: Tally
    projected: Tally
    work: Mapping[Key, Sequence[float]]
    whole_busy_ns: int
    known: bool = True
    outside_ns: int = 0
    work_ns: int = 0


def tally_ranges(ranges: Frame) -> Tally:
    """Durations (ns) per (name, domain, style), framework suffixes folded."""
    groups = group_by(Frame({**ranges, "name": folded(ranges.labels("name"))}), BY)
    return tally(groups.codes, ranges.ints("end_ns") - ranges.ints("start_ns"), groups.keys)


def range_tallies(
    ranges: Frame,
    operations: Frame,
    launches: Launched,
    projection: Projection,
    attributed: tuple[Launched, Projection] | None = None,
    *,
    tree: bool = False,
    fold: bool = False,
) -> RangeTallies:
    """Ranges (RANGE_COLUMNS) and what they launched, by name or by path in the tree of ranges.

    With `fold`, ranges that differ in their numbers only are one, and a name alone stays as it is.
    `launches`: which calls launched the operations (OPERATION_COLUMNS), `projection` where the
    ranges are on the GPU; `attributed` the same of calls for which the ranges' threads waited.
    """
    names = folded(ranges.labels("name"))
    if fold:
        used = (names.values[code] for code in np.unique(names.codes).tolist())
        alike = Counter(map(numberless, used))
        names = names.renamed(lambda name: star if alike[star := numberless(name)] > 1 else name)
    if tree:
        names = paths(names, nest(ranges))
    groups = group_by(Frame({**ranges, "name": names}), BY)
    found = projection.found
    lengths = ranges.ints("end_ns") - ranges.ints("start_ns")
    waited = () if attributed is None else (attributed,)
    attributed_ns, _ = busy_by_group(groups, operations, *waited)
    busy, whole = busy_by_group(groups, operations, (launches, projection), *waited)

    theirs = sum((each.operations for _, each in waited), np.zeros(ranges.rows))
    counts = (np.bincount(groups.codes, n, len(busy)) for n in (projection.operations, theirs))
    figures = (*(each.astype(np.int64) for each in counts), attributed_ns, busy)
    return RangeTallies(
        tally(groups.codes, lengths, groups.keys),
        tally(groups.codes[found], projection.length[found], groups.keys),
        dict(zip(groups.keys, np.column_stack(figures).tolist(), strict=True)),
        whole,
    )


def merged(parts: Sequence[RangeTallies]) -> RangeTallies:
    """The tallies of several reports as one."""
    return RangeTallies(
        merge([part.ranges for part in parts]),
        merge([part.projected for part in parts]),
        summed(part.work for part in parts),
        sum(part.whole_busy_ns for part in parts),
        any(part.known for part in parts),
        sum(part.outside_ns for part in parts),
        sum(part.work_ns for part in parts),
    )
