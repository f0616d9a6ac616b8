"""Which way a function is run over reports: how many workers the processors and memory allow."""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nsightpy.readers.limits import available_memory
from nsightpy.workers.outcomes import R, Report, Run, here

# Below this much memory for what is to be read, workers save less than they take to import (0.5 s).
PAYS_BYTES = 400_000_000
WORKER_BYTES = 200_000_000
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def default_jobs(reports: Sequence[Report]) -> int:
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
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    try:
        quota, period = map(int, _QUOTA.read_text(encoding="ascii").split())
        return min(allowed, max(1, math.ceil(quota / period)))
    except (OSError, ValueError, ArithmeticError):  # there is none, or it says "max"
        return allowed


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
    as processors and memory allow where they pay. What does not travel is run in this process.
    """
    if dask is not None and travels(function):
        from nsightpy.workers.dask import DaskWorkers

        with DaskWorkers(dask) as cluster:
            yield cluster.run
        return
    count = min(jobs or default_jobs(reports), len(reports))
    if count < 2 or not sys.executable or not travels(function):
        yield here
        return
    from nsightpy.workers.processes import ProcessWorkers

    with ProcessWorkers(count, max(1, processors() // count)) as workers:
        yield workers.run


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
