"""The summary on one screen: who, where the time went, what stands out, what to type next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from nsightpy.render.escape import printable
from nsightpy.render.text.layout import UNLIMITED, Shown, lines
from nsightpy.render.text.shortening import shorten
from nsightpy.render.text.summary_bars import (
    device_bars,
    idle_causes,
    longest_gap,
    ns_of,
    opaque_text,
    outside_capture,
    outside_steady,
    report_names,
)
from nsightpy.results import Summary, Table, Value
from nsightpy.results.verdict import verdict_of
from nsightpy.units import (
    format_bytes,
    format_count,
    format_time,
    significant,
)

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
        ("kernels", _kernels),
        ("collectives", _collectives),
        ("memory", _memory),
        ("nvtx", _ranges),
    )
    for name, build in builders:
        table = summary.sections[name]
        if table.rows:
            more = _around_bars(summary, width) if name == "breakdown" else []
            opaque = opaque_text(summary.sections["breakdown"]) if name == "kernels" else ""
            title = _SECTION_TITLES[name] + opaque
            if name == "nvtx" and summary.header.get("steady"):
                title += ", whole capture"
            yield title, [*build(table, width), *more]
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
    head = summary.header
    duration, kernels = head["duration_ns"], head["kernels"]
    when = str(head["start_utc"] or "")[:19].replace("T", " ")
    parts = [
        ("GPU", head["gpu"] or "unknown"),
        ("Ran", _ran(head)),
        (
            "Capture",
            ", ".join(
                part
                for part in (
                    format_time(duration) if isinstance(duration, int | float) else "",
                    f"{when} UTC" if when else "",
                    _tool(str(head["tool_version"] or "")),
                )
                if part
            )
            or "no times or versions in the export",
        ),
        ("Kernels", format_count(kernels if isinstance(kernels, int) else None)),
    ]
    facts: list[object] = [
        f"  {label:<9}{shorten(printable(str(value)), width - 11)}" for label, value in parts
    ]
    if not summary.sections["breakdown"].rows:  # what stands out says so
        return facts
    return [*_wrapped(printable(verdict_of(summary)), width, "  ", "  "), *facts]


def _tool(version: str) -> str:
    """A bare number is a version of nsys."""
    return f"nsys {version}" if version[:1].isdigit() else version


def _ran(head: Mapping[str, Value]) -> str:
    counts = [
        _plural(head["processes"], "process", "processes"),
        _plural(head["devices"], "device", "devices"),
        _plural(head["ranks"], "rank", "ranks") if head["ranks"] else "",
    ]
    hosts = f" on {head['hosts']}" if head["hosts"] else ""
    return ", ".join(count for count in counts if count) + hosts


def _plural(count: Value, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _kernels(table: Table, width: int) -> list[object]:
    return _columns(
        table,
        width,
        (
            ("Time (%)", "%"),
            ("Total Time (ns)", "total"),
            ("Instances", "count"),
            ("Med (ns)", "median"),
        ),
        "Name",
    )


def _collectives(table: Table, width: int) -> list[object]:
    return _columns(
        table,
        width,
        (
            ("total_ns", "total"),
            ("instances", "count"),
            ("duration_med_ns", "median"),
            ("ranks", "ranks"),
        ),
        "operation",
    )


def _ranges(table: Table, width: int) -> list[object]:
    return _columns(
        table,
        width,
        (
            ("total_range_ns", "total"),
            ("instances", "count"),
            ("range_med_ns", "median"),
            ("domain", "domain"),
        ),
        "range",
    )


def _memory(table: Table, width: int) -> list[object]:
    texts: list[object] = []
    for record in table.records():
        size = record["Total (MB)"]
        speed = record["throughput_gb_per_s"]
        rate = (
            f"{significant(float(speed), 3 if speed >= 1 else 1)} GB/s"
            if isinstance(speed, float) and size
            else "-"
        )
        texts.append(
            f"  {str(record['Operation']).strip('[]').removeprefix('CUDA '):<34}"
            f"{format_time(ns_of(record, 'Total Time (ns)')):>9}"
            f"{format_count(int(record['Count'] or 0)):>9} x"
            f"{_size(float(size or 0)):>10}{rate:>13}"
        )
    return texts


def _size(megabytes: float) -> str:
    return format_bytes(megabytes * 1e6) if megabytes else "< 1 KB"


def _columns(
    table: Table, width: int, figures: Sequence[tuple[str, str]], name: str
) -> list[object]:
    """Some figures of a table, times in one unit, then the name in what room is left."""
    shown = []
    for key, heading in figures:
        values = table.column(key)
        shown.append(_figure(heading, key, values))
    names = tuple(printable(str(value)) for value in table.column(name))
    shown.append(Shown("name", names, True))
    limit = width - 2 if width < UNLIMITED else UNLIMITED
    from rich.text import Text

    return [Text("  ") + line for line in lines(shown, limit, rule=False, fold=False)]


def _figure(heading: str, key: str, values: Sequence[Value]) -> Shown:
    if key.endswith(("_ns", "(ns)")):
        cells = tuple(format_time(v) if isinstance(v, int | float) else "-" for v in values)
        return Shown(heading, cells, False)
    cells = tuple(
        f"{v:.1f}"
        if isinstance(v, float)
        else f"{v:,}"
        if isinstance(v, int)
        else printable(str(v or "-"))
        for v in values
    )
    return Shown(heading, cells, key == "domain")


def _findings(summary: Summary, width: int) -> list[object]:
    return [
        line
        for finding in summary.findings[:MOST_FINDINGS]
        for line in _wrapped(
            f"{printable(finding.name)}: {printable(finding.text)}", width, "  ! ", "    "
        )
    ]


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
