"""A report of nsys stats as data, a sum or a trace, and the question that it is."""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.ranking import (
    MEGA,
    Column,
    Made,
    columns,
    durations,
    fields_of,
    nsys_field,
    ranked,
    tallies,
    times,
)
from nsightpy.analysis.tally import Tally
from nsightpy.frames import Frame, Ints, Labels
from nsightpy.query import Parts, Question, Scope
from nsightpy.query.capture_advice import CUDA, not_recorded
from nsightpy.query.splits import Shown, in_processes
from nsightpy.reports.system import SystemReport, Wanted
from nsightpy.results import Field, LazyRows, Row, Said, Table, Value
from nsightpy.results.keys import RowKey

BATCH_ROWS = 1 << 16
# Times of one process (pid) of the report, on the clock of all ranks.
Clock: TypeAlias = Callable[[int, Ints], Ints]
OF_SEVERAL = (Field("rank", "id"), Field("report", "text"))


@dataclass(frozen=True, kw_only=True)
class StatsReport:
    """A report of nsys stats.

    `records`: what `nsys profile` must be given; `identity`: what rows are about, where the command
    does not say; `reasons`: why a table has no rows, where the capture has what they are made of.
    """

    records: str = CUDA
    identity: tuple[RowKey, ...] | None = None
    reasons: Callable[[Parts[Any]], Sequence[Said]] = lambda parts: ()

    def explained(self, question: Question[Table]) -> Question[Table]:
        """The question, whose table says why it has no rows."""

        def combine(parts: Parts[Any]) -> Table:
            table = question.combine(parts)
            assert isinstance(table, Table)
            if table.rows:
                return table
            of = "in scope" if parts.scope.is_narrowed else "of it"
            nothing = not_recorded(f"The capture holds nothing {of}.", self.records, "records it")
            return replace(table, notes=(*table.notes, *(self.reasons(parts) or [nothing])))

        return replace(question, combine=combine)


@dataclass(frozen=True)
class Sum(StatsReport):
    """One row per key of some events: which events, their keys and measures, and the columns.

    `events(report, scope, label)`: with the columns of keys and measures; kernels go by the names
    in the column `label`. `measures`: durations, and columns of numbers (below 0: not known); rows
    are by total of the first. `on_host`: events belong to no device.
    """

    events: Callable[..., Frame]
    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    measures: tuple[str, ...] = ("duration",)
    on_host: bool = False

    @property
    def fields(self) -> tuple[Field, ...]:
        """Its columns."""
        return fields_of(self.columns)

    def question(
        self, command: str, label: str = "name", splits: tuple[str, ...] = ()
    ) -> Question[Table]:
        """What it asks of reports; `events` get the splits, where there are any."""
        work = partial(self.work(splits), label=label)
        combine = partial(self.table, command, splits)
        return Question(work, combine, identified="rank" in splits, of_each="rank")

    def work(self, splits: tuple[str, ...]) -> Callable[..., list[Tally]]:
        """What gives a tally of each measure by (splits..., keys...)."""
        divided = in_processes(splits)
        events = partial(self.events, splits=divided) if divided else self.events
        return partial(_tallies, events=events, keys=(*divided, *self.keys), measures=self.measures)

    def table(self, command: str, splits: tuple[str, ...], parts: Parts[list[Tally]]) -> Table:
        """The rows of all reports."""
        shown = Shown.of(splits, parts.ranks.inputs)
        statistics = {
            measure: shown.merged((r, tallies[place]) for r, tallies in parts.results).statistics()
            for place, measure in enumerate(self.measures)
        }
        table = ranked(command, self.columns, statistics, self.keys, shown.fields)
        vain = self.on_host and parts.scope.devices is not None
        notes = ("Calls belong to no device: --device does not narrow them.",) if vain else ()
        return replace(table, identity=self.identity, notes=notes)


def sum_of(
    events: Callable[..., Frame],
    keys: tuple[str, ...],
    shown: str,
    made: Mapping[str, Made] | None = None,
    **about: Any,
) -> Sum:
    """A sum with columns as `ranking.columns` takes them."""
    return Sum(events, keys, columns(shown, made), **about)


def by_time(
    events: Callable[..., Frame],
    count: str = "Instances",
    keys: Mapping[str, str] = {"name": "Name"},
    **about: Any,
) -> Sum:
    """A sum by time: the eight figures, then the parts of the key under these names."""
    shown = [times(count), *(f"{label}={name}" for name, label in keys.items())]
    return sum_of(events, tuple(keys), ", ".join(shown), **about)


def _tallies(
    report: SystemReport,
    scope: Scope,
    *,
    events: Callable[..., Frame],
    keys: Sequence[str],
    measures: Sequence[str],
    label: str,
) -> list[Tally]:
    return tallies(events(report, scope, label), keys, measures)


