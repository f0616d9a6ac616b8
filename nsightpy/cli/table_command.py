"""Commands that show the table their function answers, or draw it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from nsightpy.cli.delivery import is_picture, show, show_or_draw
from nsightpy.cli.options import asked, common_options, with_options
from nsightpy.command_table import COMMANDS


def table_command(
    name: str, *options: Callable[[Any], Any], plot: str = "", people: str = ""
) -> Callable[[Callable[[], None]], click.Command]:
    """Make a command of a docstring: its own options between the reports and the shared ones.

    plot: the module of nsightpy.render.plots that draws the table. people: the function, beside
    the command's own, that makes a table for a terminal of it.
    """

    def decorate(described: Callable[[], None]) -> click.Command:
        def command(**given: Any) -> None:
            _answer(name, given, plot, people)

        command.__doc__ = described.__doc__
        return click.command(name)(common_options(with_options(options, command)))

    return decorate


def _answer(name: str, given: dict[str, Any], plot: str, people: str) -> None:
    about = COMMANDS[name]
    module = import_module(about.module)
    table = asked(getattr(module, about.function), given)
    if plot and is_picture(given["output"]):
        draw = getattr(import_module(f"nsightpy.render.plots.{plot}"), about.figure)
        show_or_draw(table, draw, given)
        return
    if people and given["format_"] == "table":
        table = getattr(module, people)(table)
    show(table, given)
