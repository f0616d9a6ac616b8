"""A limit of time for what Python itself cannot bound: matching a user's regular expression."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


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
