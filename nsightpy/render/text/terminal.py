"""Tables for people: one unit per column, names cut to the terminal, nothing cut when piped."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from nsightpy.render.escape import display_width, printable
from nsightpy.render.text.layout import GAP, UNLIMITED, Shown, fitted, lines
from nsightpy.results import Field, Table, Value
from nsightpy.units import TIME_UNITS, format_time, significant, time_unit_for

if TYPE_CHECKING:
    from rich.console import Console


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
        more = f"(not shown here: {names}; a wider terminal or --format csv has them)"
        out.print("\n".join(textwrap.wrap(more, min(out.width, 100))), style="dim")


def print_cards(table: Table, out: Console) -> None:
    """Print each row as a block of its own, one line per known field, texts wrapped."""
    from rich.text import Text

    label_width = max(display_width(_label(field.name)) for field in table.fields) + GAP
    limit = min(out.width, 100) - label_width
    for place, row in enumerate(table.rows):
        if place:
            out.print()
        for field, value in zip(table.fields, row, strict=True):
            if value is None:
                continue
            text = number(value, field)
            if field.unit == "ns" and isinstance(value, int | float):
                text = format_time(value)
            # reports are separated by one bar in a text; a command to copy is never cut
            parts = [p for one in text.split(" | ") for p in textwrap.wrap(one, limit) or [""]]
            parts = [text] if field.name == "next_command" else parts
            for line, part in enumerate(parts):
                label = _label(field.name) if line == 0 else ""
                out.print(Text(f"{label:<{label_width}}", style="dim") + Text(part))


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
        shown = value / scale
        return f"{shown:,.3f}" if shown == 0 or abs(shown) >= 0.1 else significant(shown, 2)
    if isinstance(value, float):
        return f"{value:,.{1 if field.decimals is None else field.decimals}f}"
    return f"{value:,}"


def shown_column(field: Field, values: Sequence[Value]) -> Shown:
    """A column as people read it: one unit, named in the heading."""
    if field.unit == "text":
        if field.name == "report":
            values = [value if value is None else Path(str(value)).name for value in values]
        texts = (printable(str(value)) if value is not None else "-" for value in values)
        return Shown(_label(field.name), tuple(texts), True)
    scale, heading = 1, _label(field.name)
    if field.unit == "ns":
        times = [v for v in values if isinstance(v, int | float)]
        unit, scale = time_unit_for(times)
        heading = renamed(field.name, unit)
    if field.unit in ("flops", "flops/s"):
        largest = max((abs(v) for v in values if isinstance(v, int | float)), default=0)
        prefix, scale = ("T", 10**12) if largest >= 1e11 else ("G", 10**9)
        heading = f"{heading} ({prefix}{field.unit.replace('flops', 'FLOP')})"
    return Shown(heading, tuple(number(value, field, scale) for value in values), False)


def renamed(name: str, unit: str) -> str:
    """A column's heading in another unit: Avg (ns) -> Avg (ms), busy_ns -> busy (ms)."""
    if name.endswith("_ns"):
        return f"{_label(name.removesuffix('_ns'))} ({unit})"
    return name.replace("(ns)", f"({unit})") if unit in TIME_UNITS else name


def _label(name: str) -> str:
    return name.removesuffix("_ns").replace("_", " ")


def _is_known(table: Table, field: Field) -> bool:
    return not table.rows or any(value is not None for value in table.column(field.name))
