"""A comparison on one screen: the sides, the verdict, what adds up to it, and what to type next.

Its tables are columns of text for every format: parts, changes, other names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nsightpy.output import sentences
from nsightpy.output.cells import cause_words, cell
from nsightpy.output.escape import display_width, printable
from nsightpy.render.text.layout import UNLIMITED, Shown, fitted, lines, shorten, styled, wrapped
from nsightpy.results import Field, Value
from nsightpy.results.comparison import (
    CANNOT_TELL,
    FASTER,
    FULL_NAME,
    LEAST_SHARE,
    SAME,
    SLOWER,
    ComparedQuantity,
    Comparison,
)
from nsightpy.units import counted, significant

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

PIPED_WIDTH = 140
LABEL = 9
STYLES = {SLOWER: "bold red", FASTER: "bold green", CANNOT_TELL: "bold yellow"}
# Rows of changes and of other names; of ranges or categories.
MOST_ROWS, MOST_RANGES = 10, 5
# The most telling first: a narrow terminal leaves out from the end.
IMPORTANCE = (
    *("name", "delta_ns", "verdict", "after_ns", "before_ns", "interval"),
    *("delta_from_duration_ns", "delta_from_count_ns"),
)
_HEADINGS = {
    "before_ns": "before",
    "after_ns": "after",
    "delta_ns": "change",
    "delta_from_count_ns": "by count",
    "delta_from_duration_ns": "by time",
}
_TIME, _CHANGE = Field("before_ns", "time"), Field("delta_ns", "time")


def print_comparison(result: Comparison, out: Console, _: int | None = None) -> None:
    """Print the comparison in the console's width."""
    width = out.width if out.width < UNLIMITED else PIPED_WIDTH
    for line in _head(result, width, out.width - LABEL):
        out.print(line)
    tables = [] if result.noise is not None else [*_tables(result, out.width)]
    # names are cut on a terminal only
    for title, table in (*tables, ("Next", [*_next(result, out.width)])):
        if table:
            out.print()
            out.print(styled(title, "bold"))
        for line in table:
            out.print(line)


def _head(result: Comparison, width: int, widest: int) -> Iterator[Text]:
    """What is compared, what differs, and the answer."""
    space = width - LABEL
    if result.noise is not None:
        yield from _labelled("Runs", [shorten(sentences.noise_runs(result), space)])
        yield from _labelled("Noise", wrapped(sentences.noise_line(result.noise), space), "bold")
        return
    for label, side in (("Before", result.before), ("After", result.after)):
        size = sentences.side_size(side, result.unit)
        name = shorten(sentences.side_name(side), space - len(size) - 2)
        yield from _labelled(label, [shorten(f"{name}, {size}", space)])
    for label, text in sentences.circumstances(result):
        whole = label == "Differs"
        yield from _labelled(label, wrapped(text, space) if whole else [shorten(text, widest)])
    style = STYLES.get(result.step.verdict, "bold")
    yield from _labelled("Answer", wrapped(sentences.answer(result), space), style)
    yield from _labelled("", wrapped(sentences.confidence(result), space))
    if result.gate is not None:
        style = "bold red" if result.gate.failed else "bold"
        yield from _labelled("Gate", wrapped(sentences.gate_line(result.gate), space), style)


def _labelled(label: str, lines: Sequence[str], style: str = "") -> Iterator[Text]:
    """The lines behind a label."""
    for index, line in enumerate(lines):
        start = styled(f"{label if index == 0 else '':<{LABEL}}", "dim")
        yield start.append(line, style=f"not dim {style}".strip())


def _tables(result: Comparison, width: int) -> Iterator[tuple[str, list[Text]]]:
    """The tables in this width."""
    for section in sections(result):
        kept, _ = fitted(section.filled, width - 2, IMPORTANCE)
        table = [styled("  ", "").append_text(line) for line in lines(kept, width - 2, rule=False)]
        rest = [styled(f"  {section.rest}", "dim")] if section.rest else []
        yield section.title, [*table * bool(kept), *rest]


def _next(result: Comparison, width: int) -> Iterator[Text]:
    """Commands, never cut, with what they are for where there is space."""
    steps = result.next_steps
    if result.noise is not None:
        command = f"nsightpy compare {sentences.gate_options(result.noise)} BEFORE... -- AFTER..."
        steps = ((command, "a gate on this floor"),)
    for command, why in steps:
        line, reason = f"  {printable(command)}", f"  # {printable(why)}"
        yield styled(line + reason * (display_width(line + reason) <= width), "not dim")


class Section(NamedTuple):
    """A table under its title, and how many more rows there are."""

    title: str
    columns: Sequence[Shown]
    rest: str = ""

    @property
    def filled(self) -> list[Shown]:
        """The columns that say anything."""
        return [column for column in self.columns if set(column.cells) - {"-", ""}]


