"""Options that several commands share, and what is asked with them."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from nsightpy.cli.failures import faults_raised
from nsightpy.cli.streams import terminal_progress
from nsightpy.query.parameters import (
    COMMUNICATION,
    NAME,
    READING,
    SCOPE,
    TOP,
    USE_CACHE,
    Parameter,
)

if TYPE_CHECKING:
    from nsightpy.commands.report.one_pass import OnePass
    from nsightpy.query.request import Common

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

REPORTS = "nsightpy.reports"
FORMATS = ("table", "csv", "json", "markdown", "parquet")
FORMAT_OF_SUFFIX = {
    ".csv": "csv",
    ".json": "json",
    ".md": "markdown",
    ".markdown": "markdown",
    ".parquet": "parquet",
    ".xml": "junit",
}


def _output(formats: Sequence[str]) -> tuple[Callable[[Any], Any], ...]:
    """--format and -o, whose suffix says the format where none is given (it is parsed before)."""
    suffixes = {name: kind for name, kind in FORMAT_OF_SUFFIX.items() if kind in formats}

    def wanted(context: click.Context, _: click.Parameter, given: str | None) -> str:
        return given or suffixes.get(Path(context.params["output"]).suffix.lower(), "table")

    return (
        click.option(
            "--format",
            "format_",
            type=click.Choice(formats),
            callback=wanted,
            show_default="from the suffix of -o, else table",
            help="For people or for machines.",
        ),
        click.option(
            "-o",
            "--output",
            metavar="FILE",
            default="-",
            is_eager=True,
            help="Write here, in the format of its suffix "
            f"({', '.join(name for name in suffixes if name != '.markdown')}); - is stdout.",
        ),
    )


_OUTPUT = (
    *_output(FORMATS),
    click.option("--force", is_flag=True, help="Overwrite an existing file."),
    click.option("-q", "--quiet", is_flag=True, help="No notes, no progress."),
    click.option("-v", "--verbose", is_flag=True, help="Say which files are read, and how long."),
)


def option_of(parameter: Parameter) -> Callable[[F], F]:
    """The option that is typed for a parameter of functions."""
    if parameter.default is True:
        return click.option(parameter.option, is_flag=True, help=parameter.meaning)
    kinds: dict[str, Any] = {"N": click.IntRange(min=0 if parameter.name == "top" else 1)}
    return click.option(
        parameter.option,
        parameter.name,
        metavar=parameter.metavar or None,
        type=click.Choice(parameter.choices) if parameter.choices else kinds.get(parameter.metavar),
        default=parameter.default,
        show_default=bool(parameter.choices),
        multiple=parameter.several,
        help=parameter.meaning,
    )


_REPORTS = click.argument("reports", metavar="REPORT...", nargs=-1, required=True)
_SHARED = tuple(map(option_of, (*SCOPE, *READING)))
# Options that come last in a command's help, behind its own.
OF_EVERY_COMMAND = frozenset(
    {*(each.name for each in (*SCOPE, *READING)), "no_cache"}
    | {"format_", "output", "force", "quiet", "verbose"}
)
top_option = option_of(TOP)
name_option = option_of(NAME)
communication_option = option_of(COMMUNICATION)
cache_option = option_of(USE_CACHE)


def common_options(function: F) -> F:
    """The reports and the options of cli.md that every command takes."""
    return with_options((_REPORTS, *_SHARED, *_OUTPUT), _prepared(function))


def junit_options(function: F) -> F:
    """The same without the reports, for a command that writes JUnit XML, too."""
    options = (*_SHARED, *_output((*FORMATS, "junit")), *_OUTPUT[2:])
    return with_options(options, _prepared(function))


def picture_options(function: F) -> F:
    """The same for a command whose answer is always a file: no --format, and -o has no default."""
    file = click.option("-o", "--output", metavar="FILE", help="Write here; its suffix says what.")
    return with_options((_REPORTS, *_SHARED, file, *_OUTPUT[2:]), _prepared(function))


def folder_options(function: F) -> F:
    """The same for a command that fills a folder."""
    folder = click.option(
        "-o", "--output", metavar="DIR", required=True, help="A new or empty directory."
    )
    kind = click.option(
        "--format",
        "format_",
        type=click.Choice(["parquet", "csv"]),
        default="parquet",
        show_default=True,
        help="Of the files.",
    )
    replace = click.option("--force", is_flag=True, help="Replace an earlier export.")
    options = (_REPORTS, *_SHARED, kind, folder, replace, *_OUTPUT[3:])
    return with_options(options, _prepared(function))


def with_options(options: Sequence[Callable[[Any], Any]], function: F) -> F:
    """The function with these options, in their order."""
    result: Any = function
    for option in reversed(options):
        result = option(result)
    return cast(F, result)


def _prepared(function: F) -> F:
    """The function after what its options ask of the process: done once, whatever it asks."""

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        if options["verbose"]:
            import logging

            logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
        context = click.get_current_context()
        if reports := options["reports"]:
            context.meta[REPORTS] = reports[0] + (", ..." if len(reports) > 1 else "")
        with faults_raised():
            return function(*args, **options)

    return cast(F, run)


def common_of(options: dict[str, Any]) -> Common:
    """The shared options as the commands take them; a progress line on a terminal only."""
    given: Any = {
        **{each.name: options[each.name] for each in (*SCOPE, *READING) if each.name in options},
        "use_cache": not options["no_cache"],
        "progress": None if options["quiet"] else terminal_progress(sys.stderr),
    }
    return cast("Common", given)


def asked(function: Callable[..., T], options: dict[str, Any], **more: Any) -> T:
    """What the function of a command answers; it takes the options that have its names."""
    wanted = inspect.signature(function).parameters.keys() & options.keys()
    given = {name: options[name] for name in wanted}
    return function(**{**given, **common_of(options), **more})


def opened(options: dict[str, Any]) -> OnePass:
    """The reports for several questions."""
    from nsightpy.commands.report.one_pass import OnePass
    from nsightpy.query.request import reading_options
    from nsightpy.report_sets.rank_opening import open_ranks

    common = common_of(options)
    use_cache = common["use_cache"]
    return OnePass.of(
        open_ranks(options["reports"], use_cache=use_cache, **reading_options(common))
    )
