"""What a rule is: when it is true, what it costs, how it is said, what mending it is worth."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any

from nsightpy.analysis.findings.evidence import Evidence, JobEvidence
from nsightpy.analysis.findings.gains import Replayable
from nsightpy.analysis.findings.groups import Group, Place
from nsightpy.analysis.work_graph.replay import Edit
from nsightpy.names import brief_kernel
from nsightpy.results import Finding
from nsightpy.units import counted, format_bytes, format_count, format_time, significant

WARNING, INFO, ERROR = "warning", "info", "error"
# A part that is said where something is true, and what is said else: <idle.host|: {idle.host}>.
_PART = re.compile(r"<([^<>|]+)\|([^<>|]*)(?:\|([^<>|]*))?>")


def percent_text(share: float) -> str:
    """A share of a window, as it is said to people: 12 %, 3.4 %; never 100 % of what is less."""
    if 0.995 <= share < 1:
        return f"{100 * share:.1f} %"
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.1f} %"


@dataclass(frozen=True)
class Rule:
    """One conclusion about a device in its window.

    `ns` is the time that it costs there, `of` the group (evidence.GROUPS) that it is about, whose
    worst place is shown, and its name where it is about a `kernel`. `text` holds figures of the
    evidence in braces with their unit, those of the group as {group.count}, and {loss}: the time,
    its share of the window and per iteration; <condition|text|otherwise> is said where a figure, or
    a condition of `when`, is true. `next` is the command to go on with, about that device `alone`
    or all; `most` the highest severity; `passed` says the opposite. `time` is what the time
    consists of by name: findings that name the same time are one fact, which the first of the most
    severe rules tells. Where removing the cause does not give the time back (`bound` False)
    `saved` is the part that mending usually does; `edit` is what a replay takes away. `pace`: it is
    about the host's pace, which means little while code is loaded; `fact`: it is nothing to mend;
    `variant`: said only where no rule above with its id is; `every`: of whole captures and true
    of all devices.
    """

    id: str
    name: str
    ns: Callable[[Evidence], int]
    text: str
    next: str | Callable[[Evidence, JobEvidence], str]
    passed: str = ""
    when: Mapping[str, Callable[[Evidence], object]] = field(default_factory=dict)
    of: str | Callable[[Evidence], str] = ""
    place: Callable[[Evidence], Place | None] | None = None
    time: Callable[[Evidence], Mapping[str, int]] | None = None
    whole_ns: Callable[[Evidence], int] = lambda row: row.window_ns
    most: Callable[[Evidence], str] = lambda _: WARNING
    edit: Callable[[Finding, Replayable], list[Edit]] | None = None
    bound: bool = True
    saved: float = 1.0
    alone: bool = True
    pace: bool = False
    fact: bool = False
    variant: bool = False
    every: bool = False
    kernel: bool = False

    def group(self, row: Evidence) -> Group:
        """The operations that it is about."""
        return row[self.of if isinstance(self.of, str) else self.of(row)]

    def parts(self, row: Evidence) -> Mapping[str, int]:
        """What the time of a device consists of, by name."""
        if self.time is not None:
            return self.time(row)
        return self.group(row).by_name or {self.id: self.ns(row)}

    def worst(self, row: Evidence) -> Place | None:
        """Where it is worst."""
        if self.place is not None:
            return self.place(row)
        return self.group(row).worst if self.of else row.idle.worst.get(self.id)

    def sentence(self, row: Evidence) -> str:
        """The sentence about a device, its figures filled in."""
        loss_ns, group = self.ns(row), self.group(row)
        share = loss_ns / max(self.whole_ns(row), 1)
        of_window = f"{percent_text(share)} of {row.span}{row.per_iteration(loss_ns)}"
        figures = {
            "group": group,
            "loss_ns": loss_ns,
            "share": share,
            "of_window": of_window,
            "loss": f"{format_time(loss_ns)}, {of_window}",
            "of_work": group.work_ns / max(row["kernels"].work_ns, 1),
            "call": row.idle.calls.get(self.id, ""),
        }
        sentences = _Sentences(row, figures)

        def chosen(part: re.Match[str]) -> str:
            condition = self.when.get(part[1])
            is_so = condition(row) if condition else sentences.get_field(part[1], (), {})[0]
            return part[2] if is_so else part[3] or ""

        # names are filled in last: what they hold is no part of the sentence
        return sentences.vformat(_PART.sub(chosen, self.text), (), {})


class _Sentences(Formatter):
    """Fills in the figures of a row of the evidence, in their units."""

    units: Mapping[str, Callable[[Any], str]] = {
        "": str,
        "time": format_time,
        "bytes": lambda size: format_bytes(size) if size else "an unknown amount",
        "count": format_count,
        "number": significant,
        "share": percent_text,
        "kernel": brief_kernel,
        "times": lambda count: "once" if count == 1 else f"{format_count(count)} times",
        "kernels": lambda count: counted(count, "kernel"),
        "copies": lambda count: counted(count, "copy", "copies"),
        "launches": lambda count: counted(count, "launch", "launches"),
        "blocks": lambda count: counted(count, "block"),
        "threads": lambda count: counted(count, "thread"),
        "collectives": lambda count: counted(count, "collective"),
    }

    def __init__(self, row: Evidence, figures: Mapping[str, Any]) -> None:
        self.row, self.figures = row, figures

    def get_value(self, key: int | str, *_: Any) -> Any:
        """A figure of the finding, else one of the row."""
        return self.figures[str(key)] if key in self.figures else getattr(self.row, str(key))

    def format_field(self, value: Any, format_spec: str) -> str:
        """A figure in its unit."""
        return self.units[format_spec](value)
