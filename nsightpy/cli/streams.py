"""The program's text streams: what goes wrong there is said once, and never twice."""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import re
import sys
import textwrap
from collections.abc import Callable
from typing import IO, Any

# Signs that reports for people are drawn with, for encodings that lack them.
_PLAIN = {
    sign: plain
    for plain, signs in {
        "#": "█▉▊▋▌▍▎▏▇▆▅▄▃▂▁■▪▓▒░",
        "-": "─━┄–—−",
        "|": "│┃",
        ".": "…·•",
        "x": "×✕",
        ">": "→▶►",
        "<": "←◀◄",
        ">=": "≥",
        "<=": "≤",
        "u": "µμ",
    }.items()
    for sign in signs
}
_ERRORS = "nsightpy.plain"
_WIDEST = 120  # of lines that people read
_COMMAND = re.compile(r"`[^`]+`|--[\w-]+ [A-Z]+\b")


def prepare_streams() -> None:
    """Let stdout and stderr take any text, whatever their encoding; closed ones say so when used.

    File descriptors 0 to 2 are taken, so that no report or output is opened as one of them.
    """
    codecs.register_error(_ERRORS, _plain)
    with contextlib.suppress(OSError):  # none is left: then these are taken
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(descriptor, True)
        os.close(descriptor)
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None and name == "stderr":  # nobody wants to hear anything
            sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        elif stream is None:
            setattr(sys, name, io.TextIOWrapper(_Closed(), encoding="utf-8", write_through=True))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ERRORS)


def wrapped(line: str, stream: IO[str], indent: str) -> str:
    """A line as that stream's readers see it: on a terminal, wrapped between its words.

    What can be typed, in backticks, is not divided: it can be copied.
    """
    if not stream.isatty():
        return line
    try:
        columns = os.environ.get("COLUMNS") or os.get_terminal_size(stream.fileno()).columns
        width = min(int(columns) - 1, _WIDEST)
    except (OSError, ValueError):
        return line
    text = line.lstrip()
    lines = textwrap.wrap(
        _COMMAND.sub(lambda found: found[0].replace(" ", "\0"), text),
        max(width, 40),
        initial_indent=line[: len(line) - len(text)],
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
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


def quiet_libraries() -> None:
    """Log lines of libraries are not for people who asked for a table."""
    import logging

    for library in ("matplotlib", "distributed", "numpy", "PIL", "fontTools", "asyncio"):
        logging.getLogger(library).setLevel(logging.CRITICAL)


def give_up(*streams: IO[str]) -> None:
    """What is still to be written to these streams goes nowhere."""
    for stream in streams:
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    shown = (_PLAIN.get(each) or each.encode("ascii", "backslashreplace").decode() for each in text)
    return "".join(shown), error.end


class _Closed(io.RawIOBase):
    """A stream that was closed before the program began."""

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        raise OSError(errno.EBADF, "it is closed")
