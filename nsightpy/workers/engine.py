"""Which way a function is run over reports: how many workers the processors and memory allow; those
of loky, which do not import the main program: it needs no `if __name__ == "__main__"`."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from nsightpy.errors import ReportError
from nsightpy.readers.limits import available_memory
from nsightpy.reports.one_file import OneFile
from nsightpy.workers.outcomes import (
    LOG,
    Outcome,
    Outcomes,
    R,
    Run,
    attempt_elsewhere,
    here,
)

T = TypeVar("T")
# Below this much memory for what is to be read, workers save less than they take to import (0.5 s).
PAYS_BYTES = 400_000_000
WORKER_BYTES = 200_000_000


def default_jobs(reports: Sequence[OneFile]) -> int:
    """How many workers pay: the processors this process may use, as far as memory reaches.

    One where there is one report, or so little to read that starting workers costs more.
    """
    sizes = [report.reading_bytes for report in reports]
    if len(sizes) < 2 or sum(sizes) < PAYS_BYTES:
        return 1
    largest = max(sizes) + WORKER_BYTES
    fitting = max(1, (available_memory() or largest * len(sizes)) // largest)
    return min(processors(), fitting, len(sizes))


def processors() -> int:
    """The processors that this process may use: its affinity, and its cgroup's quota."""
    import loky

    count: int = loky.cpu_count()
    return count


@contextlib.contextmanager
def engine(
    function: Callable[[R], Any],
    reports: Sequence[R],
    *,
    jobs: int | None = None,
    dask: object = None,
) -> Iterator[Run[R]]:
    """The way to run a function over reports; workers live as long as the context.

    On Dask where it is asked for, else in as many worker processes as wanted, by default as many
    as processors and memory allow where they pay.
    """
    if dask is not None:
        from nsightpy.workers.dask import dask_workers

        with dask_workers(dask) as run:
            yield run
        return
    count = min(jobs or default_jobs(reports), len(reports))
    if count < 2 or not sys.executable:
        yield here
        return
    with ProcessWorkers(count, max(1, processors() // count)) as workers:
        yield workers.run


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

        A pool does not say which report killed a worker: those that are left then are tried again,
        each alone. One that kills a worker then has failed.
        """
        for report in (yield from self._run(function, reports)):
            if (yield from self._run(function, [report])):
                problem = "the process that read it ended unexpectedly"
                advice = "nothing else was read meanwhile; it may have run out of memory: "
                yield report, ReportError(report.path, problem, f"{advice}try --from and --to.")

    def _run(
        self, function: Callable[[R], T], reports: Sequence[R]
    ) -> Generator[tuple[R, Outcome[T]], None, list[R]]:
        """Outcomes until all are there or a worker dies; returns the reports that have none."""
        left = dict(enumerate(reports))
        if self._pool is None:
            import loky

            start = {"initializer": _begin, "initargs": (self._watched,)}
            self._pool = loky.ProcessPoolExecutor(self._count, **start)
        try:
            tasks = {
                self._pool.submit(_work, function, report, self._threads): number
                for number, report in left.items()
            }
            for task in as_completed(list(tasks)):
                outcome = task.result()
                yield left.pop(tasks.pop(task)), outcome
        except BrokenProcessPool as error:
            LOG.info("a worker died: %s", error)
            self._close()
        return list(left.values())

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
