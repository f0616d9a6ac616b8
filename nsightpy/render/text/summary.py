"""The summary on one screen: who, where the time went, what stands out, what to type next."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, compress
from typing import TYPE_CHECKING, Any

from nsightpy.output.escape import printable
from nsightpy.render.text import layout
from nsightpy.render.text.layout import shorten, styled
from nsightpy.render.text.summary_bars import (
    MOST_DEVICES,
    categories_text,
    device_bars,
    idle_causes,
    outside_capture,
    report_names,
)
from nsightpy.render.text.terminal import by_importance, people_columns
from nsightpy.results import Summary, Table, ns_of, number
from nsightpy.results.findings import finding_record, unsaid, worth
from nsightpy.units import format_time

if TYPE_CHECKING:
    from rich.console import Console

MOST_LINES = 45
# How many rows of each table, findings in full and notes: the first with which all fits.
FITS = ((5, 3, 2), (5, 1, 2), (5, 1, 1), (4, 1, 1), (3, 1, 1), (2, 1, 1), (2, 1, 0), (1, 1, 0))
MOST_COLUMNS = 6
MOST_FINDINGS = 3
PIPED_WIDTH = 100
# What takes a smaller part of the devices' time is no copy, and no range, to be named here.
LEAST_COPY = 0.01
LEAST_RANGE = 0.1
TITLES = {
    "kernels": "kernel",
    "collectives": "collective",
    "memory": "copy or memory set",
    "nvtx": "code range",
}


def print_summary(summary: Summary, out: Console, rows: int | None = None) -> None:
    """Print all sections that have something to say, in at most 45 lines."""
    for most in FITS:
        sections = _sections(summary, out.width, *most)
        if sum(map(len, sections)) + len(sections) - 1 <= MOST_LINES:
            break
    for line in list(chain.from_iterable(["", *lines] for lines in sections))[1:]:
        out.print(line)


def _sections(
    summary: Summary, width: int, rows: int, findings: int, notes: int
) -> list[list[Any]]:
    """The lines of each section; those without any say nothing."""
    sections = [
        _header(summary, width),
        _devices(summary, width),
        *(_columns(summary, name, width, rows) for name in TITLES),
        _findings(summary, width, findings),
        _notes(summary, width, notes),
        [f"Next: {printable(command)}" for command, _ in summary.next_steps[:1]],
    ]
    return [lines for lines in sections if lines]


def _header(summary: Summary, width: int) -> list[Any]:
    more = f" and {len(summary.inputs) - 1} more" if len(summary.inputs) > 1 else ""
    name = shorten(printable(summary.inputs[0]), max(width - len(more), 20))
    lines: list[Any] = [styled(f"{name}{more}", "bold")]
    if summary.sections["breakdown"].rows:  # else what stands out says so
        lines += _wrapped(summary.verdict, width, "  ", "  ")
    return lines + [
        f"  {f'{label}  ':<9}{shorten(printable(value), width - max(len(label) + 4, 11))}"
        for label, value in summary.header_lines()
    ]


def _devices(summary: Summary, width: int) -> list[Any]:
    """Bars, and what they do not show: why devices were idle, what is outside."""
    budgets, header = summary.sections["breakdown"], summary.header
    if not any(record["window_ns"] for record in budgets.records()):
        return []
    names = report_names(summary.sections["ranks"])
    texts = (
        idle_causes(budgets, names),
        str(header.get("steady") or ""),
        outside_capture(header),
    )
    window = format_time(max(ns_of(record, "window_ns") for record in budgets.records()))
    count = len(budgets)
    few = f", the {MOST_DEVICES} least busy of {count} devices" * (count > MOST_DEVICES)
    return [
        styled(f"Where the device time went (window {window}{few})", "bold"),
        *device_bars(budgets, width, names),
        *(line for text in texts for line in _wrapped(text, width, " " * 11, " " * 13)),
    ]


def _columns(summary: Summary, name: str, width: int, rows: int) -> list[Any]:
    """The first rows of a section: its most important columns, what they are about under a title
    of its own."""
    table = _worth_saying(summary, name)
    table = replace(table, rows=table.rows[:rows])
    if not table.rows:
        return []
    keys = by_importance([field for field in table.fields if field.importance])[:MOST_COLUMNS]
    fields = (
        replace(field, heading=TITLES[name]) if field.kind == "name" else field
        for field in table.fields
    )
    shown = [c for c in people_columns(replace(table, fields=tuple(fields))) if c.key in keys]
    limit = width - 2 if width < layout.UNLIMITED else width
    kept, _ = layout.fitted(shown, limit, keys)
    lines: list[Any] = [
        styled("  ") + line for line in layout.lines(kept, limit, rule=False, fold=False)
    ]
    if name == "kernels":
        text = categories_text(summary.sections["categories"])
        lines += [shorten(text, min(width, PIPED_WIDTH))] if text else []
    return lines


def _worth_saying(summary: Summary, name: str) -> Table:
    """A section without copies, and ranges after the second, of little time."""
    table = summary.sections[name]
    if name == "memory":
        windows = summary.sections["breakdown"].column("window_ns")
        least, sure = LEAST_COPY * sum(map(number, windows)), 0
        times = table.column("Total Time (ns)")
    elif name == "nvtx":
        times = table.column("total_range_ns")
        least, sure = LEAST_RANGE * max(map(number, times), default=0), 2
    else:
        return table
    keep = [index < sure or number(time) >= least for index, time in enumerate(times)]
    return replace(table, rows=tuple(compress(table.rows, keep)))


def _findings(summary: Summary, width: int, whole: int) -> list[Any]:
    """The first findings in full, of the next what they could give back."""
    lines = []
    for index, finding in enumerate(summary.stands_out[:MOST_FINDINGS]):
        says = finding.text if index < whole else worth(finding_record(finding))
        lines += _wrapped(": ".join(filter(None, (finding.name, says))), width, "  ! ", "    ")
    more = len(summary.own_findings) - min(len(summary.stands_out), MOST_FINDINGS)
    return _titled("What stands out", lines, more, "nsightpy findings")


def _notes(summary: Summary, width: int, most: int) -> list[Any]:
    notes = unsaid(summary.notes, [finding.text for finding in summary.findings])
    lines = [line for note in notes[:most] for line in _wrapped(note, width, "  - ", "    ")]
    return _titled("About this capture", lines, len(notes) - most, "nsightpy info")


def _titled(title: str, lines: list[str], more: int, command: str) -> list[Any]:
    """The lines under their title, and what shows the others."""
    rest = [f"  - {more} more: {command}"] if more > 0 else []
    return [styled(title, "bold"), *lines, *rest] if lines or rest else []


def _wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    limit = width if width < layout.UNLIMITED else PIPED_WIDTH
    return layout.wrapped(printable(text), limit, first, rest, cut=False)
