"""Worker processes: copies of the command line's own process, or processes started anew.

A copy has everything imported already. Another program may have threads, which its copy would
lack, or open devices: its workers are started with `python -c`, and so are those that replace one
that died.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, ClassVar, TypeAlias

if TYPE_CHECKING:
    import subprocess

# Ctrl-C reaches the workers, too; whoever asked them tells the user.
_SERVE = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "sys.path[:] = {path!r}; from nsightpy.workers import serve_pipes; serve_pipes()"
)
Serve: TypeAlias = Callable[[IO[bytes], IO[bytes]], None]


class Copy:
    """A copy of this process that serves tasks: as much of a Popen as workers need."""

    allowed: ClassVar[bool] = False  # the command line says so of itself
    _living: ClassVar[set[Copy]] = set()

    def __init__(self, serve: Serve) -> None:
        (tasks, stdin), (stdout, answers) = os.pipe(), os.pipe()
        self.returncode: int | None = None
        self.pid = os.fork()
        self.stdin: IO[bytes] | None = os.fdopen(stdin, "wb")
        self.stdout: IO[bytes] | None = os.fdopen(stdout, "rb")
        if self.pid == 0:
            _live_as_worker(serve, tasks, answers, [self, *self._living])
        os.close(tasks)
        os.close(answers)
        self._living.add(self)

    @classmethod
    def possible(cls) -> bool:
        """Whether a copy would lack nothing."""
        return cls.allowed and sys.platform == "linux" and threading.active_count() == 1

    def kill(self) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            self._living.discard(self)
        return self.returncode


Worker: TypeAlias = "subprocess.Popen[bytes] | Copy"


def start(serve: Serve) -> Worker:
    """A process that waits for tasks on its stdin."""
    if Copy.possible():
        return Copy(serve)
    import subprocess

    argv = (sys.executable, "-c", _SERVE.format(path=sys.path))
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def dismiss(workers: list[Worker]) -> None:
    """End processes, whatever they do."""
    for worker in workers:
        worker.kill()
    for worker in workers:
        ended(worker)
    workers.clear()


def ended(worker: Worker) -> int:
    """Wait for the end of a process; its exit code, negative for the signal that ended it."""
    code = worker.wait()
    _close_pipes(worker)
    return code


def _close_pipes(worker: Worker) -> None:
    for pipe in (worker.stdin, worker.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()


def _live_as_worker(serve: Serve, tasks: int, answers: int, others: list[Copy]) -> None:
    """What a copy does instead of all else: serve, and be gone."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for other in others:
            _close_pipes(other)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)  # what libraries print must not mix with what the command says
        serve(os.fdopen(tasks, "rb"), os.fdopen(answers, "wb"))
    finally:
        os._exit(0)
