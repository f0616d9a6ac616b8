"""A termination signal as an exception, so that what is half done is cleaned up."""

import contextlib
import signal
import threading
from collections.abc import Iterator

# The signal that ends this process's work, for whoever cannot be reached by an exception.
_ENDING: list[int] = []


@contextlib.contextmanager
def signals_raise() -> Iterator[None]:
    """SIGTERM and SIGHUP raise SystemExit(128 + signal).

    So half-written files go. Only in the main thread, and where the program left these signals
    at their default; a second signal ends the process at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        _ENDING.append(number)
        raise SystemExit(128 + number)

    wanted = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
    taken = [each for each in wanted if each and signal.getsignal(each) is signal.SIG_DFL]
    for each in taken:
        signal.signal(each, leave)
    try:
        yield
    finally:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)
        if taken:
            _ENDING.clear()


def interruption() -> BaseException:
    """What interrupts this process: a termination signal if there was one, else Ctrl-C."""
    return SystemExit(128 + _ENDING[-1]) if _ENDING else KeyboardInterrupt()
