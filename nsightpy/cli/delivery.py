"""What becomes of an answer: printed, drawn or written, its notes on stderr."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, BinaryIO

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from nsightpy.query.command import Command

FORMATS = ("table", "csv", "json", "markdown", "parquet")
FORMAT_OF_SUFFIX = {
    ".csv": "csv",
    ".json": "json",
    ".md": "markdown",
    ".markdown": "markdown",
    ".parquet": "parquet",
    ".xml": "junit",
}
PRINT_TABLE = "nsightpy.render.text.terminal:print_table"
MOST_NOTES = 6
TEXTS = ("", ".txt", ".text", ".log")
PICTURES = (".png", ".svg", ".pdf")
# So many rows of millions go into a pipe for people who do not ask for a number.
SHOWN = 200


def deliver_answer(
    command: Command[Any], answer: Any, options: Mapping[str, Any], beside: Sequence[Any] = ()
) -> None:
    """Print, draw or write an answer as it was asked for; notes go to stderr for people."""
    from nsightpy.output.formats import WRITERS
    from nsightpy.results import Summary

    format_, suffix = options.get("format_", ""), suffix_of(command, options["output"])
    if suffix in command.files:
        with stdout_or_file(options) as file:
            resolve_name(command.files[suffix])(answer, file)
    elif suffix in PICTURES and command.picture:
        from nsightpy.render.plots.drawing import picture_bytes

        drawn = resolve_name(command.picture)(answer, *beside)
        deliver(picture_bytes(drawn, f"answer{suffix}"), options)
    elif format_ in command.formats:
        deliver(resolve_name(command.formats[format_])(answer), options)
    elif format_ in WRITERS:
        table = answer.table if isinstance(answer, Summary) and format_ != "json" else answer
        with stdout_or_file(options) as file:
            WRITERS[format_](table, file)
    else:
        answer = _print(command, answer, options)
        if isinstance(answer, Summary):  # its notes are on the screen
            return
    tell(answer, options)


def _print(command: Command[Any], answer: Any, options: Mapping[str, Any]) -> Any:
    """Print an answer for people; what they see of it."""
    shown = command.people(answer) if command.people else answer
    rows = rows_shown(shown, options)
    is_empty = not getattr(shown, "rows", True)
    write = resolve_name(PRINT_TABLE if is_empty else command.text or PRINT_TABLE)
    deliver_text(lambda out: write(shown, out, rows), options)
    if is_empty and not shown.notes:
        say("the reports hold nothing that matches", options)
    return shown


def suffix_of(command: Command[Any], output: str) -> str:
    """What the file's name says of its kind; the longest suffix that the command knows."""
    name = Path(output).name.lower()
    suffixes = sorted(command.suffixes, key=len, reverse=True)
    return next((suffix for suffix in suffixes if name.endswith(suffix)), Path(name).suffix)


def rows_shown(answer: Any, options: Mapping[str, Any]) -> int | None:
    """How many rows are printed: the view's on a terminal, all where N is given or in a pipe."""
    from nsightpy.output.files import STDOUT
    from nsightpy.results import LazyRows, Table, View

    if not isinstance(answer, Table) or options.get("top") is not None:
        return None
    if options["output"] == STDOUT and sys.stdout.isatty():
        return (answer.view or View()).rows
    return SHOWN if isinstance(answer.rows, LazyRows) else None


def tell(answer: Any, options: Mapping[str, Any]) -> None:
    """The notes of an answer, on stderr, where the format does not carry them."""
    from nsightpy.units import counted

    notes = getattr(answer, "notes", ())
    if options.get("format_") not in ("json", "markdown"):
        for note in notes[:MOST_NOTES]:
            say(note, options)
        if (more := len(notes) - MOST_NOTES) > 0:
            say(f"{counted(more, 'more note')}: --format json has all", options)


def deliver(data: bytes, options: Mapping[str, Any]) -> None:
    """Write bytes to stdout or the wanted file."""
    with stdout_or_file(options) as file:
        file.write(data)


@contextmanager
def stdout_or_file(options: Mapping[str, Any]) -> Iterator[BinaryIO]:
    """Where bytes are wanted; never one of the reports.

    Raises UsageError for those that are not for terminals.
    """
    from nsightpy.errors import UsageError
    from nsightpy.output.files import STDOUT, output_file

    if options["output"] != STDOUT:
        output = Path(options["output"])
        _spare_inputs(output, (*(options.get("before") or ()), *options["reports"]))
        with output_file(output, force=options["force"]) as file:
            yield file
        return
    if options.get("format_") == "parquet" and sys.stdout.isatty():
        raise UsageError("Parquet is not for terminals: give -o FILE")
    sys.stdout.flush()
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


def _spare_inputs(output: Path, reports: Sequence[str]) -> None:
    """Raise OutputError where the output is one of the reports: --force spares them, too."""
    from nsightpy.errors import OutputError, ReportError
    from nsightpy.report_sets.opening import find_reports

    for given in reports if output.exists() else ():
        try:
            input_files = find_reports(given)
            if any(path.exists() and path.samefile(output) for path in input_files):
                raise OutputError(output, "is one of the reports", "give another file.")
        except (ReportError, OSError):
            continue


def deliver_text(write: Any, options: Mapping[str, Any]) -> None:
    """Print what is for people, on stdout or, uncut, into the wanted file."""
    from nsightpy.output.files import STDOUT
    from nsightpy.render.text.terminal import console

    if options["output"] == STDOUT:
        write(console())
        return
    text = io.StringIO()
    write(console(text))
    deliver(text.getvalue().encode("utf-8", "backslashreplace"), options)


def check_output(command: Command[Any], options: Mapping[str, Any]) -> None:
    """Raise UsageError where the name of the file promises what the command does not write."""
    from nsightpy.errors import UsageError

    output = options["output"]
    if output is None:
        raise UsageError(f"give -o FILE; its name ends with one of {', '.join(command.suffixes)}")
    suffix = suffix_of(command, output)
    formats = (*FORMATS, *command.formats) if command.layouts or command.formats else ()
    tables = [ending for ending, kind in FORMAT_OF_SUFFIX.items() if kind in formats]
    written = (*tables, *command.suffixes, *(TEXTS if formats else ()))
    is_drawn = suffix in (*PICTURES, ".html", ".pftrace")
    source = click.get_current_context().get_parameter_source("format_")
    is_free = bool(formats) and source == ParameterSource.COMMANDLINE
    if suffix not in written and (is_drawn or not is_free):
        endings = ", ".join(filter(None, written))
        raise UsageError(f"{output}: {command.name} writes no {suffix}; it writes {endings}")


def say(note: str, options: Mapping[str, Any]) -> None:
    """A note for people, on stderr."""
    if options["quiet"]:
        return
    from nsightpy.cli.failures import wrapped
    from nsightpy.output.escape import printable

    with contextlib.suppress(OSError):  # a full disk behind stderr changes no answer
        print(wrapped(f"note: {printable(note)}", sys.stderr, " " * 6), file=sys.stderr)
