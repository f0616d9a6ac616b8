"""Summaries: sections by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from nsightpy.results.findings import Finding, finding_record, findings_table, worth
from nsightpy.results.keys import Value, ns_of, number
from nsightpy.results.tables import Table, with_notes
from nsightpy.units import counted, format_time, share_text

# The parts that a window divides into, as the verdict names them.
PARTS = {
    "compute_ns": "computed",
    "exposed_communication_ns": "communicated alone",
    "copy_only_ns": "copied alone",
    "idle_ns": "idled",
}
LEAST_SHARE = 0.001  # smaller parts of a window are not named
# The finding that stands in the header.
NO_STEPS = "no-steady-state"


@dataclass(frozen=True)
class Summary:
    """One screen about one or more reports: sections by name."""

    inputs: tuple[str, ...]
    header: Mapping[str, Value]
    sections: Mapping[str, Table]
    findings: tuple[Finding, ...]
    next_steps: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()
    abstentions: tuple[Mapping[str, str], ...] = ()
    command: ClassVar[str] = "summarize"

    @property
    def own_findings(self) -> list[Finding]:
        """The findings that are no part of another one, nor a line of the header."""
        return [one for one in self.findings if not one.part_of and one.id != NO_STEPS]

    @property
    def stands_out(self) -> list[Finding]:
        """Those of them that matter, else the first one."""
        own = self.own_findings
        return [one for one in own if not one.minor] or own[:1]

    def header_lines(self) -> list[tuple[str, str]]:
        """Who ran on what, when, captured with what, and how many kernels: label and text."""
        head = self.header
        things = {"processes": "process", "devices": "device", "ranks": "rank", "kernels": "kernel"}
        ran = [
            counted(int(number(head[many])), one, many)
            for many, one in things.items()
            if head[many] or many != "ranks"
        ]
        hosts = f" on {head['hosts']}" if head["hosts"] else ""
        when = str(head["start_utc"] or "")[:19].replace("T", " ")
        version = str(head["tool_version"] or "")
        capture = [
            format_time(ns_of(head, "duration_ns")) if head["duration_ns"] is not None else "",
            f"{when} UTC" if when else "",
            f"nsys {version}" if version[:1].isdigit() else version,
        ]
        return [
            ("GPU", str(head["gpu"] or "unknown")),
            ("Ran", f"{', '.join(ran)}{hosts}"),
            ("Capture", ", ".join(filter(None, capture)) or "unknown"),
            *([("Critical path", str(path))] if (path := head.get("critical_path")) else []),
            *(("Steps", one.text) for one in self.findings if one.id == NO_STEPS),
        ]

    @property
    def verdict(self) -> str:
        """How the devices spent their time, and what to look at first, in two sentences."""
        records = self.sections["breakdown"].records()
        whole = sum(number(record["window_ns"]) for record in records)
        first = next(iter(self.stands_out), None)
        if not whole:
            text = first.text if first else "what was asked for holds no GPU time"
            return f"{text[:1].upper()}{text[1:]}."
        times = {part: sum(number(record[part]) for record in records) for part in PARTS}
        how = ", ".join(
            f"{PARTS[part]} {share_text(time, whole)}"
            for part, time in times.items()
            if time >= LEAST_SHARE * whole
        )
        when = "steady state" if self.header.get("steady") else "time"
        text = f"{counted(len(records), 'device')} {how} of the {when}."
        if first is None:
            return f"{text} Nothing stands out."
        gain = ", ".join(filter(None, (first.name, worth(finding_record(first)))))
        return f"{text} First of all: {gain}."

    @property
    def table(self) -> Table:
        """Its findings."""
        return with_notes(findings_table(self.findings), self.inputs, self.notes)

    def to_dict(self) -> dict[str, Any]:
        """The sections by name, as plain JSON values."""
        return {
            "header": dict(self.header),
            **{name: list(table.keyed()) for name, table in self.sections.items()},
            "findings": list(findings_table(self.findings).keyed()),
            "next_steps": [{"command": command, "why": why} for command, why in self.next_steps],
        }
