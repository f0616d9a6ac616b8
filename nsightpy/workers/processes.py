"""Worker processes: loky's pool of new processes.

They do not import the main program, so that needs no `if __name__ == "__main__"`.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import TypeVar

from nsightpy.errors import ReportError
from nsightpy.workers.outcomes import Outcome, Outcomes, R, attempt_elsewhere

LOG = logging.getLogger("nsightpy")
T = TypeVar("T")


class ProcessWorkers:
    """Worker processes, each reading one report at a time by some threads; a context manager."""

    def __init__(self, count: int, threads: int = 1) -> None:
        self._count = count
        self._threads = threads
        self._pool: Executor | None = None
        # workers end where nobody holds the other end any more: this process was killed, too
        self._watched, self._held = multiprocessing.Pipe(duplex=False)

    def __enter__(self) -> ProcessWorkers:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:  # nobody waits for what is being read
            self._held.close()
        self._close()
        self._held.close()
        self._watched.close()

    def run(self, function: Callable[[R], T], reports: Sequence[R]) -> Outcomes[R, T]:
        """The outcomes as they come; an exception of a worker is raised here.

        A pool does not say which report killed a worker: those that were begun first, as many as
        there are workers, are tried again, each alone. One that kills a worker then has failed.
        """
        waiting = list(reports)
        while waiting:
            waiting = yield from self._run(function, waiting)
            for report in waiting[: self._count]:
                if (yield from self._run(function, [report])):
                    problem = "the process that read it ended unexpectedly"
                    advice = "nothing else was read meanwhile; it may have run out of memory: "
                    yield report, ReportError(report.path, problem, f"{advice}try --from and --to.")
            waiting = waiting[self._count :]

    def _run(
        self, function: Callable[[R], T], reports: Sequence[R]
    ) -> Generator[tuple[R, Outcome[T]], None, list[R]]:
        """Outcomes until all are there or a worker dies; returns the reports that have none."""
        left = dict(enumerate(reports))
        pool = self._pool = self._pool or self._start()
        try:
            tasks = {
                pool.submit(_work, function, report, self._threads): number
                for number, report in left.items()
            }
            for task in as_completed(list(tasks)):
                outcome = task.result()
                yield left.pop(tasks.pop(task)), outcome
        except BrokenProcessPool as error:
            LOG.info("a worker died: %s", error)
            self._close()
        return list(left.values())

    def _start(self) -> Executor:
        import loky

        pool: Executor = loky.ProcessPoolExecutor(
            self._count, initializer=_begin, initargs=(self._watched,)
        )
        return pool

    def _close(self) -> None:
        """End the pool and wait for its processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None


def _begin(caller: Connection) -> None:
    """What a worker does first."""
    # Ctrl-C reaches the workers, too; their caller informs the user
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)  # what libraries print must not mix with what the program writes

    def end_with_caller() -> None:
        """End this worker, and what it runs, once its caller is gone or waits no more."""
        caller.poll(None)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_caller, daemon=True).start()


def _work(function: Callable[[R], T], report: R, threads: int) -> Outcome[T]:
    """What a worker does with one report: an interrupt ends the reading, and tools run for it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return attempt_elsewhere(function, report, threads)
    finally:
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