def sections(result: Comparison) -> Iterator[Section]:
    """The parts, what changed most, the ranges, what kernels compute, what has another name."""
    parts = sentences.shown_parts(result)
    names = tuple(cause_words(part.name) for part in parts)
    columns = [Shown(sentences.unit_name(result), names, True, "name", own=True)]
    columns += [_times("before_ns", parts), _times("after_ns", parts), *_changes(parts)]
    title = f"Parts of the {result.unit}: their changes add up" if result.parts else "In all"
    yield Section(title, columns)
    changed = sentences.contributors(result)
    kinds = {"kernel": "kernels", "collective": "collectives"}
    named = " and ".join(kinds[kind] for kind in kinds if any(q.section == kind for q in changed))
    of = "" if result.unit == "launch" else f" per {result.unit}"
    categories = result.categories if len(result.categories) > 1 else ()
    for title, quantities, most in (
        (f"{named.capitalize()} by change{of}", changed, MOST_ROWS),
        ("Ranges: their time lies within the parts above", result.ranges, MOST_RANGES),
        ("What kernels compute: all kernels above", categories, MOST_RANGES),
    ):
        if quantities:
            yield _most_changed(title, quantities, result.top or most, result.step)
    if renamed := [row for row in changed if row.matched_by not in (FULL_NAME, "")]:
        cells = [
            pair
            for row in renamed[:MOST_ROWS]
            for pair in ((row.matched_by, row.before_name), ("", f"-> {row.name}"))
        ]
        why, both = zip(*cells, strict=True)
        columns = [
            Shown("matched by", why, True, own=True),
            Shown("name", tuple(map(printable, both)), True, is_name=True),
        ]
        yield Section("Under another name", columns)


def _most_changed(
    title: str, rows: Sequence[ComparedQuantity], most: int, step: ComparedQuantity
) -> Section:
    """The rows with the largest changes; what all others change together."""
    least = max(LEAST_SHARE * (step.before_ns or 0), 1)
    shown = [row for row in rows if row.verdict != SAME and abs(row.delta_ns) >= least][:most]
    together = sum(row.delta_ns for row in rows) - sum(row.delta_ns for row in shown)
    left = len(rows) - len(shown)
    more = f"and {counted(left, 'more row')}"
    more = more if shown else f"{counted(left, 'row')} without a change beyond the limits"
    rest = f"{more}, {cell(_CHANGE, together)} together" if left else ""
    names = Shown("name", tuple(printable(row.name) for row in shown), True, "name", is_name=True)
    return Section(title, [*_changes(shown), *_circumstances(shown), names], rest)


def _times(column: str, rows: Sequence[ComparedQuantity]) -> Shown:
    values = (cell(_CHANGE if "delta" in column else _TIME, getattr(row, column)) for row in rows)
    return Shown(_HEADINGS[column], tuple(values), False, column)


def _changes(rows: Sequence[ComparedQuantity]) -> Iterator[Shown]:
    """How much, by count and by duration of launches, how sure."""
    yield _times("delta_ns", rows)
    for column in ("delta_from_count_ns", "delta_from_duration_ns"):
        if any(row.delta_from_count_ns for row in rows):
            yield _times(column, rows)
    percents = (sentences.percent_change(row.ratio).removesuffix(" %") for row in rows)
    yield Shown("%", tuple(percents), False)
    yield Shown("interval", tuple(map(sentences.interval, rows)), False, "interval")
    verdicts = (row.verdict if row.ratio_low or row.verdict != CANNOT_TELL else "" for row in rows)
    yield Shown("verdict", tuple(verdicts), False, "verdict")  # no text, so that none is cut


def _circumstances(rows: Sequence[ComparedQuantity]) -> Iterator[Shown]:
    """What ncu measured on both sides, and launches."""
    for name in dict.fromkeys(name for row in rows for name, _, _ in row.figures):
        heading = name.removesuffix("_pct").replace("_", " ") + " %" * name.endswith("_pct")
        cells = (
            next((_both(*sides) for figure, *sides in row.figures if figure == name), "-")
            for row in rows
        )
        yield Shown(printable(heading), tuple(cells), False)
    launches = tuple(_both(row.before_count, row.after_count) for row in rows)
    yield Shown("launches", launches, False)


def _both(before: Value, after: Value) -> str:
    """A figure on both sides, once where it is the same."""
    old, new = (
        significant(value, 3 if value % 1 else len(f"{value:.0f}"))
        if isinstance(value, int | float)
        else "-"
        for value in (before, after)
    )
    return old if old == new else f"{old} -> {new}"
