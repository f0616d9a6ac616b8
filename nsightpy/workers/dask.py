"""One function over many reports on the workers of a Dask cluster."""

from __future__ import annotations

import contextlib
import importlib
import json
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from nsightpy import __version__
from nsightpy.errors import ReportError, UsageError
from nsightpy.workers.outcomes import Outcome, Outcomes, R, Run, attempt_elsewhere

T = TypeVar("T")
PATIENCE_S = 10
WORKERS_PATIENCE_S = 120


@contextlib.contextmanager
def dask_workers(address: object) -> Iterator[Run[Any]]:
    """The workers of a Dask cluster: of a scheduler's address or file, or a Client.

    The workers need nsightpy and must see the reports under the same paths. Raises UsageError when
    Dask is not installed, the scheduler does not answer, or no worker with this nsightpy comes.
    """
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise UsageError("--dask needs Dask: pip install 'nsightpy[dask]'") from None
    with contextlib.ExitStack() as held:
        client = address
        if not isinstance(address, distributed.Client):
            client = held.enter_context(_client(distributed, str(address)))
        _await_workers(client)
        yield partial(_run, distributed, client)


def _run(
    distributed: Any, client: Any, function: Callable[[R], T], reports: Sequence[R]
) -> Outcomes[R, T]:
    """The outcomes as they come.

    A report whose workers die, once and when it is tried again, has failed. Raises UsageError
    when the scheduler leaves.
    """
    pending = {client.submit(_attempt, function, report, pure=False): report for report in reports}
    for future in distributed.as_completed(list(pending)):
        report = pending.pop(future)
        try:
            yield report, future.result()
        except distributed.KilledWorker:
            problem = "the Dask workers that read it died"
            advice = "they may need more memory: `dask worker --memory-limit`, or --from and --to."
            yield report, ReportError(report.path, problem, advice)
        except CancelledError:
            raise UsageError("the Dask scheduler ended before the work did") from None
        except RuntimeError as error:
            if isinstance(error.__cause__, ImportError):
                raise UsageError(
                    "the Dask scheduler lacks nsightpy: start it in its environment"
                ) from None
            raise
        future.release()


def _attempt(function: Callable[[R], T], report: R) -> Outcome[T]:
    if not report.path.exists():
        problem = "is not where the Dask worker looks for it"
        return ReportError(report.path, problem, "give absolute paths that the workers see, too.")
    return attempt_elsewhere(function, report)


def _client(distributed: Any, address: str) -> Any:
    file = Path(address)
    try:
        if file.suffix == ".json" or file.is_file():
            json.loads(file.read_text(encoding="utf-8"))  # Dask waits for an absent file
            return distributed.Client(scheduler_file=str(file), timeout=PATIENCE_S)
        return distributed.Client(address, timeout=PATIENCE_S)
    except (OSError, TimeoutError, ValueError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {address} ({error or type(error).__name__}): give "
            "tcp://HOST:PORT, or the file that `dask scheduler --scheduler-file` wrote"
        ) from error


def _await_workers(client: Any) -> None:
    """Give workers time to come, since they may start together with what asks them."""
    try:
        client.wait_for_workers(1, timeout=WORKERS_PATIENCE_S)
        versions = set(client.run(pkgutil.resolve_name, "nsightpy:__version__").values())
    except TimeoutError:
        raise UsageError(
            f"no worker came to the Dask scheduler {client.scheduler.address}: start some with "
            "`dask worker --scheduler-file FILE --nthreads 1`"
        ) from None
    except ImportError:
        raise UsageError("the Dask workers lack nsightpy: start them in its environment") from None
    if versions - {__version__}:
        others = ", ".join(sorted(versions))
        raise UsageError(f"the Dask workers have nsightpy {others}, not {__version__}")
