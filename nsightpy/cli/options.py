"""Options that several commands share, and what becomes of a result."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

import click
from click.core import ParameterSource

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
    from matplotlib.figure import Figure

    from nsightpy.commands.report.one_pass import OnePass
    from nsightpy.query.request import Common
    from nsightpy.results import AnyTable, Table

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

REPORTS = "nsightpy.reports"
FORMATS = ("table", "csv", "json", "markdown", "parquet")
_FORMAT_OF_SUFFIX = {
    ".csv": "csv",
    ".json": "json",
    ".md": "markdown",
    ".markdown": "markdown",
    ".parquet": "parquet",
    ".xml": "junit",
}


def _output(formats: Sequence[str]) -> tuple[Callable[[Any], Any], ...]:
    """--format and -o, whose suffix says the format where none is given (it is parsed before)."""
    suffixes = {name: kind for name, kind in _FORMAT_OF_SUFFIX.items() if kind in formats}

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
    return with_options((_REPORTS, *_SHARED, *_OUTPUT), function)


def junit_options(function: F) -> F:
    """The same without the reports, for a command that writes JUnit XML, too."""
    return with_options((*_SHARED, *_output((*FORMATS, "junit")), *_OUTPUT[2:]), function)


def picture_options(function: F) -> F:
    """The same for a command whose answer is always a file: no --format, and -o has no default."""
    file = click.option("-o", "--output", metavar="FILE", help="Write here; its suffix says what.")
    return with_options((_REPORTS, *_SHARED, file, *_OUTPUT[2:]), function)


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
    return with_options((_REPORTS, *_SHARED, kind, folder, replace, *_OUTPUT[3:]), function)


def with_options(options: Sequence[Callable[[Any], Any]], function: F) -> F:
    """The function with these options, in their order."""
    result: Any = function
    for option in reversed(options):
        result = option(result)
    return cast(F, result)


def common_of(options: dict[str, Any]) -> Common:
    """The shared options as the commands take them; a progress line on a terminal only."""
    if options["verbose"]:
        import logging

        logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    context = click.get_current_context(silent=True)
    if context is not None and (reports := options["reports"]):
        context.meta[REPORTS] = reports[0] + (", ..." if len(reports) > 1 else "")
    if context is not None and context.obj is True:
        from nsightpy.workers.resources import set_up_process

        set_up_process()
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


@contextmanager
def opened(options: dict[str, Any]) -> Iterator[OnePass]:
    """The reports for several questions; what was read of them stays until all are answered."""
    from nsightpy.commands.report.one_pass import OnePass
    from nsightpy.query.request import reading_options
    from nsightpy.report_sets.rank_opening import open_ranks

    common = common_of(options)
    use_cache = common["use_cache"]
    ranks = open_ranks(options["reports"], use_cache=use_cache, **reading_options(common))
    with ranks.held():
        yield OnePass.of(ranks)


def show(table: Table, options: dict[str, Any]) -> None:
    """Print or write a table in the wanted format; notes go to stderr for people."""
    from nsightpy.output import formats

    writers = {
        "csv": formats.to_csv,
        "json": formats.to_json,
        "markdown": formats.to_markdown,
        "parquet": formats.to_parquet,
    }
    if options["format_"] in writers:
        deliver(writers[options["format_"]](table), options)
    else:
        from nsightpy.render.text.terminal import print_table

        rows = rows_shown(table, options)
        deliver_text(lambda out: print_table(table, out, rows), options)
        if not table.rows and not table.notes:
            say("the reports hold nothing that matches", options)
    tell(table, options)


def rows_shown(table: Table, options: dict[str, Any]) -> int | None:
    """How many rows are printed: the view's on a terminal, all where N is given or in a pipe."""
    from nsightpy.render.text.views import view_of

    asked_for = options.get("top") is not None or not on_terminal(options)
    return None if asked_for else view_of(table.command).rows


def on_terminal(options: dict[str, Any]) -> bool:
    """Whether the answer goes to a person's screen."""
    from nsightpy.output.files import STDOUT

    return options["output"] == STDOUT and sys.stdout.isatty()


def show_or_draw(
    table: AnyTable, draw: Callable[[AnyTable], Figure], options: dict[str, Any]
) -> None:
    """Draw a table where the wanted file is a picture's, else show it; notes either way."""
    from nsightpy.render.plots.drawing import is_picture, picture_bytes

    if not is_picture(options["output"]):
        show(table, options)
        return
    deliver(picture_bytes(draw(table), options["output"]), options)
    tell(table, options)


