"""The summary on one screen: who, where the time went, what stands out, what to type next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from nsightpy.output.escape import printable
from nsightpy.render.text.layout import UNLIMITED, lines
from nsightpy.render.text.shortening import shorten
from nsightpy.render.text.summary_bars import (
    device_bars,
    idle_causes,
    longest_gap,
    opaque_text,
    outside_capture,
    outside_steady,
    report_names,
)
from nsightpy.render.text.terminal import shown_column
from nsightpy.results import Summary, Table, Value
from nsightpy.results.verdict import verdict_of

if TYPE_CHECKING:
    from rich.console import Console

Record: TypeAlias = dict[str, Value]

MOST_FINDINGS = 3
MOST_NOTES = 4
PIPED_WIDTH = 100


def print_summary(summary: Summary, out: Console) -> None:
    """Print all sections that have something to say."""
    from rich.text import Text

    first = True
    for title, section in _sections(summary, out.width):
        if not first:
            out.print()
        first = False
        out.print(Text(title, style="bold"))
        for line in section:
            out.print(line)


def _sections(summary: Summary, width: int) -> Iterator[tuple[str, list[object]]]:
    yield _title(summary, width), _header(summary, width)
    builders: tuple[tuple[str, Callable[[Table, int], list[object]]], ...] = (
        ("breakdown", partial(device_bars, names=report_names(summary.sections["ranks"]))),
        *((name, _columns) for name in _COLUMNS),
    )
    for name, build in builders:
        table = summary.sections[name]
        if table.rows:
            more = _around_bars(summary, width) if name == "breakdown" else []
            opaque = opaque_text(summary.sections["breakdown"]) if name == "kernels" else ""
            yield _SECTION_TITLES[name] + opaque, [*build(table, width), *more]
    if summary.findings:
        yield "What stands out", _findings(summary, width)
    notes = unsaid(summary.notes, [finding.text for finding in summary.findings[:MOST_FINDINGS]])
    if notes:
        yield "About this capture", _notes(notes, width)
    if summary.next_steps:
        yield "Next", [f"  {printable(command)}" for command, _ in summary.next_steps]


def _around_bars(summary: Summary, width: int) -> list[object]:
    """What the bars do not show: why devices were idle, the longest gap, what lies outside."""
    sections = summary.sections
    names = report_names(sections["ranks"])
    texts = [*idle_causes(sections["idle"], names), *longest_gap(sections["gaps"], names)]
    texts += outside_steady(summary.header)
    indent = " " * 11
    wrapped = [line for text in texts for line in _wrapped(text, width, indent, f"{indent}  ")]
    return [*wrapped, *outside_capture(summary.header)]


_COLUMNS = {
    "kernels": "Time (%), Total Time (ns), Instances, Med (ns), Name",
    "collectives": "total_ns, instances, duration_med_ns, ranks, operation",
    "memory": "Total Time (ns), Count, Total (MB), throughput_gb_per_s, Operation",
    "nvtx": "total_range_ns, instances, range_med_ns, domain, range",
}
_SECTION_TITLES = {
    "breakdown": "Where the device time went",
    "kernels": "Kernels by GPU time",
    "collectives": "Collectives",
    "memory": "Copies and memory sets",
    "nvtx": "Code ranges by host time",
}


def _title(summary: Summary, width: int) -> str:
    name = printable(summary.inputs[0])
    more = f" and {len(summary.inputs) - 1} more" if len(summary.inputs) > 1 else ""
    return f"{shorten(name, max(width - len(more), 20))}{more}"


def _header(summary: Summary, width: int) -> list[object]:
    facts: list[object] = [
        f"  {label:<9}{shorten(printable(value), width - 11)}"
        for label, value in summary.header_lines()
    ]
    if not summary.sections["breakdown"].rows:  # what stands out says so
        return facts
    return [*_wrapped(printable(verdict_of(summary)), width, "  ", "  "), *facts]


def _columns(table: Table, width: int) -> list[object]:
    """The figures of a section, then what they are about in the space that is left."""
    from rich.text import Text

    fields = {field.name: field for field in table.fields}
    shown = [
        shown_column(table.command, fields[name], table.column(name))
        for name in _COLUMNS[table.command].split(", ")
        if any(table.column(name))
    ]
    limit = width - 2 if width < UNLIMITED else UNLIMITED
    return [Text("  ") + line for line in lines(shown, limit, rule=False, fold=False)]


def _findings(summary: Summary, width: int) -> list[object]:
    texts = [
        line
        for finding in summary.findings[:MOST_FINDINGS]
        for line in _wrapped(
            f"{printable(finding.name)}: {printable(finding.text)}", width, "  ! ", "    "
        )
    ]
    more = len(summary.findings) - MOST_FINDINGS
    return [*texts, f"  - {more} more: nsightpy findings"] if more > 0 else texts


def unsaid(notes: Sequence[str], texts: Sequence[str]) -> list[str]:
    """The notes that none of the texts holds already."""
    return [note for note in notes if not any(note.removesuffix(".") in text for text in texts)]


def _notes(notes: Sequence[str], width: int) -> list[object]:
    texts = [
        line
        for note in notes[:MOST_NOTES]
        for line in _wrapped(printable(note), width, "  - ", "    ")
    ]
    more = len(notes) - MOST_NOTES
    return [*texts, f"  - {more} more: nsightpy info"] if more > 0 else texts


def _wrapped(text: str, width: int, first: str, rest: str) -> Sequence[object]:
    import textwrap

    limit = width if width < UNLIMITED else PIPED_WIDTH
    return textwrap.wrap(
        text,
        limit,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
