"""Many reports of one kind: one function run over all of them, failures tallied."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Self, TypeAlias, TypeVar

from nsightpy.errors import FaultError, ReportError, UsageError
from nsightpy.results import Note
from nsightpy.results.notes import LEFT_OUT
from nsightpy.workers.engine import engine
from nsightpy.workers.outcomes import LOG, R, Run

T = TypeVar("T")
Progress: TypeAlias = Callable[[float | None, str], None]
# Where one report of several cannot be read: it is left out, tallied and named; or raised.
SKIP, RAISE = "skip", "raise"


@dataclass(frozen=True)
class Mapped(Generic[R, T]):
    """One function's results over many reports, in the order of the reports, and what failed."""

    results: list[tuple[R, T]]
    failures: list[ReportError] = field(default_factory=list)

    @property
    def values(self) -> list[T]:
        return [value for _, value in self.results]


class ReportSet(Generic[R]):
    """Reports of one kind in a fixed order.

    jobs: worker processes, by default as many as pay; dask: a scheduler's address or file, or a
    Client, to run on instead; on_error: skip or raise; progress: called with (fraction,
    message).
    """

    def __init__(
        self,
        reports: Sequence[R],
        *,
        jobs: int | None = None,
        dask: object = None,
        on_error: str = SKIP,
        progress: Progress | None = None,
    ) -> None:
        self.reports = list(reports)
        self.jobs = jobs
        self.dask = dask
        if on_error not in (SKIP, RAISE):
            raise UsageError(f"on_error must be one of {SKIP}, {RAISE}, not {on_error!r}")
        self.on_error = on_error
        self._progress = progress
        self._failures: dict[Path, ReportError] = {}
        self._derived: dict[tuple[Hashable, int], Any] = {}

    def __len__(self) -> int:
        return len(self.reports)

    def __iter__(self) -> Iterator[R]:
        return iter(self.reports)

    def only(self, wanted: Callable[[R], bool]) -> Self:
        """Some of the reports, read in the same way."""
        return type(self)([report for report in self.reports if wanted(report)], **self.settings)

    @property
    def settings(self) -> dict[str, Any]:
        """How the reports are read: the arguments of another set that does it in the same way."""
        return {
            "jobs": self.jobs,
            "dask": self.dask,
            "on_error": self.on_error,
            "progress": self._progress,
        }

    @property
    def inputs(self) -> tuple[str, ...]:
        """The reports' paths as given."""
        return tuple(str(report.path) for report in self.reports)

    @property
    def readable(self) -> list[R]:
        """The reports that have not failed so far."""
        return [report for report in self.reports if report.path not in self._failures]

    @property
    def failures(self) -> list[ReportError]:
        """The reports that could not be read so far, in their order, each with its reason."""
        return [self._failures[r.path] for r in self.reports if r.path in self._failures]

    @property
    def failure_notes(self) -> list[Note]:
        """The failures as notes on a result."""
        return [Note(error.left_out, kind=LEFT_OUT) for error in self.failures]

    def derived(self, key: Hashable, make: Callable[[], T]) -> T:
        """What a question made of these reports: made once, and again when one more has failed."""
        slot = (key, len(self._failures))
        if slot not in self._derived:
            self._derived[slot] = make()
        value: T = self._derived[slot]
        return value

    def map(self, function: Callable[[R], T], *, jobs: int | None = None) -> Mapped[R, T]:
        """Run a function on every report: on `jobs` processors, or on Dask.

        The function and its result may travel, so they must be importable; others run here. A
        report that fails is tallied, or raised with on_error="raise", or when it is the only one.
        Raises ReportError when every report fails.
        """
        with self._engine(function, jobs) as run:
            return self._mapped(self._outcomes(run, function, self._progress))

    def _engine(
        self, function: Callable[[R], T], jobs: int | None
    ) -> AbstractContextManager[Run[R]]:
        return engine(function, self.readable, jobs=jobs or self.jobs, dask=self.dask)

    def _outcomes(
        self, run: Run[R], function: Callable[[R], T], progress: Progress | None = None
    ) -> dict[Path, T]:
        """What the function returns, by path; failures are tallied."""
        reports = self.readable
        values: dict[Path, T] = {}
        for count, (report, outcome) in enumerate(run(function, reports), start=1):
            if isinstance(outcome, ReportError):
                self._failures[report.path] = outcome
                log_fault(outcome)
            else:
                vars(report).update(outcome.facts)
                values[report.path] = outcome.value
            if progress is not None and len(reports) > 1:
                progress(count / len(reports), f"reading reports, {count} of {len(reports)}")
        raises = self.on_error == RAISE or len(self.reports) == 1
        if self._failures and raises:
            raise self.failures[0]
        return values

    def _mapped(self, values: dict[Path, T]) -> Mapped[R, T]:
        results = [
            (report, values[report.path]) for report in self.reports if report.path in values
        ]
        if not results and self._failures:
            raise self.failures[0]
        return Mapped(results, self.failures)


def log_fault(outcome: object) -> None:
    """Log a fault of nsightpy as what it is, whatever becomes of the other reports."""
    if isinstance(outcome, FaultError):
        LOG.error(outcome)
