"""Worker processes: the standard pool of forked copies, or loky's pool of new processes.

A copy has everything imported already, but lacks the threads of its original: this process is
forked only where it chose to be (as the command line does) and has one thread. New processes do
not import the main program, so that needs no `if __name__ == "__main__"`.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

from nsightpy.errors import ReportError
from nsightpy.workers.outcomes import Outcome, Outcomes, R, attempt_elsewhere
from nsightpy.workers.resources import processors

T = TypeVar("T")
# So many reports more than workers are under way, so that no worker waits for its next one.
AHEAD = 1
ORPHAN_CHECK_S = 1.0


def may_fork() -> bool:
    """Whether this program chose to be forked, and a copy would lack no thread."""
    chosen = multiprocessing.get_start_method(allow_none=True)
    return chosen == "fork" and sys.platform == "linux" and threading.active_count() == 1


class ProcessWorkers:
    """Worker processes, each reading one report at a time. Use as a context manager."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._threads = max(1, processors() // count)
        self._pool: Executor | None = None
        self._processes: list[BaseProcess] = []

    def __enter__(self) -> ProcessWorkers:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:  # nobody waits for what is being read
            for process in self._processes:
                if process.is_alive():
                    process.terminate()
        self._close()

    def run(self, function: Callable[[R], T], reports: Sequence[R]) -> Outcomes[R, T]:
        """The outcomes as they come; an exception of a worker is raised here.

        A pool does not say which report killed a worker: those that were under way are tried
        again, each alone. One that kills a worker then has failed.
        """
        waiting = deque(reports)
        while waiting:
            lost = yield from self._run(function, waiting, self._count + AHEAD)
            for report in lost:
                alone = len(lost) == 1 or (yield from self._run(function, deque([report]), 1))
                if alone:
                    yield report, _died(report.path, self._exit_code())

    def _run(
        self, function: Callable[[R], T], waiting: deque[R], at_once: int
    ) -> Generator[tuple[R, Outcome[T]], None, list[R]]:
        """Outcomes until none waits or a worker dies; returns the reports under way then."""
        pool = self._pool = self._pool or self._start()
        running: dict[Future[Outcome[T]], R] = {}
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    task = pool.submit(_work, function, waiting[0], self._threads)
                    running[task] = waiting.popleft()
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    outcome = future.result()
                    yield running.pop(future), outcome
        except BrokenProcessPool:
            self._close()
        return list(running.values())

    def _start(self) -> Executor:
        begin: dict[str, Any] = {"initializer": _begin, "initargs": (os.getpid(),)}
        context: Any
        if may_fork():
            context = _Noting(multiprocessing.get_context("fork"))
            pool: Executor = ProcessPoolExecutor(self._count, mp_context=context, **begin)
        else:
            import loky

            context = _Noting(loky.backend.get_context("loky"))
            pool = loky.ProcessPoolExecutor(self._count, context=context, **begin)
        self._processes = context.processes
        return pool

    def _close(self) -> None:
        """End the pool and wait for its processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None

    def _exit_code(self) -> int | None:
        """How the first worker that died of itself ended: a pool then terminates the others."""
        codes = [process.exitcode for process in self._processes]
        failures = [code for code in codes if code not in (0, None, -signal.SIGTERM)]
        return failures[0] if failures else next((code for code in codes if code), None)


class _Noting:
    """A multiprocessing context that remembers the processes it made."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self.processes: list[BaseProcess] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def Process(self, *arguments: Any, **options: Any) -> BaseProcess:  # noqa: N802
        process: BaseProcess = self._context.Process(*arguments, **options)
        self.processes.append(process)
        return process


def _died(path: Path, code: int | None) -> ReportError:
    how = "" if code is None else f" (exit code {code})"
    return ReportError(
        path,
        f"the process that read it ended unexpectedly{how}",
        "nothing else was read meanwhile; it may have run out of memory: try --from and --to.",
    )


def _begin(parent: int) -> None:
    """What a worker does first."""
    # Ctrl-C reaches the workers, too; their caller informs the user
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)  # what libraries print must not mix with what the program writes
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this worker once its parent is gone without a word, as one that was killed."""
    while os.getppid() == parent:
        time.sleep(ORPHAN_CHECK_S)
    os._exit(1)


def _work(function: Callable[[R], T], report: R, threads: int) -> Outcome[T]:
    """What a worker does with one report: an interrupt ends the reading, and tools run for it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return attempt_elsewhere(function, report, threads)
    finally:
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
