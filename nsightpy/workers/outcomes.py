"""What the engine asks of a report of any kind, and what comes of a function run on one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from nsightpy.errors import NsightpyError, ReportError, unforeseen

LOG = logging.getLogger("nsightpy")
# Of more reports none stays known beyond its facts: the schema of an export alone is 0.6 MB.
KEPT = 128


class Report(Protocol):
    """One file. It can be pickled: its path and settings travel, nothing that was read does."""

    path: Path
    threads: int | None  # that may read it; None: as many as its kind uses by default

    @property
    def reading_bytes(self) -> int:
        """Memory that reading it takes at most, estimated without opening it."""
        ...

    @property
    def facts(self) -> Any:
        """The little that is worth knowing about it without opening it again."""
        ...

    def adopt(self, facts: Any) -> None:
        """Take over the facts that another process found."""
        ...

    def close(self) -> None:
        """Let go of the file; what is asked next opens it again."""
        ...


R = TypeVar("R", bound=Report)
T = TypeVar("T")


@dataclass(frozen=True)
class Done(Generic[T]):
    """What a function returned for a report, and the facts that another process found."""

    value: T
    facts: Any = None


Outcome: TypeAlias = Done[T] | ReportError
Outcomes: TypeAlias = Iterator[tuple[R, Outcome[T]]]


class Run(Protocol[R]):
    """A way to run a function over reports; outcomes come in any order."""

    def __call__(self, function: Callable[[R], T], reports: Sequence[R]) -> Outcomes[R, T]: ...


def attempt(function: Callable[[R], T], report: R) -> Outcome[T]:
    """The function's outcome for one report.

    What no check foresaw becomes a FaultError. NsightpyErrors that are no ReportErrors pass, as do
    the exceptions of functions that are not nsightpy's own.
    """
    began, since = time.perf_counter(), time.time()
    try:
        return Done(function(report))
    except ReportError as error:
        return error
    except NsightpyError:
        raise
    except Exception as error:
        if not _is_own(function):
            raise
        LOG.info("%s: where it happened:", report.path, exc_info=error)
        return unforeseen(report.path, error, since)
    finally:
        report.close()
        LOG.info("%s: %.2f s", report.path, time.perf_counter() - began)


def _is_own(function: Callable[..., object]) -> bool:
    inner: Any = function
    while isinstance(inner, partial):
        inner = inner.keywords.get("function", inner.func)
    return str(getattr(inner, "__module__", "")).split(".")[0] == __name__.split(".")[0]


def attempt_elsewhere(
    function: Callable[[R], T], report: R, threads: int | None = None
) -> Outcome[T]:
    """The same for a worker's own copy of a report, with the facts for the process that asked."""
    report.threads = threads
    return _attempt_once(function, report)


def _attempt_once(function: Callable[[R], T], report: R) -> Outcome[T]:
    """The function's outcome for a report that is let go of, with the facts that stay."""
    try:
        outcome = attempt(function, report)
        if not isinstance(outcome, Done):
            return outcome
        facts = attempt(_facts, report)
        return Done(outcome.value, facts.value) if isinstance(facts, Done) else facts
    finally:
        report.close()


def _facts(report: Report) -> Any:
    """The facts, asked for by a function of nsightpy: what they raise is a fault of it."""
    return report.facts


def here(function: Callable[[R], T], reports: Sequence[R]) -> Outcomes[R, T]:
    """One report after the other, in this process."""
    run = attempt if len(reports) <= KEPT else _attempt_once
    return ((report, run(function, report)) for report in reports)
