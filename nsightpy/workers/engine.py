"""Which way a function is run over reports."""

from __future__ import annotations

import contextlib
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nsightpy.workers.outcomes import R, Run, here
from nsightpy.workers.resources import default_jobs


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

    with ProcessWorkers(count) as workers:
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
