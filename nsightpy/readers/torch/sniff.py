"""Whether a file is a trace of PyTorch's profiler, by what it holds and not by its name."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

from nsightpy.readers.torch.pieces import GZIP_MAGIC, unpacked_before_damage

LOOK_BYTES = 256 * 1024
TRACE_SUFFIXES = (".json", ".json.gz")
PERFETTO_SUFFIXES = (".pftrace", ".perfetto-trace")
_KEYS = re.compile(
    rb'^\s*(?:\{.*?"(?:traceEvents|schemaVersion|deviceProperties|distributedInfo'
    rb'|displayTimeUnit|baseTimeNanoseconds)"\s*:|\[\s*\{.*?"(?:ph|cat|ts)"\s*:)',
    re.DOTALL,
)
# A Perfetto trace is a protocol buffer whose field 1 repeats; packets begin with their length.
_PACKET = 0x0A


def is_torch_trace(path: Path) -> bool:
    """Whether a file is a JSON text, plain or gzip, that begins like a trace."""
    return _KEYS.match(_beginning(path)) is not None


def is_perfetto_trace(path: Path) -> bool:
    """Whether a file is one of Perfetto's, by its name and its first byte."""
    name = path.name.removesuffix(".gz")
    return name.endswith(PERFETTO_SUFFIXES) and _beginning(path)[:1] == bytes([_PACKET])


def _beginning(path: Path) -> bytes:
    """The first bytes of a file, unpacked; empty where it cannot be read."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            start = file.read(LOOK_BYTES)
    except OSError:
        return b""
    if start.startswith(GZIP_MAGIC):
        start = _unpacked(start)
    return start.removeprefix(b"\xef\xbb\xbf")


def _unpacked(start: bytes) -> bytes:
    try:
        return zlib.decompressobj(31).decompress(start, LOOK_BYTES)
    except zlib.error:
        return unpacked_before_damage(zlib.decompressobj(31), start)
