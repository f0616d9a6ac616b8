"""A trace file cut into pieces: what stands around the events, and the events some at a time.

The text is read through a window of some MiB (and unpacked as it is read), so that a trace of any
size takes little memory. Events are cut apart where an object ends and one with the same first
key as the first event begins: quotes inside of strings are escaped, so no string looks like that.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from nsightpy.errors import ReportError

PIECE_BYTES = 8 * 2**20
LONGEST_EVENT_BYTES = 64 * 2**20
_SMALL_PIECE = 256
GZIP_MAGIC = b"\x1f\x8b"
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[\s*(?=[^\s\]])')
_ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*(?=\{)")
_BETWEEN = re.compile(rb"[, \t\r\n]*")
_TOKEN = re.compile(rb'\\.|["{}]', re.DOTALL)
_FIRST_KEY = re.compile(rb'(?:\{\s*\}\s*,\s*)*\{\s*("(?:[^"\\]|\\.)*")')


@dataclass
class Around:
    """What stands before and after the events, and whether the file ends where it should."""

    before: bytes = b""
    after: bytes = b""
    cut_at: int | None = None
    damage: str = ""


@dataclass
class Pieces:
    """The events of a trace as texts of whole events, separated by commas, with their offsets."""

    path: Path
    around: Around = field(default_factory=Around)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        with closing(opened(self.path)) as file:
            yield from self._pieces(_Window(file, self.path, self.around))

    def _pieces(self, window: _Window) -> Iterator[tuple[int, bytes]]:
        start = self._begin(window)
        if start is None:
            return
        window.drop(start)
        first = _FIRST_KEY.match(window.text)
        key = re.escape(first[1]) if first else b'"name"'
        boundary = re.compile(rb'\}\s*,\s*(?=\{\s*(?:"ph"|' + key + rb")\s*:)")
        while True:
            more = window.grow()
            last = _last(boundary, window.text)
            if last is not None:
                yield window.offset, window.text[: last.start() + 1]
                window.drop(last.end())
            elif more and len(window.text) > LONGEST_EVENT_BYTES:
                problem = f"has an event of more than {LONGEST_EVENT_BYTES:,} bytes"
                raise ReportError(self.path, problem, "it is no trace of PyTorch's profiler.")
            if not more:
                yield from self._tail(window)
                return

    def _begin(self, window: _Window) -> int | None:
        """Where the first event begins; None where there are no events."""
        while True:
            more = window.grow()
            begin = _ARRAY.match(window.text) or _EVENTS.search(window.text)
            if begin:
                self.around.before = window.text[: begin.start()]
                return begin.end()
            if not more or len(window.text) > LONGEST_EVENT_BYTES:
                self.around.before = window.text
                return None

    def _tail(self, window: _Window) -> Iterator[tuple[int, bytes]]:
        """The last events, and what stands after them."""
        text, start, end = window.text, 0, 0
        while True:
            start = _BETWEEN.match(text, start).end()  # type: ignore[union-attr]
            stop = _end_of_object(text, start)
            if stop is None:
                break
            start = end = stop
        if end:
            yield window.offset, text[:end]
        self._finish(window, end)

    def _finish(self, window: _Window, end: int) -> None:
        rest = window.text[end:].lstrip(b", \t\r\n")
        if not rest.startswith(b"]"):
            self.around.cut_at = window.offset + end
        else:
            self.around.after = rest[1:]


class _Window:
    """The part of a file that is looked at; damage to the file's end is noted, not raised."""

    def __init__(self, file: IO[bytes] | _Unpacked, path: Path, around: Around) -> None:
        self.text = b""
        self.offset = 0
        self._file = file
        self._path = path
        self._around = around

    def grow(self) -> bool:
        """Read on; False at the end of the file."""
        try:
            more = self._file.read(PIECE_BYTES)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            # what the file object had unpacked of this piece before the damage is lost with it
            self._around.damage = str(error) or "the compressed data end too early"
            return False
        except OSError as error:
            advice = "check its permissions."
            raise ReportError(
                self._path, f"cannot be read: {error.strerror or error}", advice
            ) from error
        self.text += more
        return bool(more)

    def drop(self, length: int) -> None:
        """Forget the first bytes."""
        self.text = self.text[length:]
        self.offset += length


def opened(path: Path) -> IO[bytes] | _Unpacked:
    """The file, unpacked where it is gzip. Raises ReportError when it cannot be opened."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise ReportError(path, f"cannot be read: {error.strerror}", "check the path.") from error
    magic = file.read(2)
    file.seek(0)
    return _Unpacked(file) if magic == GZIP_MAGIC else file


class _Unpacked(io.RawIOBase):
    """A gzip file as it is unpacked; of a damaged one everything up to the damage is given."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._inflate = zlib.decompressobj(31)
        self._failed: Exception | None = None

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, none at the end. Raises zlib.error, EOFError after the last."""
        parts: list[bytes] = []
        wanted = size
        while wanted > 0 and self._failed is None:
            part = self._some(wanted)
            if not part:
                break
            parts.append(part)
            wanted -= len(part)
        if not parts and self._failed is not None:
            raise self._failed
        return b"".join(parts)

    def _some(self, wanted: int) -> bytes:
        while True:
            if self._inflate.eof:
                rest = self._inflate.unused_data or self._file.read(1 << 20)
                if not rest.startswith(GZIP_MAGIC):
                    return b""
                self._inflate = zlib.decompressobj(31)
            else:
                rest = self._inflate.unconsumed_tail or self._file.read(1 << 20)
                if not rest:
                    self._failed = EOFError("the compressed data end too early")
                    return b""
            before = self._inflate.copy()
            try:
                inflated = self._inflate.decompress(rest, wanted)
            except zlib.error as error:
                self._failed = error
                return unpacked_before_damage(before, rest)
            if inflated:
                return inflated

    def close(self) -> None:
        self._file.close()
        super().close()


def unpacked_before_damage(inflate: Any, data: bytes) -> bytes:
    """What can be unpacked of damaged data, piece by piece up to the damage."""
    parts = []
    with suppress(zlib.error):
        for place in range(0, len(data), _SMALL_PIECE):
            parts.append(inflate.decompress(data[place : place + _SMALL_PIECE]))
    return b"".join(parts)


def _last(boundary: re.Pattern[bytes], text: bytes) -> re.Match[bytes] | None:
    """The last boundary in a text; looked for near its end first."""
    reach = 1 << 16
    while True:
        low = max(0, len(text) - reach)
        last = None
        for match in boundary.finditer(text, low):
            last = match
        if last is not None or low == 0:
            return last
        reach *= 8


def _end_of_object(text: bytes, start: int) -> int | None:
    """Where the object that begins there ends; None where none does, or the text ends before."""
    if text[start : start + 1] != b"{":
        return None
    depth, quoted, place = 0, False, 0
    for match in _TOKEN.finditer(text, start):
        character = match[0]
        if character == b'"':
            quoted = not quoted
        elif not quoted and character == b"{":
            depth += 1
        elif not quoted and character == b"}":
            depth -= 1
            place = match.end()
            if depth == 0:
                return place
    return None
