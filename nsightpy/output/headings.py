"""Column names as people say them: the names are for machines, these stand above tables."""

from __future__ import annotations

import re

from nsightpy.results import Field

_ENDS = (
    (r"_gb_per_s$", " GB/s"),
    (r"flops_per_s$", "FLOP/s"),
    (r"_per_s$", "/s"),
    (r"_share$", " %"),
    (r"_med$", " median"),
    (r"^gpu_", "GPU "),
)
_UNIT = re.compile(r" \((?:ns|MB)\)$")


def heading(field: Field) -> str:
    """What stands above a column: its own words, or its name without unit and underscores."""
    name = field.name
    if field.heading:
        return field.heading
    if " " in name or not name.islower():
        text = _UNIT.sub("", name)
        return text.lower() if text in ("Avg", "Min", "Max", "Name", "Operation", "Count") else text
    words = re.sub(r"_(?:ns|bytes|pct)$", "", name)
    for end, said in _ENDS:
        words = re.sub(end, said, words)
    return words.replace("_", " ")


# Causes of idle time; one that is not here is the id of its finding.
_WORDS = {
    "queued": "launched, not begun",
    "unknown": "not known",
    "exposed-communication": "exposed-communication (MPI)",
}
_IDLE = "idle: "


def cause_words(cause: str) -> str:
    """A cause as people read it, also behind `idle: ` in a part of a compared unit."""
    start = _IDLE if cause.startswith(_IDLE) else ""
    cause = cause.removeprefix(start)
    return start + _WORDS.get(cause, cause)
