"""The findings of a terminal: each in a few lines, what it costs first."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING

from nsightpy.output.escape import printable
from nsightpy.render.text.layout import WIDEST_NOTE, wrapped
from nsightpy.render.text.terminal import first_rows
from nsightpy.results import Table, Value
from nsightpy.results.findings import worth
from nsightpy.units import format_time

if TYPE_CHECKING:
    from rich.console import Console

_MARGIN = 9  # what the longest severity and a space take


def print_findings(table: Table, out: Console, rows: int | None = None) -> None:
    """Print each finding under its severity, name and bound: evidence, worst place, next command.

    A command to copy is never cut.
    """
    from rich.text import Text

    margin = " " * _MARGIN
    wrap = partial(wrapped, width=min(out.width, WIDEST_NOTE) - _MARGIN)
    parts = _parts(table)
    whole = replace(
        table, rows=tuple(compress(table.rows, (not p for p in table.column("part_of"))))
    )
    shown, more = first_rows(whole, rows)
    for row in replace(whole, rows=shown).records():
        bound, worst = worth(row), _worst(row)
        name, identity = str(row["finding"]), str(row["id"] or "")
        known_by = "" if identity.replace("-", " ") in ("", name) else f" ({identity})"
        head = [f"{name}{known_by}", bound]
        title = printable(": ".join(filter(None, head)))
        severity = Text(
            f"{row['severity']!s:<{_MARGIN}}", style=_STYLES.get(str(row["severity"]), "")
        )
        first, *rest = wrap(title)
        out.print(severity + Text(first, style="bold"))
        evidence = f"{row['evidence']}{parts.get(str(row['id']), '')}"
        for line in (*rest, *wrap(printable(evidence)), *wrap(worst)):
            out.print(Text(margin + line))
        if row["next_command"]:
            out.print(Text(f"{margin}{printable(str(row['next_command']))}", style="dim"))
    if more:
        out.print(Text(more, style="dim"))


def _parts(table: Table) -> dict[str, str]:
    """By id of a finding, the others that name its time, as a clause of it."""
    names: dict[str, list[str]] = {}
    for row in table.records():
        if row["part_of"]:
            names.setdefault(str(row["part_of"]), []).append(str(row["finding"]))
    return {whole: f" (the same time is that of: {', '.join(n)})" for whole, n in names.items()}


_STYLES = {"error": "red", "warning": "yellow"}


def _worst(row: dict[str, Value]) -> str:
    """Where it is worst, as --from takes it; empty where no place is known."""
    start, duration = row["start_ns"], row["duration_ns"]
    if not isinstance(start, int) or not isinstance(duration, int):
        return ""
    where = "" if row["rank"] is None else f" in rank {row['rank']}"
    return f"worst{where}: {format_time(duration)} from {start / 1e6:.3f} ms on"
