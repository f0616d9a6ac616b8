"""Tables and findings for people: names cut to the terminal, nothing cut when piped."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import IO, TYPE_CHECKING

from nsightpy.output.cells import cell, cells, heading
from nsightpy.output.escape import printable
from nsightpy.render.text import layout
from nsightpy.render.text.layout import WIDEST_NOTE, styled, wrapped
from nsightpy.results import Field, Row, Table, Value, View
from nsightpy.results.findings import place_text, worth
from nsightpy.units import counted

if TYPE_CHECKING:
    from rich.console import Console

WIDEST_CARD, MOST_CARDS = 100, 4
# What --by splits by tells rows apart: it follows the most important column.
_SPLITS = ("rank", "device", "process", "stream", "grid", "memory", "shape", "thread")
IN_THE_COMMANDS = ("mangled", "launch_count", "command")  # columns of a plan
_MARGIN = 9  # what the longest severity and a space take
_STYLES = {"error": "red", "warning": "yellow"}


def console(stream: IO[str] | None = None, width: int | None = None) -> Console:
    """A console that colours terminals only (never with NO_COLOR), and never wraps a pipe."""
    from rich.console import Console

    stream = stream or sys.stdout
    if width is None and not stream.isatty():
        width = layout.UNLIMITED
    return Console(
        file=stream,
        width=width,
        no_color=True if os.environ.get("NO_COLOR") else None,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
    )


def print_table(table: Table, out: Console, rows: int | None = None) -> None:
    """Print a table in the console's width, at most so many rows; one line says what is left out.

    A table without rows is one line: headings of nothing would only be read as an answer.
    """
    if not table.rows:
        out.print("no rows", style="dim")
        return
    shown_rows, more = first_rows(table, rows)
    shown = people_columns(replace(table, rows=shown_rows))
    keys = by_importance(table.fields)
    kept, hidden = layout.fitted(shown, out.width, keys)
    for line in layout.lines(kept, out.width):
        out.print(line)
    if more:
        out.print(more, style="dim")
    if hidden:
        out.print(layout.hidden_line(hidden, min(out.width, layout.WIDEST_NOTE)), style="dim")


def people_columns(table: Table) -> list[layout.Shown]:
    """The known columns of a table as people read them, in the order of its view."""
    tree = (table.view or View()).tree
    shown = []
    for field in filled(table):
        values = table.column(field.name)
        texts, unit = cells(field, indented(values) if field.name == tree else values)
        title = heading(field) + (f" ({unit})" if unit else "")
        about = (field.is_text, field.name, field.own, field.kind == "name", field.width)
        shown.append(layout.Shown(title, texts, *about))
    return shown


def indented(paths: Sequence[Value]) -> list[Value]:
    """Paths a/b/c, outer ones first, as a tree: each by its own name under the one it lies in."""
    above: list[str] = []
    names: list[Value] = []
    for path in map(str, paths):
        while above and not path.startswith(above[-1] + "/"):
            above.pop()
        names.append("  " * len(above) + (path[len(above[-1]) + 1 :] if above else path))
        above.append(path)
    return names


def print_cards(table: Table, out: Console, rows: int | None = None) -> None:
    """Print each row as a block, one line per known field, texts wrapped; many as a table."""
    if len(table) > MOST_CARDS:
        print_table(table, out, rows)
        return
    labels = list(map(heading, table.fields))
    margin = max(map(len, labels)) + layout.GAP
    shown_rows, more = first_rows(table, rows)
    for index, row in enumerate(shown_rows):
        if index:
            out.print()
        for field, label, value in zip(table.fields, labels, row, strict=True):
            text = printable(str(value)) if field.is_text else cell(field, value)
            start, width = f"{label:<{margin}}", min(out.width, WIDEST_CARD)
            if value is not None:
                out.print("\n".join(wrapped(text, width, start, " " * margin) or [start]))
    if more:
        out.print(more, style="dim")


def print_plan(plan: Table, out: Console, rows: int | None) -> None:
    """Print what `select` chose, and a command that measures each, whole."""
    shown = [n for n, field in enumerate(plan.fields) if field.name not in IN_THE_COMMANDS]
    cut = tuple(tuple(row[n] for n in shown) for row in plan.rows)
    print_table(replace(plan, fields=tuple(plan.fields[n] for n in shown), rows=cut), out, rows)
    out.file.write("".join(f"\n{line}\n" for line in plan.column("command")))


def filled(table: Table) -> list[Field]:
    """The fields of which a row holds something, from left to right."""

    def side(field: Field) -> tuple[int, int]:
        return (0, field.place) if field.place > 0 else (1 if field.place == 0 else 2, 0)

    return sorted((f for f in table.fields if set(table.column(f.name)) - {None, ""}), key=side)


def by_importance(fields: Sequence[Field]) -> list[str]:
    """Names of columns, the most important first; of the others what a row is about."""
    listed = sorted((f for f in fields if f.importance), key=lambda field: field.importance)
    others = sorted((f for f in fields if not f.importance), key=lambda f: f.kind != "name")
    splits = [field for field in others if field.name in _SPLITS]
    rest = [field for field in others if field.name not in _SPLITS]
    return [field.name for field in (*listed[:1], *splits, *listed[1:], *rest)]


def first_rows(table: Table, most: int | None) -> tuple[Sequence[Row], str]:
    """At most so many rows, and what is to be said of the others; without a number all of them."""
    shown = len(table.rows) if most is None else min(most, len(table.rows))
    left = max(table.total, len(table.rows)) - shown
    more = f"and {counted(left, 'more row')}: --top 0 shows them" if left else ""
    return table.rows[:shown], more


def print_findings(table: Table, out: Console, rows: int | None = None) -> None:
    """Print each finding under its severity, name and bound: evidence, worst place, next command.

    A command to copy is never cut.
    """
    margin = " " * _MARGIN
    wrap = partial(wrapped, width=min(out.width, WIDEST_NOTE) - _MARGIN)
    parts = _parts(table)
    own = tuple(row for row, of in zip(table.rows, table.column("part_of"), strict=True) if not of)
    shown, more = first_rows(replace(table, rows=own), rows)
    for row in replace(table, rows=shown).records():
        severity, identity = str(row["severity"]), str(row["id"])
        title = ": ".join(filter(None, [f"{row['finding']} ({identity})", worth(row)]))
        first, *rest = wrap(printable(title))
        out.print(
            styled(f"{severity:<{_MARGIN}}", _STYLES.get(severity, "")) + styled(first, "bold")
        )
        evidence = f"{row['evidence']}{parts.get(identity, '')}"
        for line in (*rest, *wrap(printable(evidence)), *wrap(place_text(row))):
            out.print(styled(margin + line))
        if row["next_command"]:
            out.print(styled(f"{margin}{printable(str(row['next_command']))}", "dim"))
    if more:
        out.print(styled(more, "dim"))


def _parts(table: Table) -> dict[str, str]:
    """By id of a finding, the others that name its time, as a clause of it."""
    names: dict[str, list[str]] = {}
    for row in table.records():
        if row["part_of"]:
            names.setdefault(str(row["part_of"]), []).append(str(row["finding"]))
    return {whole: f" (the same time is that of: {', '.join(n)})" for whole, n in names.items()}