@dataclass(frozen=True)
class Listing(StatsReport):
    """One row per event, in time order: the events, and the columns that show theirs.

    `frames(report, scope, label)`: events by the first column of moments, some at a time, with pid;
    kernels go by the names in the column `label`. `shown`: LABEL=COLUMN, by NVIDIA's labels; a
    number is known above NO_TIME, or above N in LABEL=COLUMN>N.
    """

    frames: Callable[[SystemReport, Scope, str], Iterator[Frame]]
    shown: str

    @cached_property
    def columns(self) -> list[tuple[Field, str, int]]:
        """Its fields, the columns that they show, and the number above which these are known."""
        return list(map(_column, self.shown.split(", ")))

    @property
    def fields(self) -> tuple[Field, ...]:
        """Its columns, of one report."""
        return tuple(field for field, _, _ in self.columns)

    def question(self, command: str, label: str = "name") -> Question[Table]:
        """What it asks of reports: how many rows there are; they are made when they are read."""
        work = partial(_count, frames=self.frames, label=label)
        return Question(work, partial(self._table, command, label), identified=True, clock=True)

    def _table(self, command: str, label: str, parts: Parts[int]) -> Table:
        several = len(parts.results) > 1
        repeated = parts.ranks.repeated if several else {}
        results = [part for part in parts.results if part[0].path not in repeated]
        make = partial(self._rows, [report for report, _ in results], parts, label, several)
        rows = LazyRows(make, sum(count for _, count in results))
        fields = (*self.fields, *OF_SEVERAL) if several else self.fields
        notes = tuple(parts.clock.notes) if several else ()
        return Table(command, fields, rows, notes=notes, identity=self.identity)

    def _rows(
        self, reports: Sequence[SystemReport], parts: Parts[int], label: str, several: bool
    ) -> Iterator[Row]:
        """The rows of all reports in time order."""
        if not several:
            return self._of_report(reports[0], parts.scope, label, lambda _, times: times, ())
        clocks = parts.clock
        order = next(n for n, field in enumerate(self.fields) if field.kind == "moment")
        streams = []
        for report in reports:
            ranks = {report.rank_of(pid)[0] for pid in report.pids}
            about = (ranks.pop() if len(ranks) == 1 else None, str(report.path))
            clock = partial(clocks.aligned, str(report.path))
            streams.append(self._of_report(report, parts.scope, label, clock, about))
        return heapq.merge(*streams, key=lambda row: int(row[order] or 0))

    def _of_report(
        self, report: SystemReport, scope: Scope, label: str, clock: Clock, about: Row
    ) -> Iterator[Row]:
        for frame in self.frames(report, scope, label):
            for batch in frame.in_parts(BATCH_ROWS):
                columns = [_cells(batch, *column, clock) for column in self.columns]
                yield from ((*row, *about) for row in zip(*columns, strict=True))


# Reports by the name that nsys gives them.
Reports: TypeAlias = Mapping[str, Sum | Listing]


def _column(shown: str) -> tuple[Field, str, int]:
    label, _, source = shown.partition("=")
    name, _, above = source.partition(">")
    return nsys_field(label), name, int(above or NO_TIME)


def _count(
    report: SystemReport,
    scope: Scope,
    *,
    frames: Callable[[SystemReport, Scope, str], Iterator[Frame]],
    label: str,
) -> int:
    """The number of rows of a report."""
    report.frame("devices")  # what these lack is a note, and rows are made after the notes
    return sum(frame.rows for frame in frames(report, scope, label))


def _cells(frame: Frame, field: Field, name: str, above: int, clock: Clock) -> list[Value]:
    """A column as plain values; None where a number is not known, or a name is empty."""
    column = durations(frame) if name == "duration" else frame[name]
    if isinstance(column, Labels):
        names: list[Value] = [value or None for value in column.values]
        return [names[code] for code in column.codes.tolist()]
    known, values = column > above, np.array(column)
    if field.kind == "moment":
        pids = frame.ints("pid")
        for pid in np.unique(pids).tolist():
            values[pids == pid] = clock(pid, values[pids == pid])
    scale = MEGA if field.kind in ("MB", "MB/s") else None
    cells: list[Value] = np.ma.array(values / scale if scale else values, mask=~known).tolist()
    return cells


def in_time_order(report: SystemReport, wanted: Wanted, scope: Scope) -> Iterator[dict[str, Frame]]:
    """The rows in scope of some frames with the wanted columns, a stretch of time after the other.

    Each stretch holds the rows of every frame that start in it, in the frame's own order. Of a
    report of Nsight Systems only one stretch is in memory at a time.
    """
    columns = {name: scope.wanted(name, asked) for name, asked in wanted.items()}
    for stretch in report.stretches(columns, scope.bounds(report)[1]):
        yield {name: scope.narrow(report, part) for name, part in stretch.items()}


def known(values: Ints, mask: NDArray[np.bool_]) -> Ints:
    """The numbers of these rows; of others none is known."""
    return np.where(mask, values, NO_TIME)


def numbered_by(frame: Frame, columns: Sequence[str], number: Callable[..., int | None]) -> Ints:
    """A number of each row, likewise; None is not known."""
    groups = group_by(frame, columns)
    numbers = [number(*key) for key in groups.keys]
    known = [NO_TIME if number is None else number for number in numbers]
    return np.asarray(known, dtype=np.int64)[groups.codes]
