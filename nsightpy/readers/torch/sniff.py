"""Whether a file is a trace of PyTorch's profiler, by what it holds and not by its name."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path

from nsightpy.readers.torch.pieces import texts

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
