"""How long one question to a file may take, and how much work it may be: docs/limits.md.

The defaults grow with the file, so that no whole report of any size meets them.
"""

from __future__ import annotations

import os
import threading
import time

from nsightpy.errors import UsageError

QUERY_SECONDS = "NSIGHTPY_QUERY_SECONDS"
LEAST_SECONDS = 10.0
BYTES_PER_SECOND = 2_000_000
LEAST_STEPS = 100_000_000
STEPS_PER_BYTE = 200
# SQLite asks this often (in steps of its machine) whether to go on.
STEPS_BETWEEN = 50_000


def query_seconds(file_bytes: int) -> float:
    """Seconds that one query of a file may take. Raises UsageError where the variable is none."""
    text = os.environ.get(QUERY_SECONDS, "")
    if not text:
        return LEAST_SECONDS + file_bytes / BYTES_PER_SECOND
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise UsageError(f"{QUERY_SECONDS} is {text[:40]!r}: give seconds, such as 300")
    return seconds


class QueryWatch:
    """Ends a query that takes too long, or that the user interrupts.

    SQLite calls it while a query runs; Python handles signals then, which it cannot inside of
    SQLite.
    """

    def __init__(self, file_bytes: int) -> None:
        self._seconds = query_seconds(file_bytes)
        self._most_steps = LEAST_STEPS + STEPS_PER_BYTE * file_bytes
        if os.environ.get(QUERY_SECONDS):
            self._most_steps = 2**62
        self.begin()

    def begin(self) -> None:
        """A query begins now."""
        self._end = time.monotonic() + self._seconds
        self._steps = 0
        self.interruption: BaseException | None = None
        self.exceeded = ""

    def __call__(self) -> int:
        """1 ends the query."""
        try:
            self._steps += STEPS_BETWEEN
            if time.monotonic() > self._end:
                self.exceeded = f"took longer than {self._seconds:,.0f} s"
            elif self._steps > self._most_steps:
                self.exceeded = f"took more than {self._most_steps:,} steps"
            return 1 if self.exceeded else 0
        except BaseException as error:  # noqa: BLE001 - raised again once SQLite has returned
            self.interruption = error
            return 1

    @property
    def was_interrupted(self) -> BaseException:
        """What to raise for a query that ended without any limit being met."""
        main = threading.current_thread() is threading.main_thread()
        return self.interruption or (KeyboardInterrupt() if main else SystemExit(1))
