"""What a rule is: when it is true, what it costs, how it is said, what mending it is worth."""

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any

from nsightpy.analysis.findings.evidence import Evidence, Group, JobEvidence
from nsightpy.analysis.findings.gains import Replayable
from nsightpy.analysis.findings.thresholds import WARNING_SHARE
from nsightpy.analysis.work_graph.replay import Edit
from nsightpy.names import brief_kernel
from nsightpy.results import Finding
from nsightpy.units import counted, format_bytes, format_count, format_time, share_text, significant

WARNING, INFO, ERROR = "warning", "info", "error"
# Commands whose figures are not those of a finding's window.
OF_CAPTURES = ("info", "iterations", "memory-usage", "operators", "select")
# Commands that are about all ranks at once.
OF_ALL = ("breakdown", "collectives", "info", "iterations", "ranks")
# A part that is said where something is true, and what is said else: <host|: {host}>.
_PART = re.compile(r"<([^<>|]+)\|([^<>|]*)(?:\|([^<>|]*))?>")


def next_command(
    job: JobEvidence, asked: str, row: Evidence | None = None, *, whole: bool = False
) -> str:
    """The command line of a command about these reports, or about one device of several.

    It is about the window that findings speak of, or about the `whole` capture.
    """
    command, _, more = asked.partition(" ")
    row = None if command in OF_ALL else row
    if command in ("kernels", "launches") and not any(one["kernels"].count for one in job.used):
        command, more = "breakdown", ""
    parts = ["nsightpy", command, job.report, more, job.options]
    alone = row is not None and sum(other.rank == row.rank for other in job.devices) == 1
    if row is not None and len(job.devices) > 1:
        parts += [] if row.rank is None else [f"--rank {row.rank}"]
        parts += [] if alone and row.rank is not None else [f"--device {row.device}"]
    steady = bool(job.used) and all(one.window == "steady" for one in job.used)
    chosen = any(option.startswith("--iteration=") for option in shlex.split(job.options))
    if steady and command not in OF_CAPTURES and not (whole or chosen):
        parts.append("--iteration steady")
    return " ".join(filter(None, parts))


@dataclass(frozen=True)
class Rule:
    """One conclusion about a device in its window.

    `of` is the group (of Evidence; the one of its id) that it is about, whose worst place is
    shown, and its name where it is about a `kernel`; `ns` the time that it costs there, `alone_ns`
    of the group else, where that `matters`. `text` holds figures of the evidence in braces with
    their unit, those of the group as {group.count}, and {loss}: the time, its share of the window
    and per iteration; <condition|text|otherwise> is said where a figure, or a condition of `when`,
    is true. `next` is the command to go on with; `passed` says the opposite. `most` is the highest
    severity, from the share `least` on. Findings that name the same time (`by_name` of the group)
    are one fact, which the first of the most severe rules tells. `saved` is the part of the time
    that mending usually gives back; it is no bound of a gain where the rule is about a `kernel`, or
    a `fact` (nothing to mend), or `bound` is False. `edit` is what a replay takes away. `pace`: it
    is about the host's pace, which means little while code is loaded; `variant`: said only where no
    rule above with its id is; `every`: of whole captures and true of all devices.
    """

    id: str
    name: str
    text: str
    next: str | Callable[[Evidence, JobEvidence], str]
    passed: str = ""
    of: str | Callable[[Evidence], Group] = ""
    ns: Callable[[Evidence], int] | None = None
    matters: Callable[[Evidence], object] = lambda _: True
    when: Mapping[str, Callable[[Evidence], object]] = field(default_factory=dict)
    whole_ns: Callable[[Evidence], int] = lambda row: row.window_ns
    most: Callable[[Evidence], str] = lambda _: WARNING
    least: float = WARNING_SHARE
    edit: Callable[[Finding, Replayable], list[Edit]] | None = None
    bound: bool = True
    saved: float = 1.0
    pace: bool = False
    fact: bool = False
    variant: bool = False
    every: bool = False
    kernel: bool = False

    def group(self, row: Evidence) -> Group:
        """The operations, or the time, that it is about."""
        return row[self.of or self.id] if isinstance(self.of, str) else self.of(row)

    def cost_ns(self, row: Evidence) -> int:
        """The time that it costs a device."""
        if not self.matters(row):
            return 0
        return self.group(row).alone_ns if self.ns is None else self.ns(row)

    def share(self, row: Evidence) -> float:
        """That time as a share of the window."""
        return self.cost_ns(row) / max(self.whole_ns(row), 1)

    def severity(self, row: Evidence) -> str:
        """How severe it is there."""
        return self.most(row) if self.share(row) >= self.least else INFO

    def parts(self, row: Evidence) -> Mapping[str, int]:
        """What the time of a device consists of, by name."""
        time = self.of if isinstance(self.of, str) and self.of else self.id
        return self.group(row).by_name or {time: self.cost_ns(row)}

    def sentence(self, row: Evidence) -> str:
        """The sentence about a device, its figures filled in."""
        loss_ns, share, group = self.cost_ns(row), self.share(row), self.group(row)
        of_window = f"{share_text(share, 1)} of {row.span}{row.per_iteration(loss_ns)}"
        figures = {
            "group": group,
            "loss_ns": loss_ns,
            "share": share,
            "of_window": of_window,
            "loss": f"{format_time(loss_ns)}, {of_window}",
            "of_work": group.work_ns / max(row["kernels"].work_ns, 1),
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
        "share": lambda share: share_text(share, 1),
        "kernel": brief_kernel,
        "times": lambda count: "once" if count == 1 else f"{format_count(count)} times",
    }
    one_of: Mapping[str, str] = {"copies": "copy", "launches": "launch"}

    def __init__(self, row: Evidence, figures: Mapping[str, Any]) -> None:
        self.row, self.figures = row, figures

    def get_value(self, key: int | str, *_: Any) -> Any:
        """A figure of the finding, else one of the row."""
        if key == "groups":  # one that the row lacks is empty
            return self.row
        return self.figures[str(key)] if key in self.figures else getattr(self.row, str(key))

    def format_field(self, value: Any, format_spec: str) -> str:
        """A figure in its unit, or how many there are of what."""
        if format_spec in self.units:
            return self.units[format_spec](value)
        one = self.one_of.get(format_spec, format_spec.removesuffix("s"))
        return counted(value, one, format_spec)
