"""What went wrong, as a message for people and, where json was asked for, as data."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise, takewhile

import click

from nsightpy.cli.streams import give_up, wrapped
from nsightpy.errors import FaultError, NsightpyError, UsageError

MOST_MEMORY = "NSIGHTPY_MOST_MEMORY"
# What ends a command with a message; everything else is made one of these before.
FAILURES = (click.ClickException, click.exceptions.Abort, NsightpyError, MemoryError, OSError)


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
            limit = f" ({MOST_MEMORY} is set)" if MOST_MEMORY in os.environ else ""
            advice = f"narrow the question with --from and --to, or use fewer --jobs{limit}"
            return cls(f"out of memory; {advice}", 1, "out of memory", what_to_do=advice)
        return _of_system(error)

    def tell(self, as_json: bool) -> None:
        """Print it on stderr: the message and, below it where it is wanted, one line of json.

        stdout is left alone: it holds the answer or nothing, and may hold the first rows of one.
        """
        try:
            lines = self._lines(as_json)
        except (MemoryError, ImportError, OSError, SystemError):
            os.write(2, b"nsightpy: out of memory\n")
            return
        try:
            print(*lines, sep="\n", file=sys.stderr)
            sys.stderr.flush()
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


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether json was asked for by --format, in arguments that may be wrong ones."""
    own = list(takewhile(lambda word: word != "--", arguments))
    return "--format=json" in own or ("--format", "json") in pairwise(own)


def _of_system(error: BaseException) -> Failure:
    """What the system said, of a file or of the output."""
    file, reason = getattr(error, "filename", None), getattr(error, "strerror", None) or str(error)
    if file is not None:
        return Failure(f"{os.fsdecode(file)}: {reason}", 1, reason, os.fsdecode(file))
    give_up(sys.stdout)
    what = f"the output cannot be written: {reason}"
    return Failure(what, 1, what)
