"""Limits of time for what Python itself cannot bound: regular expressions, calls into drivers."""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from nsightpy.side_by_side import begun

_TICK_S = 0.1


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError where the block takes longer.

    Only in the main thread, and where the system has timers that nobody else uses; elsewhere the
    block takes its time.
    """
    has_timer = hasattr(signal, "setitimer")
    is_main = threading.current_thread() is threading.main_thread()
    if not has_timer or not is_main or signal.getitimer(signal.ITIMER_REAL)[0] > 0:
        yield
        return

    def late(_number: int, _frame: object) -> None:
        raise TimeoutError(f"took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def in_threads(work: Callable[[int], None], parts: Sequence[int], seconds: float) -> None:
    """Do all parts of some work side by side, and raise the first exception of any.

    Raises TimeoutError where they take more of the processor: nobody waits for the threads then,
    which end with the process at the latest. Signals are handled meanwhile.
    """
    done: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def do_part(part: int) -> None:
        try:
            work(part)
            done.put(None)
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            done.put(error)

    end = time.process_time() + seconds * len(parts)
    threads = []
    for part in parts:
        try:
            threads.append(begun(do_part, part))
        except RuntimeError:  # no more threads, or no memory for one: this one does it
            do_part(part)
    waited_for = len(parts)
    while waited_for:
        try:
            failed = done.get(timeout=_TICK_S)
        except queue.Empty:
            if time.process_time() > end:
                raise TimeoutError(f"took more than {seconds} s of processor time") from None
            if not any(thread.is_alive() for thread in threads) and done.empty():
                raise MemoryError("a thread ended without a word") from None
            continue
        waited_for -= 1
        if failed is not None:
            raise failed
    for thread in threads:  # a process with threads cannot be copied
        thread.join()
