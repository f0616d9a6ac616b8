"""Limits of time for what Python itself cannot bound: regular expressions, calls into drivers."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from nsightpy.readers.tools.threads import begun

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
