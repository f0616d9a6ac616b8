"""The findings of a terminal: each in a few lines, what it costs first."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from nsightpy.output.escape import printable
from nsightpy.render.text.layout import WIDEST_NOTE, styled, wrapped
from nsightpy.render.text.terminal import first_rows
from nsightpy.results import Table, Value
from nsightpy.results.findings import worth
from nsightpy.units import format_time

if TYPE_CHECKING:
    from rich.console import Console

_MARGIN = 9  # what the longest severity and a space take
_STYLES = {"error": "red", "warning": "yellow"}


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
        name, identity = str(row["finding"]), str(row["id"] or "")
        same = identity.replace("-", " ") in ("", name)
        title = ": ".join(filter(None, [name if same else f"{name} ({identity})", worth(row)]))
        severity = str(row["severity"])
        first, *rest = wrap(printable(title))
        out.print(
            styled(f"{severity:<{_MARGIN}}", _STYLES.get(severity, "")) + styled(first, "bold")
        )
        evidence = f"{row['evidence']}{parts.get(identity, '')}"
        for line in (*rest, *wrap(printable(evidence)), *wrap(_worst(row))):
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


def _worst(row: dict[str, Value]) -> str:
    """Where it is worst, as --from takes it; empty where no place is known."""
    start, duration = row["start_ns"], row["duration_ns"]
    if not isinstance(start, int) or not isinstance(duration, int):
        return ""
    where = "" if row["rank"] is None else f" in rank {row['rank']}"
    return f"worst{where}: {format_time(duration)} from {start / 1e6:.3f} ms on"