def tell(table: Table, options: dict[str, Any]) -> None:
    """The notes of a table, on stderr, where the format does not carry them."""
    from nsightpy.units import counted

    if options["format_"] not in ("json", "markdown"):
        for note in table.notes[:MOST_NOTES]:
            say(note, options)
        if (more := len(table.notes) - MOST_NOTES) > 0:
            say(f"{counted(more, 'more note')}: --format json has all", options)


def deliver(data: bytes, options: dict[str, Any]) -> None:
    """Write bytes to stdout or the wanted file."""
    with stdout_or_file(options) as file:
        file.write(data)


@contextmanager
def stdout_or_file(options: dict[str, Any]) -> Iterator[BinaryIO]:
    """Where bytes are wanted. Raises UsageError for those that are not for terminals."""
    from nsightpy.errors import UsageError
    from nsightpy.output.files import STDOUT

    if options["output"] != STDOUT:
        with output_of(options) as file:
            yield file
        return
    if options["format_"] == "parquet" and sys.stdout.isatty():
        raise UsageError("Parquet is not for terminals: give -o FILE")
    sys.stdout.flush()
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


def output_of(options: dict[str, Any]) -> AbstractContextManager[BinaryIO]:
    """The wanted file, open for writing; never one of the reports."""
    from nsightpy.output.files import output_file

    output = Path(options["output"])
    _spare_inputs(output, options["reports"])
    return output_file(output, force=options["force"])


def _spare_inputs(output: Path, reports: Sequence[str]) -> None:
    """Raise OutputError where the output is one of the reports: --force spares them, too."""
    from nsightpy.errors import OutputError, ReportError
    from nsightpy.report_sets.report_files import find_reports

    for given in reports if output.exists() else ():
        try:
            input_files = find_reports(given)
            if any(path.exists() and path.samefile(output) for path in input_files):
                raise OutputError(output, "is one of the reports", "give another file.")
        except (ReportError, OSError):
            continue


MOST_NOTES = 6
TEXTS = ("", ".txt", ".text", ".log")
PICTURES = (".png", ".svg", ".pdf", ".html", ".pftrace")


def deliver_text(write: Callable[[Any], None], options: dict[str, Any]) -> None:
    """Print what is for people, on stdout or, uncut, into the wanted file."""
    import io

    from nsightpy.errors import UsageError
    from nsightpy.output.files import STDOUT
    from nsightpy.render.text.terminal import console

    if options["output"] == STDOUT:
        write(console())
        return
    if options["output"].lower().endswith(PICTURES):
        raise UsageError(
            f"{options['output']}: this command writes no such file: tables, and pictures (.png, "
            ".svg, .pdf) where its --help says so"
        )
    refuse_unknown_suffix(options["output"])
    text = io.StringIO()
    write(console(text))
    deliver(text.getvalue().encode("utf-8", "backslashreplace"), options)


def refuse_unknown_suffix(output: str) -> None:
    """Raise UsageError where a text would be written under a name that promises something else."""
    from nsightpy.errors import UsageError

    context = click.get_current_context(silent=True)
    given = context and context.get_parameter_source("format_") == ParameterSource.COMMANDLINE
    suffix = Path(output).suffix.lower()
    if given or suffix in TEXTS or not any(letter.isalpha() for letter in suffix):
        return
    known = ", ".join((*_FORMAT_OF_SUFFIX, *TEXTS[1:]))
    raise UsageError(
        f"{output}: what a {suffix} file holds is not known: give one of {known}, or say --format"
    )


def say(note: str, options: dict[str, Any]) -> None:
    """A note for people, on stderr."""
    if options["quiet"]:
        return
    from nsightpy.cli.streams import wrapped
    from nsightpy.output.escape import printable

    with contextlib.suppress(OSError):  # a full disk behind stderr changes no answer
        print(wrapped(f"note: {printable(note)}", sys.stderr, " " * 6), file=sys.stderr)


def terminal_progress(stream: IO[str]) -> Callable[[float | None, str], None] | None:
    """A progress line that rewrites itself; None where the stream is no terminal."""
    if not stream.isatty():
        return None
    from nsightpy.output.escape import printable

    def progress(done: float | None, message: str) -> None:
        share = "" if done is None else f" {100 * done:.0f} %"
        ended = done is not None and done >= 1
        stream.write(f"\r\x1b[2K{printable(message)}{share}" if not ended else "\r\x1b[2K")
        stream.flush()

    return progress
