"""What becomes of a result: printed, drawn or written, its notes on stderr."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click
from click.core import ParameterSource

from nsightpy.cli.options import FORMAT_OF_SUFFIX

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nsightpy.results import AnyTable, Table

MOST_NOTES = 6
TEXTS = ("", ".txt", ".text", ".log")
PICTURES = (".png", ".svg", ".pdf")


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


def is_picture(path: str) -> bool:
    """Whether a file of that name is a picture that can be drawn."""
    return Path(path).suffix.lower() in PICTURES


def show_or_draw(
    table: AnyTable, draw: Callable[[AnyTable], Figure], options: dict[str, Any]
) -> None:
    """Draw a table where the wanted file is a picture's, else show it; notes either way."""
    if not is_picture(options["output"]):
        show(table, options)
        return
    from nsightpy.render.plots.drawing import picture_bytes

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


def deliver_text(write: Callable[[Any], None], options: dict[str, Any]) -> None:
    """Print what is for people, on stdout or, uncut, into the wanted file."""
    import io

    from nsightpy.errors import UsageError
    from nsightpy.output.files import STDOUT
    from nsightpy.render.text.terminal import console

    if options["output"] == STDOUT:
        write(console())
        return
    if options["output"].lower().endswith((*PICTURES, ".html", ".pftrace")):
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
    known = ", ".join((*FORMAT_OF_SUFFIX, *TEXTS[1:]))
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
