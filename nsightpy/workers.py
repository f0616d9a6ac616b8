"""Where one function is run over many reports: in this process or in worker processes.

Each way, and that of dask_workers.py, yields (report, outcome) as they come; an outcome is what
the function returned with what was found out about the report on the way, or the ReportError that
kept it from being read. Only paths travel to the workers and results back, never events.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import pickle
import queue
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Generic, TypeAlias, TypeVar

from nsightpy import worker_processes
from nsightpy.errors import ReportError
from nsightpy.readers.tools.free_memory import available_memory
from nsightpy.reports.nsys import NSYS_SUFFIXES
from nsightpy.reports.system import ReportFacts, SystemReport
from nsightpy.worker_processes import Worker

T = TypeVar("T")
LOG = logging.getLogger("nsightpy")
_LENGTH = struct.Struct("<Q")
# Below this much to read, starting workers costs more than they save.
PAYS_BYTES = 64_000_000
WORKER_BYTES = 200_000_000
# What reading a report takes at most, as a multiple of its file; binary reports are compressed.
BYTES_PER_BYTE = {True: 8, False: 2}


@dataclass(frozen=True)
class Done(Generic[T]):
    """What a function returned for a report, and what is now known about the report."""

    value: T
    facts: ReportFacts | None = None


Outcome: TypeAlias = Done[T] | ReportError
Outcomes: TypeAlias = Iterator[tuple[SystemReport, Outcome[T]]]


def attempt(function: Callable[[SystemReport], T], report: SystemReport) -> Outcome[T]:
    """The function's outcome for one report; other exceptions than ReportError pass."""
    began = time.perf_counter()
    try:
        return Done(function(report))
    except ReportError as error:
        return error
    finally:
        report.close()
        LOG.info("%s: %.2f s", report.path, time.perf_counter() - began)


def attempt_elsewhere(function: Callable[[SystemReport], T], report: SystemReport) -> Outcome[T]:
    """The same with what was found out about the report, for the process that asked."""
    try:
        outcome = attempt(function, report)
        return outcome if isinstance(outcome, ReportError) else Done(outcome.value, report.facts)
    except ReportError as error:
        return error
    finally:
        report.close()


def here(function: Callable[[SystemReport], T], reports: Sequence[SystemReport]) -> Outcomes[T]:
    """One after the other, in this process."""
    return ((report, attempt(function, report)) for report in reports)


@contextlib.contextmanager
def one_reading_thread() -> Iterator[None]:
    """Meanwhile tables are read by one thread: for who asked for one processor."""
    from nsightpy.readers import sqlite

    usual, sqlite.READING_THREADS = sqlite.READING_THREADS, 1
    try:
        yield
    finally:
        sqlite.READING_THREADS = usual


class Workers:
    """Worker processes, each reading one report at a time.

    They do not import the program that asks, so it needs no `if __name__ == "__main__"`. Use as a
    context manager.
    """

    def __init__(self, workers: int) -> None:
        self._count = workers
        self._running: list[Worker] = []
        self._threads: list[threading.Thread] = []
        self._leaving = False

    def __enter__(self) -> Workers:
        self._running = [worker_processes.start(serve) for _ in range(self._count)]
        for worker in self._running:
            self._greet(worker)
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving = True
        for worker in self._running:
            worker.kill()
        for thread in self._threads:
            thread.join()
        worker_processes.dismiss(self._running)  # some may have been started anew meanwhile

    def run(
        self, function: Callable[[SystemReport], T], reports: Sequence[SystemReport]
    ) -> Outcomes[T]:
        """The outcomes as they come; an exception of a worker is raised here."""
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        for place in range(len(reports)):
            waiting.put(place)
        answers: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        for slot in range(self._count):
            asking = (slot, function, reports, waiting, answers)
            self._threads.append(threading.Thread(target=self._ask, args=asking, daemon=True))
            self._threads[-1].start()
        for _ in reports:
            place, answer = answers.get()
            if isinstance(answer, BaseException) and not isinstance(answer, ReportError):
                raise answer
            yield reports[place], answer

    def _ask(
        self,
        slot: int,
        function: Callable[[SystemReport], T],
        reports: Sequence[SystemReport],
        waiting: queue.SimpleQueue[int],
        answers: queue.SimpleQueue[tuple[int, Any]],
    ) -> None:
        """Give one worker report after report until none waits; a dead one is replaced."""
        while not self._leaving:
            try:
                place = waiting.get_nowait()
            except queue.Empty:
                return
            worker = self._running[slot]
            try:
                answers.put((place, _asked(worker, (function, reports[place]))))
            except (OSError, EOFError):
                if not self._leaving:
                    answers.put((place, _died(reports[place].path, worker_processes.ended(worker))))
                    self._running[slot] = self._start()
            except BaseException as error:  # noqa: BLE001 - raised again by whoever asked
                answers.put((place, error))

    def _start(self) -> Worker:
        worker = worker_processes.start(serve)
        self._greet(worker)
        return worker

    def _greet(self, worker: Worker) -> None:
        """Tell a worker among how many it shares the processors."""
        with contextlib.suppress(OSError):  # it died: asking it will say so
            if worker.stdin is not None:
                _send(worker.stdin, self._count)


