"""Many questions about the same reports, each report read once for all of them.

A command maps a function over a rank set, and makes its result of what comes back. Here the
functions of all commands are collected first, then run together on each report, which keeps what
it read meanwhile; then every command is called again and finds its answers.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from nsightpy.errors import NsightpyError, ReportError, unforeseen
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.report_sets.report_set import Mapped, log_fault
from nsightpy.reports.system import SystemReport
from nsightpy.workers.outcomes import LOG

T = TypeVar("T")
Work = Callable[[SystemReport], Any]


class NotYetReadError(Exception):
    """What a command asks of the reports is not known yet: it is called again when it is."""


class OnePass(RankSet):
    """A rank set that collects what is asked of it, and answers after `read`."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._wanted: dict[bytes, Work] = {}
        self._known: dict[bytes, Mapping[Path, Any]] = {}

    @classmethod
    def of(cls, ranks: RankSet) -> OnePass:
        """The reports of a rank set, read in the same way."""
        together = cls(ranks.reports, **ranks.settings)
        together.passed_by, together.folders = ranks.passed_by, ranks.folders
        return together

    def map(self, function: Callable[[SystemReport], T], **_: Any) -> Mapped[SystemReport, T]:
        """The function's results, as `RankSet.map` has them; how it is run is for `read` to say.

        A report in which only this function failed is among the failures. Raises NotYetReadError,
        and ReportError when all of them did.
        """
        known = self._known.get(self.want(function))
        if known is None:
            raise NotYetReadError
        pairs = [(report, known[report.path]) for report in self.readable if report.path in known]
        results = [pair for pair in pairs if not isinstance(pair[1], ReportError)]
        failures = [outcome for _, outcome in pairs if isinstance(outcome, ReportError)]
        if failures and not results:
            raise failures[0]
        return Mapped(results, [*self.failures, *failures])

    def want(self, function: Work) -> bytes:
        """Have a function run by the next `read`; returns the key under which it is known."""
        key = pickle.dumps(function)
        if key not in self._known:
            self._wanted[key] = function
        return key

    def read(self) -> None:
        """Run everything that was asked for since the last time on each report."""
        wanted, self._wanted = self._wanted, {}
        work = partial(_each, functions=tuple(wanted.values()))
        results = super().map(work, ranked=True).results
        for _, values in results:
            for value in values:
                log_fault(value)
        for place, key in enumerate(wanted):
            self._known[key] = {report.path: values[place] for report, values in results}


def answers(ranks: OnePass, questions: Sequence[Callable[[OnePass], Any]]) -> list[Any]:
    """What each question says about the reports, which are read as seldom as can be.

    A question may be called several times: it does nothing but ask.
    """
    answered: dict[int, Any] = {}
    while True:
        for number, question in enumerate(questions):
            with suppress(NotYetReadError):
                if number not in answered:
                    answered[number] = question(ranks)
        if len(answered) == len(questions):
            return [answered[number] for number in range(len(questions))]
        ranks.read()


def _each(report: SystemReport, *, functions: Sequence[Work]) -> list[Any]:
    """What each function returns for a report, or its error; raises one if all of them fail."""
    outcomes = [_outcome(function, report) for function in functions]
    failed = [outcome for outcome in outcomes if isinstance(outcome, ReportError)]
    if failed and len(failed) == len(outcomes):
        raise failed[0]
    return outcomes


def _outcome(function: Work, report: SystemReport) -> Any:
    since = time.time()
    try:
        return function(report)
    except ReportError as error:
        return error
    except NsightpyError:
        raise
    except Exception as error:  # noqa: BLE001 - one section fails, the others are shown
        LOG.info("%s: where it happened:", report.path, exc_info=error)
        return unforeseen(report.path, error, since)
