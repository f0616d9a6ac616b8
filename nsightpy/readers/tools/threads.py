"""Threads: that begin or say at once that there is no room for one, and work side by side."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from nsightpy.errors import memory_left

# A thread takes less to begin, its stack with it.
_MEMORY_TO_BEGIN = 32 * 2**20
_TICK_S = 0.1


def begun(target: Callable[..., object], *arguments: object) -> threading.Thread:
    """A daemon thread that runs. Raises RuntimeError where the system has no room for one.

    Thread.start waits without end for a thread that has no memory to begin.
    """
    left = memory_left()
    if left is not None and left < _MEMORY_TO_BEGIN:
        raise RuntimeError("no memory for a thread")
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread


def in_threads(work: Callable[[int], None], parts: Sequence[int], seconds: float) -> None:
    """Do all parts of some work side by side, and raise the first exception of any.

    Raises TimeoutError where they take more of the processor: nobody waits for the threads then,
    which end with the process at the latest. Signals are handled meanwhile.
    """
    outcomes: list[BaseException | None] = []

    def do_part(part: int) -> None:
        try:
            work(part)
            outcomes.append(None)
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            outcomes.append(error)

    end = time.process_time() + seconds * len(parts)
    threads = []
    for part in parts:
        try:
            threads.append(begun(do_part, part))
        except RuntimeError:  # no more threads, or no memory for one: this one does it
            do_part(part)
    for thread in threads:
        while thread.is_alive() and not any(outcomes):
            if time.process_time() > end:
                raise TimeoutError(f"took more than {seconds} s of processor time")
            thread.join(_TICK_S)
    for failed in filter(None, outcomes):
        raise failed
    if len(outcomes) < len(parts):
        raise MemoryError("a thread ended without a word")