def _asked(worker: Worker, task: object) -> Any:
    if worker.stdin is None or worker.stdout is None:
        raise EOFError
    _send(worker.stdin, task)
    return _receive(worker.stdout)


def _died(path: Path, code: int) -> ReportError:
    return ReportError(
        path,
        f"the process that read it ended unexpectedly (exit code {code})",
        "it may have run out of memory: try fewer --jobs, or --from and --to.",
    )


def serve_pipes() -> None:
    """What a worker process that was started anew does: serve stdin and stdout."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    serve(sys.stdin.buffer, answers)


def serve(tasks: IO[bytes], answers: IO[bytes]) -> None:
    """What a worker process does: answers for tasks, until there are no more.

    First comes the number of workers.
    """
    from nsightpy.readers import sqlite

    with contextlib.suppress(EOFError):
        sqlite.READING_THREADS = max(1, processors() // _receive(tasks))
    while True:
        try:
            function, report = _receive(tasks)
        except EOFError:
            return
        try:
            # an interrupt ends what is being read, and tools that are run for it
            signal.signal(signal.SIGINT, signal.default_int_handler)
            answer: object = attempt_elsewhere(function, report)
        except BaseException as error:  # noqa: BLE001 - raised again by whoever asked
            answer = error
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        _send(answers, answer)


def _send(pipe: IO[bytes], thing: object) -> None:
    data = pickle.dumps(thing, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(_LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    data = pipe.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)


def travels(function: Callable[..., object]) -> bool:
    """Whether another process can find a function: importable, and not of the main program."""
    inner: Any = function
    while hasattr(inner, "func"):
        inner = inner.func
    if getattr(inner, "__module__", "__main__") == "__main__":
        return False
    try:
        pickle.dumps(function)
    except Exception:  # noqa: BLE001 - whatever pickling raises, it does not travel
        return False
    return True


def default_jobs(reports: Sequence[SystemReport] | None = None) -> int:
    """How many workers pay: the processors this process may use, as far as memory reaches.

    One where there is one report, or so little to read that starting workers costs more.
    """
    if reports is None:
        return processors()
    sizes = [_size(report.path) * BYTES_PER_BYTE[_is_binary(report.path)] for report in reports]
    if len(sizes) < 2 or sum(sizes) < PAYS_BYTES * BYTES_PER_BYTE[False]:
        return 1
    largest = max(sizes) + WORKER_BYTES
    fitting = max(1, (available_memory() or largest * len(sizes)) // largest)
    return min(processors(), fitting, len(sizes))


def processors() -> int:
    """The processors that this process may use: its affinity, and its cgroup's quota."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    quota = _numbers("/sys/fs/cgroup/cpu.max")
    if len(quota) == 2 and quota[1]:
        allowed = min(allowed, max(1, math.ceil(quota[0] / quota[1])))
    return allowed


def _numbers(path: str) -> list[int]:
    """The numbers in a small file of the system; none where it says "max" or is not there."""
    try:
        return [int(word) for word in Path(path).read_text(encoding="ascii").split()]
    except (OSError, ValueError):
        return []


def _is_binary(path: Path) -> bool:
    return path.suffix in NSYS_SUFFIXES


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
