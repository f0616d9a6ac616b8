"""What went wrong, as a message for people and, where json was asked for, as data.

And the streams that it is said on: what goes wrong there is said once, and never twice.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

import click

from nsightpy.errors import FaultError, NsightpyError, UsageError

# What ends a command with a message; everything else is made one of these before.
FAILURES = (click.ClickException, click.exceptions.Abort, NsightpyError, MemoryError, OSError)
_WIDEST = 120  # of lines that people read
_COMMAND = re.compile(r"`[^`]+`|--[\w-]+ [A-Z]+\b")


@dataclass(frozen=True)
class Failure:
    """The message, the exit code, and what the message says: which file, what, what to do."""

    message: str
    code: int
    what: str
    file: str = ""
    what_to_do: str = ""
    said_by: str = "nsightpy: "

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """What is said of one of FAILURES."""
        if isinstance(error, click.ClickException):
            text, context = io.StringIO(), getattr(error, "ctx", None)
            error.show(text)
            advice = f"{context.command_path} --help" if context else ""
            what = error.format_message()
            return cls(text.getvalue(), error.exit_code, what, "", advice, said_by="")
        if isinstance(error, click.exceptions.Abort):
            return cls("interrupted", 130, "interrupted")
        if isinstance(error, NsightpyError):
            code = 2 if isinstance(error, UsageError) else 1
            said_by = "" if isinstance(error, FaultError) else cls.said_by
            return cls(str(error), code, error.problem, error.path, error.advice, said_by)
        if isinstance(error, MemoryError):
            advice = "narrow the question with --from and --to, or use fewer --jobs"
            return cls(f"out of memory; {advice}", 1, "out of memory", what_to_do=advice)
        return _of_system(error)

    def tell(self, as_json: bool) -> None:
        """Print it on stderr: the message and, below it where it is wanted, one line of json.

        stdout is left alone: it holds the answer or nothing, and may hold the first rows of one.
        """
        try:
            print(*self._lines(as_json), sep="\n", file=sys.stderr)
            sys.stderr.flush()
        except (MemoryError, ImportError, SystemError):
            os.write(2, b"nsightpy: out of memory\n")
        except OSError:
            give_up(sys.stderr)

    def _lines(self, as_json: bool) -> list[str]:
        from nsightpy.output.escape import printable

        # the message may repeat names and words as they were given
        message = self.said_by + self.message
        lines = [
            wrapped(printable(line), sys.stderr, " " * (len(line) - len(line.lstrip()) + 2))
            for line in message.removesuffix("\n").split("\n")
        ]
        if as_json:
            from nsightpy.output.formats import error_document

            lines.append(json.dumps(error_document(self.file, self.what, self.what_to_do)))
        return lines


@contextmanager
def faults_raised() -> Iterator[None]:
    """Raise the first fault of nsightpy that is logged meanwhile, once all else is answered."""
    faults: list[FaultError] = []

    def keep(record: logging.LogRecord) -> bool:
        faults.extend([record.msg] if isinstance(record.msg, FaultError) else [])
        return True

    logger = logging.getLogger("nsightpy")
    logger.addFilter(keep)
    try:
        yield
    finally:
        logger.removeFilter(keep)
    if faults:
        raise faults[0]


def _of_system(error: BaseException) -> Failure:
    """What the system said, of a file or of the output."""
    file, reason = getattr(error, "filename", None), getattr(error, "strerror", None) or str(error)
    if file is not None:
        return Failure(f"{os.fsdecode(file)}: {reason}", 1, reason, os.fsdecode(file))
    give_up(sys.stdout)
    what = f"the output cannot be written: {reason}"
    return Failure(what, 1, what)


def prepare_streams() -> None:
    """Let stdout take any text, whatever its encoding; where it is closed, writing to it fails.

    File descriptors 0 to 2 are taken, so that no report or output is opened as one of them.
    """
    with contextlib.suppress(OSError):  # none is left: then these are taken
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(descriptor, True)
        os.close(descriptor)
    for name, mode in (("stdout", "r"), ("stderr", "w")):  # nobody wants to hear anything
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def wrapped(line: str, stream: IO[str], indent: str) -> str:
    """A line as that stream's readers see it: on a terminal, wrapped between its words.

    What can be typed, in backticks, is not divided: it can be copied.
    """
    if not stream.isatty():
        return line
    width = max(min(shutil.get_terminal_size().columns, _WIDEST) - 1, 40)
    whole = _COMMAND.sub(lambda found: found[0].replace(" ", "\0"), line)
    lines = textwrap.wrap(
        whole, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines).replace("\0", " ")


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


def give_up(*streams: IO[str]) -> None:
    """What is still to be written to these streams goes nowhere."""
    for stream in streams:
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
