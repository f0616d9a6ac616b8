"""A memory snapshot decoded in a child process, under limits that follow the file's size."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

import numpy as np

from nsightpy.errors import ReportError
from nsightpy.frames import Ints, Labels
from nsightpy.readers.limits import available_memory
from nsightpy.readers.torch import snapshot_decoder
from nsightpy.units import format_bytes

# Measured on snapshots of 200 MB and 1 GB: 8.2 bytes of memory for a byte of the file.
BASE_BYTES, BYTES_PER_BYTE = 256_000_000, 10
BASE_SECONDS, BYTES_PER_SECOND = 60, 2_000_000
HEADER = re.compile(rb"\x80[\x02-\x05]|[(}\]]")
KEYS = (b"segment", b"device_traces")
SUFFIXES = (".pickle", ".pkl")
_HARMFUL = "nothing in it was run; a snapshot written by torch needs no such thing."
_AGAIN = "write it again with torch.cuda.memory._dump_snapshot(FILE)."


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a decoded snapshot, and the texts that codes in them stand for."""

    numbers: dict[str, Ints]
    texts: dict[str, tuple[str, ...]]

    def ints(self, name: str) -> Ints:
        """A column; empty where the snapshot has no row of its kind."""
        return self.numbers.get(name, np.empty(0, dtype=np.int64))

    def labels(self, name: str) -> Labels:
        """A column of texts."""
        return Labels(self.ints(name).astype(np.int32), self.texts.get(name, ()))


def is_snapshot_file(path: Path) -> bool:
    """Whether a file is a pickle that names what snapshots hold, or says so by its suffix."""
    try:
        if not path.is_file():  # reading anything else could wait for ever
            return False
        with path.open("rb") as file:
            start = file.read(4096)
    except OSError:
        return False
    named = HEADER.match(start) is not None and any(key in start for key in KEYS)
    return named or path.suffix.lower() in SUFFIXES


def need_of(size: int) -> int:
    """The memory, in bytes, that decoding a snapshot of that size may take."""
    return BASE_BYTES + BYTES_PER_BYTE * size


def decode(path: Path) -> Columns:
    """The columns of a snapshot; nothing in the file is run.

    Raises ReportError when it is no snapshot, holds code, or needs more memory than there is.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise ReportError(path, f"cannot be read: {error.strerror}", "check the path.") from None
    if not S_ISREG(status.st_mode):
        raise ReportError(path, "is no plain file", "copy the snapshot to a file first.")
    need, there = need_of(status.st_size), available_memory()
    if there is not None and need > there:
        problem = (
            f"is a memory snapshot of {format_bytes(status.st_size)}: decoding it may take "
            f"{format_bytes(need)} of memory, and {format_bytes(there)} are free"
        )
        advice = "read it on a larger machine, or record fewer events (max_entries=100000)."
        raise ReportError(path, problem, advice)
    seconds = BASE_SECONDS + status.st_size // BYTES_PER_SECOND
    program = [sys.executable, "-I", "-S", snapshot_decoder.__file__]
    arguments = [str(path.absolute()), str(need), str(seconds)]
    try:
        process = subprocess.run([*program, *arguments], capture_output=True, check=False)
    except OSError as error:
        problem = f"cannot be decoded: {sys.executable} cannot be started: {error.strerror}"
        raise ReportError(path, problem, "check this Python installation.") from None
    if process.returncode:
        raise _failure(path, process.returncode, process.stderr, need, seconds)
    return _columns(path, process.stdout)


def _columns(path: Path, output: bytes) -> Columns:
    end = output.find(b"\n")
    header = json.loads(output[: max(end, 0)] or "{}")
    numbers, offset = {}, end + 1
    for name, length in header.get("columns", ()):
        numbers[name] = np.frombuffer(output, dtype=np.int64, count=length, offset=offset)
        offset += 8 * length
    if offset != len(output) or not numbers:
        raise ReportError(path, "was not decoded to its end", "try again.")
    return Columns(numbers, {name: tuple(texts) for name, texts in header["texts"].items()})


def _failure(path: Path, code: int, message: bytes, need: int, seconds: int) -> ReportError:
    """The message about a file that was not decoded."""
    detail = message.decode("utf-8", "replace").strip().strip("'\"")
    if code == snapshot_decoder.OUT_OF_MEMORY:
        problem = f"asks for more than the {format_bytes(need)} of memory that a snapshot of its"
        return ReportError(path, f"{problem} size may need: it is damaged or harmful", _AGAIN)
    if code == snapshot_decoder.REFUSED:
        return ReportError(path, f"is refused: the pickle asks for {detail}", _HARMFUL)
    if code == snapshot_decoder.NO_SNAPSHOT:
        advice = "nsightpy reads what torch.cuda.memory._dump_snapshot(FILE) writes."
        return ReportError(path, f"is no memory snapshot: {detail}", advice)
    if code == snapshot_decoder.DAMAGED:
        return ReportError(path, f"is a damaged pickle: {detail}", f"was it cut off? {_AGAIN}")
    if code in (-signal.SIGXCPU, -signal.SIGKILL) if sys.platform != "win32" else False:
        problem = f"was not decoded within {seconds} s of processor time and {format_bytes(need)}"
        return ReportError(path, f"{problem}: it is damaged or harmful", _AGAIN)
    problem = f"is refused: its decoder ended with {code}, as it does on data nested without end"
    return ReportError(path, problem, _AGAIN)
