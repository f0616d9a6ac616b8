"""Tables for people: one unit per column, names cut to the terminal, nothing cut when piped."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from nsightpy.names import readable
from nsightpy.render.escape import display_width, printable
from nsightpy.results import Field, Table, Value
from nsightpy.units import TIME_UNITS, time_unit_for

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

UNLIMITED = 1_000_000
NARROWEST_NAME = 28
GAP = 2
LONGEST_RULE = 60
# Dropped first, in this order, when a terminal is too narrow for the names.
_EXPENDABLE = ("StdDev", "Min", "Max", "Med", "Avg")


@dataclass(frozen=True)
class Shown:
    """A column as text cells under a heading."""

    heading: str
    cells: tuple[str, ...]
    is_text: bool

    @property
    def width(self) -> int:
        return max(display_width(cell) for cell in (self.heading, *self.cells))


def console(stream: IO[str] | None = None, width: int | None = None) -> Console:
    """A console that colours terminals only (never with NO_COLOR), and never wraps a pipe."""
    from rich.console import Console

    stream = stream or sys.stdout
    if width is None and not stream.isatty():
        width = UNLIMITED
    return Console(
        file=stream,
        width=width,
        no_color=True if os.environ.get("NO_COLOR") else None,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
    )


def print_table(table: Table, out: Console) -> None:
    """Print a table in the console's width; columns that do not fit are named below it."""
    known = [field for field in table.fields if _is_known(table, field)]
    shown = [shown_column(field, table.column(field.name)) for field in known]
    kept, hidden = fitted(shown, out.width)
    for line in lines(kept, out.width):
        out.print(line)
    if hidden:
        names = ", ".join(column.heading for column in hidden)
        out.print(
            f"(not shown here: {names}; a wider terminal or --format csv has them)", style="dim"
        )


def lines(columns: Sequence[Shown], width: int, *, rule: bool = True) -> list[Text]:
    """Heading and rows as styled text lines no wider than `width`."""
    from rich.text import Text

    widths = _widths(columns, width)
    heading = _join([column.heading for column in columns], columns, widths)
    found = [Text(heading, style="bold" if rule else "dim")]
    if rule:
        found.append(Text("  ".join("─" * min(size, LONGEST_RULE) for size in widths), style="dim"))
    for row in range(len(columns[0].cells) if columns else 0):
        found.append(Text(_join([column.cells[row] for column in columns], columns, widths)))
    return found


def fitted(columns: Sequence[Shown], width: int) -> tuple[list[Shown], list[Shown]]:
    """The columns to show and those to leave out, so that names keep a readable width."""
    kept, hidden = list(columns), []
    for prefix in _EXPENDABLE:
        if _fits(kept, width):
            break
        gone = [column for column in kept if column.heading.startswith(prefix)]
        hidden += gone
        kept = [column for column in kept if column not in gone]
    while not _fits(kept, width) and len(kept) > 2:
        place = max((i for i, c in enumerate(kept) if not c.is_text), default=None)
        if place is None:
            break
        hidden.append(kept.pop(place))
    return kept, [column for column in columns if column in hidden]


def shorten(text: str, width: int) -> str:
    """The text in at most that many cells, its middle replaced by an ellipsis."""
    if display_width(text) <= width:
        return text
    if width <= 1:
        return "…"[:width]
    tail = (width - 1) // 3
    head = width - 1 - tail
    start, end = _cut(text, head), _cut(text[::-1], tail)[::-1]
    return f"{start}…{end}"


def number(value: Value, field: Field, scale: int = 1) -> str:
    """A figure for people: scaled to the column's unit, thousands separated."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return printable(value)
    if field.unit == "id":
        return str(value)
    if scale != 1:
        return f"{value / scale:,.3f}"
    if isinstance(value, float):
        return f"{value:,.{1 if field.decimals is None else field.decimals}f}"
    return f"{value:,}"


def _is_known(table: Table, field: Field) -> bool:
    return not table.rows or any(value is not None for value in table.column(field.name))


def shown_column(field: Field, values: Sequence[Value]) -> Shown:
    """A column as people read it: one unit, named in the heading."""
    if field.unit == "text":
        return Shown(
            field.name, tuple(printable(str(v)) if v is not None else "-" for v in values), True
        )
    scale, heading = 1, field.name
    if field.unit == "ns":
        times = [v for v in values if isinstance(v, int | float)]
        unit, scale = time_unit_for(times)
        heading = renamed(field.name, unit)
    return Shown(heading, tuple(number(value, field, scale) for value in values), False)


def renamed(name: str, unit: str) -> str:
    """A column's heading in another unit: Avg (ns) -> Avg (ms), busy_ns -> busy (ms)."""
    if name.endswith("_ns"):
        return f"{name.removesuffix('_ns').replace('_', ' ')} ({unit})"
    return name.replace("(ns)", f"({unit})") if unit in TIME_UNITS else name


def _fits(columns: Sequence[Shown], width: int) -> bool:
    needed = sum(
        min(column.width, NARROWEST_NAME) if column.is_text else column.width for column in columns
    )
    return needed + GAP * (len(columns) - 1) <= width


def _widths(columns: Sequence[Shown], width: int) -> list[int]:
    """Each column's width: numbers whole; texts share what is left, short ones whole."""
    widths = [column.width for column in columns]
    texts = [place for place, column in enumerate(columns) if column.is_text]
    left = (
        width
        - GAP * (len(columns) - 1)
        - sum(size for place, size in enumerate(widths) if place not in texts)
    )
    for done, place in enumerate(sorted(texts, key=lambda place: widths[place])):
        share = max(left // (len(texts) - done), 1)
        widths[place] = min(widths[place], share)
        left -= widths[place]
    return widths


def _join(cells: Sequence[str], columns: Sequence[Shown], widths: Sequence[int]) -> str:
    placed = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        text = shorten(readable(cell, width) if column.is_text else cell, width)
        space = " " * (width - display_width(text))
        placed.append(text + space if column.is_text else space + text)
    return (" " * GAP).join(placed).rstrip()


def _cut(text: str, width: int) -> str:
    kept, used = [], 0
    for character in text:
        used += display_width(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept)
