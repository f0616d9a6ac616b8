"""One function over many reports on the workers of a Dask cluster."""

from __future__ import annotations

import contextlib
import importlib
import json
import pkgutil
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any, TypeVar

from nsightpy import __version__
from nsightpy.errors import ReportError, UsageError
from nsightpy.workers.outcomes import Outcome, Outcomes, R, attempt_elsewhere

T = TypeVar("T")
PATIENCE_S = 10
WORKERS_PATIENCE_S = 120


class DaskWorkers(contextlib.ExitStack):
    """The workers of a Dask cluster: of a scheduler's address or file, or a Client.

    The workers need nsightpy and must see the reports under the same paths. Entering raises
    UsageError when Dask is not installed, the scheduler does not answer, or no worker with this
    nsightpy comes.
    """

    def __init__(self, address: object) -> None:
        super().__init__()
        self._address = address

    def __enter__(self) -> DaskWorkers:
        try:
            self._distributed = importlib.import_module("distributed")
        except ImportError:
            raise UsageError("--dask needs Dask: pip install 'nsightpy[dask]'") from None
        if isinstance(self._address, self._distributed.Client):
            self._client: Any = self._address
        else:
            self._client = self.enter_context(_client(self._distributed, str(self._address)))
        try:
            _await_workers(self._client)
        except BaseException:
            self.close()
            raise
        return self

    def run(self, function: Callable[[R], T], reports: Sequence[R]) -> Outcomes[R, T]:
        """The outcomes as they come.

        A report whose workers die, once and when it is tried again, has failed. Raises UsageError
        when the scheduler leaves.
        """
        pending = {
            self._client.submit(_attempt, function, report, pure=False): report
            for report in reports
        }
        for future in self._distributed.as_completed(list(pending)):
            report = pending.pop(future)
            yield report, self._outcome(future, report.path)
            future.release()

    def _outcome(self, future: Any, path: Path) -> Outcome[Any]:
        """What came of one report."""
        try:
            outcome: Outcome[Any] = future.result()
            return outcome
        except self._distributed.KilledWorker:
            problem = "the Dask workers that read it died"
            advice = "they may need more memory: `dask worker --memory-limit`, or --from and --to."
            return ReportError(path, problem, advice)
        except CancelledError:
            raise UsageError("the Dask scheduler ended before the work did") from None
        except RuntimeError as error:
            if isinstance(error.__cause__, ImportError):
                raise UsageError(
                    "the Dask scheduler lacks nsightpy: start it in its environment"
                ) from None
            raise


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
