"""The click command of a declared command: its options, its help, and what it does."""

import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import click

from nsightpy.cli.delivery import (
    FORMAT_OF_SUFFIX,
    FORMATS,
    PICTURES,
    check_output,
    deliver_answer,
    suffix_of,
    tell,
)
from nsightpy.cli.failures import faults_raised, terminal_progress
from nsightpy.query.command import Argument, Command

SHARED = "Options of every command"
_BETWEEN = "\0"  # no path holds it


class DeclaredCommand(click.Command):
    """A command whose help shows its own options first, the shared ones in a section of their own.

    `own`: the names of its own parameters.
    """

    own: frozenset[str] = frozenset()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """An option whose value is NAME... takes all words up to the next option."""
        several = {
            word
            for each in self.params
            if isinstance(each, click.Option) and (each.metavar or "").endswith("...")
            for word in each.opts
        }
        spread: list[str] = []
        taking = ""
        for word in args if several else ():
            if word.startswith("-") and word != "-":
                taking = word if word in several else ""
                spread += [] if taking else [word]
            else:
                spread += [taking, word] if taking else [word]
        return super().parse_args(ctx, spread or args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = (each for each in self.get_params(ctx) if isinstance(each, click.Option))
        records = [(each.name, each.get_help_record(ctx)) for each in options]
        for title, is_own in (("Options", True), (SHARED, False)):
            lines = [line for name, line in records if line and (name in self.own) == is_own]
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)


class WithSides(DeclaredCommand):
    """A command whose reports may be of two sides: then `before` holds those before the --."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" not in args:
            return super().parse_args(ctx, args)
        at = args.index("--")
        rest = super().parse_args(ctx, [*args[:at], _BETWEEN, *args[at + 1 :]])
        given = ctx.params["reports"]
        middle = given.index(_BETWEEN)
        ctx.params["before"], ctx.params["reports"] = given[:middle], given[middle + 1 :]
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[OPTIONS]", "REPORT...", "|", "BEFORE... -- AFTER..."]


def option_of(argument: Argument) -> click.Option | None:
    """The option that is typed for an argument; None where it is for programs only."""
    about = argument.option
    if about is None or not argument.typed:
        return None
    long, *short = (about.typed or argument.typed).split()
    if bool in _types(argument.type):
        both = "/" in long  # forms; else one that is True by default is turned off
        value = {} if both else {"flag_value": argument.default is not True}
        names = [*short, long if both else argument.typed, argument.name]
        return click.Option(names, is_flag=True, default=argument.default, help=about.help, **value)
    return click.Option(
        [*short, long, argument.name],
        metavar=about.metavar or None,
        type=_click_type(argument),
        required=argument.required,
        **({} if argument.required else {"default": argument.default}),  # None would be a value
        show_default=bool(about.choices) or isinstance(argument.default, int | float),
        multiple=about.several,
        help=about.help,
    )


def _types(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) is UnionType else (annotation,)


def _click_type(argument: Argument) -> Any:
    about, types = argument.option, _types(argument.type)
    assert about is not None
    if about.choices:
        return click.Choice(about.choices)
    if str in types:
        return None
    return click.INT if int in types else click.FLOAT if float in types else None


def options_of(command: Command[Any], *extra: click.Option) -> list[click.Parameter]:
    """All parameters of a command: reports, its own options, those that commands share.

    Last, where the answer goes and in which format, unless that is an argument of its own.
    """
    given = [*command.own.values(), *command.shared.values()]
    options = [*extra, *(option for argument in given if (option := option_of(argument)))]
    if not command.positional:
        return [*options]
    reports = click.Argument(["reports"], metavar="REPORT...", nargs=-1, required=True)
    options += [] if "output" in command.own else _outputs(command)
    if command.layouts:
        about = "Print the JSON Schema of the answer; no report is needed."
        schema: dict[str, Any] = {
            "is_eager": True,
            "expose_value": False,
            "callback": partial(_print_schema, command),
        }
        options.append(click.Option(["--schema"], is_flag=True, help=about, **schema))
    quiet = click.Option(["-q", "--quiet"], is_flag=True, help="No notes, no progress.")
    verbose = "Say which files are read, and how long."
    return [reports, *options, quiet, click.Option(["-v", "--verbose"], is_flag=True, help=verbose)]


def _outputs(command: Command[Any]) -> Iterable[click.Option]:
    formats = (*FORMATS, *command.formats.keys() - set(FORMATS))
    suffixes = {suffix: kind for suffix, kind in FORMAT_OF_SUFFIX.items() if kind in formats}
    if command.layouts or command.formats:

        def format_of(context: click.Context, _: click.Parameter, given: str | None) -> str:
            """The one that is given, else that of the suffix of -o, which is parsed before."""
            return given or suffixes.get(Path(context.params["output"]).suffix.lower(), "table")

        yield click.Option(
            ["--format", "format_"],
            type=click.Choice(formats),
            callback=format_of,
            show_default="from the suffix of -o, else table",
            help="For people or for machines.",
        )
        known = ", ".join(name for name in suffixes if name != ".markdown")
        drawn = ", or draw it: .png, .svg, .pdf" if command.picture else ""
        yield click.Option(
            ["-o", "--output"],
            metavar="FILE",
            default="-",
            is_eager=True,
            help=f"Write here, in the format of its suffix ({known}){drawn}; - is stdout.",
        )
    else:
        suffix = ", ".join(command.suffixes)
        yield click.Option(["-o", "--output"], metavar="FILE", help=f"Write here: {suffix}.")
    yield click.Option(["--force"], is_flag=True, help="Overwrite an existing file.")


def _print_schema(
    command: Command[Any], context: click.Context, _: click.Parameter, wanted: bool
) -> None:
    if wanted and not context.resilient_parsing:
        import json

        click.echo(json.dumps(command.schema, indent=2))
        context.exit()


def arguments_of(command: Command[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed, as the arguments of a command; a progress line on a terminal only."""
    given = {name: options[name] for name in (*command.own, *command.shared) if name in options}
    if "progress" in command.shared:
        given["progress"] = None if options["quiet"] else terminal_progress(sys.stderr)
    return given


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
        result, *beside = command.asked(options["reports"], given, command.beside)
        deliver_answer(command, result, options, beside)
    else:
        deliver_answer(command, command(options["reports"], **given), options)
