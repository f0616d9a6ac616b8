"""Worker processes: how they are started, and started ahead where it is clear they will be needed.

Imports nothing of weight, so that workers come up while their parent does.
"""

from __future__ import annotations

import contextlib
import glob
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# Ctrl-C reaches the workers, too; whoever asked them tells the user.
_SERVE = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "sys.path[:] = {path!r}; from nsightpy.workers import serve; serve()"
)
_ahead: list[subprocess.Popen[bytes]] = []


def start() -> subprocess.Popen[bytes]:
    """A process that waits for tasks on its stdin."""
    argv = (sys.executable, "-c", _SERVE.format(path=sys.path))
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def started(count: int) -> list[subprocess.Popen[bytes]]:
    """`count` processes, those started ahead first."""
    taken = [_ahead.pop() for _ in range(min(count, len(_ahead)))]
    return taken + [start() for _ in range(count - len(taken))]


def start_ahead(jobs: int, reports: Sequence[str]) -> None:
    """Start the processes that `jobs` asks for, if there are reports enough for them."""
    count = min(jobs, sum(_reports_behind(Path(one)) for one in reports))
    if count > 1 and sys.executable:
        _ahead.extend(start() for _ in range(count))


def _reports_behind(path: Path) -> int:
    """At most how many reports a path stands for."""
    with contextlib.suppress(OSError):
        return sum(1 for _ in path.iterdir())
    return len(glob.glob(str(path), recursive=True))  # noqa: PTH207


def dismiss(workers: list[subprocess.Popen[bytes]]) -> None:
    """End processes, whatever they do."""
    for worker in workers:
        worker.kill()
    for worker in workers:
        worker.wait()
        for pipe in (worker.stdin, worker.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
    workers.clear()


def dismiss_unneeded() -> None:
    """End the processes that were started ahead and never taken."""
    dismiss(_ahead)
