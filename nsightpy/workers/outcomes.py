"""What the engine asks of a report of any kind, and what comes of a function run on one."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from nsightpy.errors import NsightpyError, ReportError, unforeseen
from nsightpy.reports.one_file import OneFile

LOG = logging.getLogger("nsightpy")


R = TypeVar("R", bound=OneFile)
T = TypeVar("T")


@dataclass(frozen=True)
class Done(Generic[T]):
    """What a function returned for a report, and the facts that another process found."""

    value: T
    facts: Mapping[str, Any] = field(default_factory=dict)


Outcome: TypeAlias = Done[T] | ReportError
Outcomes: TypeAlias = Iterator[tuple[R, Outcome[T]]]


class Run(Protocol[R]):
    """A way to run a function over reports; outcomes come in any order."""

    def __call__(self, function: Callable[[R], T], reports: Sequence[R]) -> Outcomes[R, T]: ...


def attempt(function: Callable[[R], T], report: R, *, with_facts: bool = False) -> Outcome[T]:
    """The function's outcome for one report, with the facts that another process asks for.

    What no check foresaw becomes a FaultError; NsightpyErrors that are no ReportErrors pass.
    """
    began, since = time.perf_counter(), time.time()
    try:
        value = function(report)
        return Done(value, report.facts if with_facts else {})
    except ReportError as error:
        return error
    except NsightpyError:
        raise
    except Exception as error:
        LOG.info("%s: where it happened:", report.path, exc_info=error)
        return unforeseen(report.path, error, since)
    finally:
        report.close()
        LOG.info("%s: %.2f s", report.path, time.perf_counter() - began)


def attempt_elsewhere(
    function: Callable[[R], T], report: R, threads: int | None = None
) -> Outcome[T]:
    """The same for a worker's own copy of a report, with the facts for the process that asked."""
    report.threads = threads
    return attempt(function, report, with_facts=True)


def here(function: Callable[[R], T], reports: Sequence[R]) -> Outcomes[R, T]:
    """One report after the other, in this process."""
    return ((report, attempt(function, report)) for report in reports)
