"""The plan of `nsightpy select` for people: the table, and below it the commands, whole."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nsightpy.render.text.terminal import print_table
from nsightpy.results import Table

if TYPE_CHECKING:
    from rich.console import Console

IN_THE_COMMANDS = ("mangled", "launch_count", "command")


def print_plan(plan: Table, out: Console, rows: int | None) -> None:
    """Print what is chosen, and a command that measures each."""
    shown = [n for n, field in enumerate(plan.fields) if field.name not in IN_THE_COMMANDS]
    cut = tuple(tuple(row[n] for n in shown) for row in plan.rows)
    print_table(replace(plan, fields=tuple(plan.fields[n] for n in shown), rows=cut), out, rows)
    out.file.write("".join(f"\n{line}\n" for line in plan.column("command")))
