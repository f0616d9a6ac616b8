"""The click command of a declared command: its options, its help, and what it does."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

from nsightpy.cli.delivery import PICTURES, check_output, deliver_answer, suffix_of, tell
from nsightpy.cli.failures import faults_raised
from nsightpy.cli.options import DeclaredCommand, WithSides, arguments_of, options_of
from nsightpy.query.command import Command


def click_command(
    command: Command[Any],
    run: Callable[[dict[str, Any]], Any] | None = None,
    kind: type[DeclaredCommand] | None = None,
    *more: click.Option,
) -> click.Command:
    """A declared command as one of the command line.

    `run`: what it does with its options instead of answering and delivering; `kind`: how words are
    parsed; `more`: options that are not its arguments.
    """

    def called(**options: Any) -> Any:
        prepare(options)
        with faults_raised():
            return run(options) if run else answer(command, options)

    if kind is None:
        kind = WithSides if "before" in {**command.positional, **command.own} else DeclaredCommand
    declared = kind(
        command.name,
        callback=called,
        params=options_of(command, *more),
        help=f"{command.help}\n\n{command.words}",
    )
    declared.own = frozenset((*command.own, *(option.name or "" for option in more)))
    return declared


def prepare(options: Mapping[str, Any]) -> None:
    """Do what options ask of the process, and note which reports are about to be read."""
    if options.get("verbose"):
        logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    if reports := options.get("reports"):
        context = click.get_current_context()
        context.meta["nsightpy.reports"] = reports[0] + (", ..." if len(reports) > 1 else "")


def answer(command: Command[Any], options: dict[str, Any]) -> None:
    """Answer a command, and what its picture shows beside it, and deliver that."""
    if not command.positional:
        text = str(command(**options))
        if text:
            click.echo(text.removesuffix("\n"))
        return
    given = arguments_of(command, options)
    if "output" in command.own:  # it writes what it answers
        tell(command(options["reports"], **given), options)
        return
    check_output(command, options)
    drawn = bool(command.picture) and suffix_of(command, options["output"]) in PICTURES
    if options.get("format_") == "table" and not drawn:
        given |= {name: v for name, v in command.for_people.items() if given[name] in (None, "")}
    if drawn and command.beside:
        result, *beside = command.with_beside(options["reports"], **given)
        deliver_answer(command, result, options, beside)
    else:
        deliver_answer(command, command(options["reports"], **given), options)
