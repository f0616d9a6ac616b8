"""Running a command-line tool to its end, and leaving nothing of it behind when interrupted."""

from __future__ import annotations

import math
import os
import queue
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import IO

from nsightpy.readers.tools.threads import begun

_KEPT_OUTPUT_BYTES = 64 * 1024
_TICK_S = 0.02
_LAST_WORDS_S = 1.0
_TERMINATE_S = 2.0


@dataclass(frozen=True)
class ToolRun:
    """How a tool ended: its exit code (negative: killed by that signal) and its last words."""

    returncode: int
    output: str


def run_tool(
    command: Sequence[str | Path],
    *,
    on_output: Callable[[bytes], None] | None = None,
    timeout_s: float = math.inf,
) -> ToolRun:
    """Run a tool to its end, handing on what it says on either stream as it comes.

    Raises OSError if it cannot start, and TimeoutError; any exception kills its process group.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
        start_new_session=True,
    )
    kept = bytearray()
    try:
        for chunk in _said(process, monotonic() + timeout_s):
            kept += chunk
            del kept[:-_KEPT_OUTPUT_BYTES]
            if on_output is not None:
                on_output(chunk)
    except BaseException:
        _kill_group(process)
        raise
    return ToolRun(process.returncode, kept.decode("utf-8", "replace"))


def _said(process: subprocess.Popen[bytes], end: float) -> Iterator[bytes]:
    """What a process says as it comes, until it ends: a child of it may hold the pipe longer."""
    chunks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    pump = begun(_pump, process.stdout, chunks)
    while process.poll() is None:
        if monotonic() > end:
            raise TimeoutError("no answer in time")
        with suppress(queue.Empty):
            yield chunks.get(timeout=_TICK_S)
    pump.join(_LAST_WORDS_S)
    while not chunks.empty():
        yield chunks.get()


def _pump(pipe: IO[bytes], chunks: queue.SimpleQueue[bytes]) -> None:
    with pipe:
        while chunk := pipe.read(_KEPT_OUTPUT_BYTES):
            chunks.put(chunk)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
        process.wait()
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_TERMINATE_S)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
