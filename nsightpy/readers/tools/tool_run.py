"""Running a command-line tool to its end, and leaving nothing of it behind when interrupted."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import IO

from nsightpy.side_by_side import begun

_KEPT_OUTPUT_BYTES = 64 * 1024
_TICK_S = 0.2
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
    timeout_s: float | None = None,
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
    try:
        end = None if timeout_s is None else monotonic() + timeout_s
        output = _read_output(process, on_output, end)
        left = None if end is None else max(0.0, end - monotonic())
        return ToolRun(process.wait(left), output.decode("utf-8", "replace"))
    except BaseException as error:
        _kill_group(process)
        if isinstance(error, subprocess.TimeoutExpired):
            raise TimeoutError(f"{command[0]} took longer than {timeout_s} s") from None
        raise


def _read_output(
    process: subprocess.Popen[bytes], on_output: Callable[[bytes], None] | None, end: float | None
) -> bytes:
    """The last part of what the process said; ends with it even if a child holds the pipe."""
    chunks: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    begun(_pump, process.stdout, chunks)
    kept = bytearray()
    while True:
        if end is not None and monotonic() > end:
            raise TimeoutError("no answer in time")
        ended = process.poll() is not None
        try:
            chunk = chunks.get(timeout=_LAST_WORDS_S if ended else _TICK_S)
        except queue.Empty:
            if ended:
                return bytes(kept)
            continue
        if chunk is None:
            return bytes(kept)
        kept += chunk
        del kept[:-_KEPT_OUTPUT_BYTES]
        if on_output is not None:
            on_output(chunk)


def _pump(pipe: IO[bytes], chunks: queue.SimpleQueue[bytes | None]) -> None:
    with pipe:
        while chunk := pipe.read(_KEPT_OUTPUT_BYTES):
            chunks.put(chunk)
    chunks.put(None)


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
