"""A trace file cut into pieces: what stands around the events, and the events some at a time.

The text is read some MiB at a time (and unpacked as it is read), so that a trace of any size takes
little memory. Events are cut apart where an object ends and one with the same first key as the
first event begins: quotes inside of strings are escaped, so no string looks like that.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import IO

from nsightpy.errors import ReportError

PIECE_BYTES = 8 * 2**20
LONGEST_EVENT_BYTES = 64 * 2**20
# What is unpacked at once is lost with a damage in it.
_PACKED_BYTES = 256
_GZIP_MAGIC = b"\x1f\x8b"
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[\s*(?=[^\s\]])')
_ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*(?=\{)")
BETWEEN = b", \t\r\n"
_STRING_OR_BRACE = re.compile(rb'"[^"\\]*(?:\\.?[^"\\]*)*(?:"|\Z)|[{}]', re.DOTALL)
_FIRST_KEY = re.compile(rb'(?:\{\s*\}\s*,\s*)*\{\s*("(?:[^"\\]|\\.)*")')


@dataclass
class Pieces:
    """The events of a trace as texts of whole events, separated by commas.

    Once they are read it knows what stands before and after them, and whether the file ends early.
    """

    path: Path
    before: bytes = b""
    after: bytes = b""
    cut_off: bool = False

    def __iter__(self) -> Iterator[bytes]:
        text = b""
        last_boundary: re.Pattern[bytes] | None = None
        for more in self._texts():
            text += more
            if last_boundary is None:
                begin = _ARRAY.match(text) or _EVENTS.search(text)
                if begin is None:
                    if len(text) > LONGEST_EVENT_BYTES:
                        break
                    continue
                self.before = text[: begin.start()]
                text = text[begin.end() :]
                first = _FIRST_KEY.match(text)
                key = re.escape(first[1]) if first else b'"name"'
                # what finds all events of a text but the last one
                last_boundary = re.compile(
                    rb'(.*\})\s*,\s*(?=\{\s*(?:"ph"|' + key + rb")\s*:)", re.DOTALL
                )
            if boundary := last_boundary.match(text):
                yield boundary[1]
                text = text[boundary.end() :]
            elif len(text) > LONGEST_EVENT_BYTES:
                problem = f"has an event of more than {LONGEST_EVENT_BYTES:,} bytes"
                raise ReportError(self.path, problem, "it is no trace of PyTorch's profiler.")
        if last_boundary is None:
            self.before = text
        else:
            yield from self._tail(text)

    def _texts(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file:
                yield from texts(file, PIECE_BYTES)
        except (EOFError, zlib.error):
            self.cut_off = True
        except OSError as error:
            problem = f"cannot be read: {error.strerror or error}"
            raise ReportError(self.path, problem, "check the path.") from error

    def _tail(self, text: bytes) -> Iterator[bytes]:
        """The last events, and what stands after them."""
        rest, end = text.lstrip(BETWEEN), 0
        while length := _object_length(rest):
            end = len(text) - len(rest) + length
            rest = text[end:].lstrip(BETWEEN)
        if end:
            yield text[:end]
        if rest.startswith(b"]"):
            self.after = rest[1:]
        else:
            self.cut_off = True


def texts(file: IO[bytes], size: int) -> Iterator[bytes]:
    """What a file holds, about `size` bytes at a time, unpacked where it is gzip.

    Raises zlib.error or EOFError at damaged gzip data, after everything that stands before.
    """
    packed = file.read(2) == _GZIP_MAGIC
    file.seek(0)
    yield from _unpacked(file, size) if packed else iter(lambda: file.read(size), b"")


def _unpacked(file: IO[bytes], size: int) -> Iterator[bytes]:
    inflate, held = zlib.decompressobj(31), bytearray()
    while data := inflate.unused_data or file.read(_PACKED_BYTES):
        if inflate.eof:
            if not _GZIP_MAGIC.startswith(data[:2]):
                break
            inflate = zlib.decompressobj(31)
        try:
            held += inflate.decompress(data)
        except zlib.error:
            yield bytes(held)
            raise
        if len(held) >= size:
            yield bytes(held)
            held.clear()
    yield bytes(held)
    if not inflate.eof:
        raise EOFError("the compressed data end too early")


def _object_length(text: bytes) -> int:
    """The length of the object that a text begins with; 0 where there is none, or not all of it."""
    depth = 0
    if text.startswith(b"{"):
        for match in _STRING_OR_BRACE.finditer(text):
            depth += (match[0] == b"{") - (match[0] == b"}")
            if depth == 0:
                return match.end()
    return 0


LOOK_BYTES = 256 * 1024
TRACE_SUFFIXES = (".json", ".json.gz")
_KEYS = re.compile(
    rb'^\s*(?:\{.*?"(?:traceEvents|schemaVersion|deviceProperties|distributedInfo'
    rb'|displayTimeUnit|baseTimeNanoseconds)"\s*:|\[\s*\{.*?"(?:ph|cat|ts)"\s*:)',
    re.DOTALL,
)
# HOST_PID.TIME.pt.trace.json, as tensorboard_trace_handler names each cycle of each process.
_CYCLE = re.compile(r"(.+_\d+)\.(\d{10,20})\.pt\.trace\.json(?:\.gz)?")


def is_torch_trace(path: Path) -> bool:
    """Whether a file is a JSON text, plain or gzip, that begins like a trace."""
    return _KEYS.match(_beginning(path)) is not None


def latest_cycles(paths: Iterable[Path]) -> dict[Path, int]:
    """The files without all but the last cycle of each process in each folder, and how many
    earlier ones that left out."""
    cycles: dict[object, list[tuple[int, Path]]] = {}
    for path in dict.fromkeys(paths):
        match = _CYCLE.fullmatch(path.name)
        process, time = ((path.parent, match[1]), int(match[2])) if match else (path, 0)
        cycles.setdefault(process, []).append((time, path))
    return {max(times, key=itemgetter(0))[1]: len(times) - 1 for times in cycles.values()}


def _beginning(path: Path) -> bytes:
    """The first bytes of a file, unpacked; empty where it cannot be read."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            start = next(texts(file, LOOK_BYTES), b"")[:LOOK_BYTES]
    except (OSError, EOFError, zlib.error):
        return b""
    return start.removeprefix(b"\xef\xbb\xbf")
