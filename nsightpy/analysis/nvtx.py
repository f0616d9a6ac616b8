"""NVTX ranges grouped by what they name."""

from __future__ import annotations

import re

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.tally import Tally, tally
from nsightpy.frames import Frame, Labels

# What frameworks append to tell instances of one range apart: ", op_id = 12", ", seq = 7".
_SUFFIX = re.compile(r"(?:, (?:op_id|seq|sizes|input_op_ids|thread)\b *=? *(?:\[.*\]|[^,]*))+$")


def plain_name(name: str) -> str:
    """A range's name without framework suffixes."""
    return _SUFFIX.sub("", name)


def folded(names: Labels) -> Labels:
    """Names without framework suffixes, equal ones sharing a code."""
    return Labels(names.codes, tuple(map(plain_name, names.values))).merged()


def tally_ranges(ranges: Frame) -> Tally:
    """Durations (ns) per (name, domain, style), framework suffixes folded."""
    frame = Frame({**ranges, "name": folded(ranges.labels("name"))})
    groups = group_by(frame, ("name", "domain", "style"))
    return tally(groups.codes, frame.ints("end_ns") - frame.ints("start_ns"), groups.keys)
