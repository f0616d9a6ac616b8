"""A trace file cut into pieces: what stands around the events, and the events some at a time; what
the trace says of itself there: start of its clock, ranks, GPUs, versions.

The text is read some MiB at a time (and unpacked as it is read), so that a trace of any size takes
little memory. Events are cut apart where an object ends and one with the same first key as the
first event begins: quotes inside of strings are escaped, so no string looks like that.

The header may name users, hosts, jobs and paths: only the fields below are ever read.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

from nsightpy.errors import ReportError
from nsightpy.readers.tools.file_check import file_errors
from nsightpy.readers.torch.columns import whole

PIECE_BYTES = 8 * 2**20
LONGEST_EVENT_BYTES = 64 * 2**20
# What is unpacked at once is lost with a damage in it.
_UNPACKED_BYTES = 16384
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
        with file_errors(self.path), self.path.open("rb") as file:
            try:
                yield from texts(file, PIECE_BYTES)
            except EOFError:
                self.cut_off = True

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

    Raises EOFError at damaged gzip data, after everything that stands before.
    """
    packed = file.read(2) == _GZIP_MAGIC
    file.seek(0)
    source: Any = gzip.GzipFile(fileobj=file) if packed else file
    held = bytearray()
    try:
        while data := source.read1(_UNPACKED_BYTES):
            held += data
            if len(held) >= size:
                yield bytes(held)
                held.clear()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        yield bytes(held)
        raise EOFError("the compressed data are damaged or end too early") from error
    yield bytes(held)


def _object_length(text: bytes) -> int:
    """The length of the object that a text begins with; 0 where there is none, or not all of it."""
    depth = 0
    if text.startswith(b"{"):
        for match in _STRING_OR_BRACE.finditer(text):
            depth += (match[0] == b"{") - (match[0] == b"}")
            if depth == 0:
                return match.end()
    return 0


_KEYS = re.compile(
    rb'^\s*(?:\{.*?"(?:traceEvents|schemaVersion|deviceProperties|distributedInfo'
    rb'|displayTimeUnit|baseTimeNanoseconds)"\s*:|\[\s*\{.*?"(?:ph|cat|ts)"\s*:)',
    re.DOTALL,
)
# HOST_PID.TIME.pt.trace.json, as tensorboard_trace_handler names each cycle of each process.
_CYCLE = re.compile(r"(.+_\d+)\.(\d{10,20})\.pt\.trace\.json(?:\.gz)?")


def is_trace(start: bytes) -> bool:
    """Whether a text begins like a trace."""
    return _KEYS.match(start.removeprefix(b"\xef\xbb\xbf")) is not None


def latest_cycles(paths: Iterable[Path]) -> list[Path]:
    """The files without all but the last cycle of each process in each folder."""
    cycles: dict[object, list[tuple[int, Path]]] = {}
    for path in dict.fromkeys(paths):
        match = _CYCLE.fullmatch(path.name)
        process, time = ((path.parent, match[1]), int(match[2])) if match else (path, 0)
        cycles.setdefault(process, []).append((time, path))
    return [max(times, key=itemgetter(0))[1] for times in cycles.values()]


_HEADER_FIELDS = (
    *("schemaVersion", "baseTimeNanoseconds", "deviceProperties", "distributedInfo"),
    *("cuda_runtime_version", "hip_runtime_version"),
)


@dataclass(frozen=True)
class Header:
    """The wanted part of a header, GPUs as it lists them; None and empty where it does not say."""

    schema_version: str = ""
    base_ns: int = 0
    gpus: tuple[Mapping[str, Any], ...] = ()
    rank: int | None = None
    runtime: str = ""

    @classmethod
    def of(cls, before: bytes, after: bytes) -> Header:
        """The header in the texts before and after the events."""
        fields = _fields(before, after)
        distributed = fields.get("distributedInfo")
        jobs: Mapping[str, Any] = distributed if isinstance(distributed, dict) else {}
        given = fields.get("deviceProperties")
        listed = given if isinstance(given, list) else []
        rank = whole(jobs.get("rank"), -1)
        versions = (_version(api, fields.get(f"{api}_runtime_version")) for api in ("cuda", "hip"))
        return cls(
            schema_version=str(fields.get("schemaVersion", ""))[:20],
            base_ns=whole(fields.get("baseTimeNanoseconds", 0)),
            gpus=tuple(gpu for gpu in listed if isinstance(gpu, dict)),
            rank=rank if rank >= 0 else None,
            runtime=next(filter(None, versions), ""),
        )


def _fields(before: bytes, after: bytes) -> dict[str, Any]:
    """The known fields; none where there is only a list of events, or a damaged header."""
    head = before.removeprefix(b"\xef\xbb\xbf")
    text = (head + b'"": 0' + (after.strip() or b"}")).decode("utf-8", "replace")
    with suppress(ValueError, RecursionError, TypeError):
        fields = json.loads(text, object_pairs_hook=_merged, strict=False)
        return {name: fields[name] for name in _HEADER_FIELDS if name in fields}
    return {}


def _merged(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys may repeat: objects are put together, of values the first one that
    says anything counts."""
    merged: dict[str, Any] = {}
    for name, value in pairs:
        earlier = merged.get(name)
        if isinstance(earlier, dict) and isinstance(value, dict):
            merged[name] = value | earlier
        elif earlier in (None, "", []):
            merged[name] = value
    return merged


def _version(api: str, value: Any) -> str:
    """A runtime's version number, 12060, as CUDA 12.6; HIP writes 60342134 for 6.3.42134."""
    number = whole(value)
    if number <= 0:
        return ""
    if number >= 10_000_000:
        return f"{api.upper()} {number // 10_000_000}.{number // 100_000 % 100}"
    return f"{api.upper()} {number // 1000}.{number % 1000 // 10}"
