"""instances: one kernel, range or collective instance by instance, or how durations spread; idle
intervals and launch delays likewise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np

from nsightpy.analysis.grouping import group_by, rows_before
from nsightpy.analysis.modes import bin_edges, durations_by_time
from nsightpy.analysis.tally import Tally, merge, tally
from nsightpy.errors import NsightpyError
from nsightpy.frames import Frame
from nsightpy.names import brief
from nsightpy.query import NameStyle, Option, Parts, Question, Scope, SystemReport
from nsightpy.query.command import command
from nsightpy.query.named_events import KINDS, MEASURED, named_events
from nsightpy.query.steps import iteration_numbers, iterations_of
from nsightpy.results import Field, Row, Table, fields_in, rank_order
from nsightpy.results.keys import KERNEL, RowKey, row_keys
from nsightpy.results.series import Instances
from nsightpy.units import listed

if TYPE_CHECKING:
    from nsightpy.query.rank_alignment import CommonClock

ANY = "any"
FIELDS = (
    *fields_in("id", "rank", "iteration", "instance"),
    Field("start_ns", "moment"),
    Field("duration_ns", "time"),
    Field("name", "name"),
    Field("device", "id"),
    Field("kind", "text", own=True),
)
BIN_FIELDS = (
    Field("name", "name"),
    Field("low_ns", "time"),
    Field("high_ns", "time"),
    Field("count"),
    Field("share", "share", 4, heading="of instances %"),
    Field("mode", "id"),
    Field("mode_median_ns", "time", 1),
)
RANKS_FOR_PEOPLE = (
    Field("rank", "id"),
    Field("device", "id"),
    Field("instances", heading="count"),
    *fields_in("time", "median_ns", "minimum_ns", "p95_ns", "maximum_ns"),
    Field("name", "name"),
)
MODES_FOR_PEOPLE = (
    Field("name", "name"),
    Field("instances", heading="count"),
    Field("medians_and_shares", "text", own=True),
)
NAMES, BINS = 10, 40
MODES_SAID, MODES_IN_CELL = 4, 2
# The kind that has the name in a report, and its instances; None where nothing has it.
Found: TypeAlias = tuple[str, Any]


def for_people(table: Instances) -> Table:
    """One row a rank, device and name; of bins one row a name with its modes."""
    fields, rows = RANKS_FOR_PEOPLE, table.by_rank
    if table.fields == BIN_FIELDS:
        fields = MODES_FOR_PEOPLE
        rows = tuple((o.name, o.instances, o.modes_text(MODES_IN_CELL)) for o in table.durations)
    return Table(table.command, fields, rows, table.inputs, table.notes)


@command(
    layouts=(FIELDS, BIN_FIELDS),
    keys=(RowKey(KERNEL, ("name",), only=("kind", "kernel")),),
    people=for_people,
    picture="nsightpy.render.plots.instances_plot:instances_figure",
)
def instances(
    *,
    of: Annotated[str, Option("Whose instances; * stands for anything.", "NAME")],
    kind: Annotated[
        str,
        Option(
            "What has the name; projection: what a range launched, on the GPU.",
            choices=(ANY, *KINDS),
        ),
    ] = ANY,
    name: NameStyle = "demangled",
    bins: Annotated[
        int | None,
        Option("How durations spread: N bins of equal ratio a name.", "N", least=1, most=1_000),
    ] = None,
    top: Annotated[
        int | None,
        Option("First N instances; of --bins N names with most time (10).", "N", least=0),
    ] = None,
) -> Question[Instances]:
    """NAME is a kernel (demangled, base or mangled), a collective's operation (AllReduce), or
    RANGE[@DOMAIN], of which the first that there is; or `idle`, the stretches in which a device did
    nothing, or `launch-delay`, from the begin of each launching call to that of the first kernel
    that it launched, under the name of the call. A terminal shows one row a rank, or with
    --bins one a name; files have every instance with its iteration, or every bin.

    Starts are moments on the clock that all ranks share. instance counts from 0 in its iteration,
    or in the capture where the report has no iterations; what began between iterations has none.
    A projection lasts from the first start to the last end of what a range launched. mode is the
    number of the mode that a bin belongs to, from the shortest: modes are values that durations
    cluster around, divided by valleys at most half as high as the lower peak beside them.
    """
    return _first_of(KINDS if kind == ANY else (kind,), of, name, bins, top)


def _first_of(
    kinds: Sequence[str], of: str, name: str, bins: int | None, top: int | None
) -> Question[Instances]:
    """What is answered of the first kind that has the name in any report."""

    def answer(parts: Parts[Found], kind: str) -> Instances:
        return _every(parts, kind, top) if bins is None else _spread(parts, kind, bins, top)

    def combine(parts: Parts[Found]) -> Instances | Question[Instances]:
        found = {kind for kind, instances in parts.values if instances is not None}
        if not found and of in MEASURED:
            return replace(answer(parts, of), notes=(MEASURED[of],))
        if not found and of.strip("*"):
            what = "kernel, collective or range" if len(kinds) > 1 else kinds[0]
            raise NsightpyError(
                f"{listed(parts.ranks.inputs, 1)}: no {what} is called {of!r}\n"
                "  `nsightpy kernels`, `collectives` and `nvtx` list what there is; * is anything."
            )
        first = next((kind for kind in kinds if kind in found), kinds[0])
        if len(found) > 1:
            return _first_of((first,), of, name, bins, top)
        return answer(parts, first)

    work = partial(_found, kinds=kinds, of=of, name=name, tallied=bins is not None)
    return Question(work, combine, clock=bins is None, identified=True)


def _found(
    report: SystemReport, scope: Scope, *, kinds: Sequence[str], of: str, name: str, tallied: bool
) -> Found:
    for kind in kinds:
        events = named_events(report, scope, kind, of, name)
        if events.rows:
            return kind, _tallied(events) if tallied else _numbered(report, events)
    return "", None


def _tallied(events: Frame) -> Tally:
    """The durations of each name."""
    names = events.labels("name").merged()
    lengths = np.maximum(events.ints("end_ns") - events.ints("start_ns"), 0)
    return tally(names.codes, lengths, [(value,) for value in names.values])


def _numbered(report: SystemReport, events: Frame) -> Frame:
    """The events with their iteration, and their number in it or, without any, in the capture."""
    numbered = Frame({**events, "iteration": iteration_numbers(report, events)})
    instance = rows_before(group_by(numbered, ("pid", "device", "iteration")).codes)
    repeating = [pid for pid, iterations in iterations_of(report).items() if len(iterations)]
    between = (numbered.ints("iteration") < 0) & np.isin(events.ints("pid"), repeating)
    return Frame({**numbered, "instance": np.where(between, -1, instance)})


def _every(parts: Parts[Found], kind: str, top: int | None) -> Instances:
    """A row for each instance."""
    found = [(report, events) for report, (_, events) in parts.results if events is not None]
    rows = [row for report, events in found for row in _rows(report, events, kind, parts.clock)]

    def order(row: Row) -> tuple[object, ...]:
        rank, _, _, start, length, name, device, _ = row
        return (*rank_order(rank), *rank_order(device), start, length, name)

    rows.sort(key=order)
    whole = merge([_tallied(events) for _, events in found])
    durations = durations_by_time(whole, BINS, NAMES)
    modes = [
        f"{brief(one.name, 60)}: {len(one.counts)} modes: {one.modes_text(MODES_SAID)}."
        for one in durations
        if len(one.counts) > 1
    ]
    notes = (*modes[:MODES_SAID], *parts.clock.notes)
    table = Instances("instances", FIELDS, tuple(rows), notes=notes, durations=durations)
    return replace(table, by_rank=tuple(_by_rank(rows))).first(top or None)


def _by_rank(rows: Sequence[Row]) -> Iterator[Row]:
    """How long the instances of each rank, device and name take."""
    groups: dict[Row, list[int]] = {}
    for rank, _, _, _, length, name, device, _ in rows:
        groups.setdefault((rank, device, name), []).append(int(length or 0))
    for (rank, device, name), lengths in groups.items():
        low, middle, high, top = np.percentile(lengths, (0, 50, 95, 100), method="lower").tolist()
        yield rank, device, len(lengths), middle, low, high, top, name


def _rows(report: SystemReport, events: Frame, kind: str, clock: CommonClock) -> Iterator[Row]:
    for pid in np.unique(events.ints("pid")).tolist():
        own, rank = events.at(pid=pid), report.rank_of(pid)[0]
        start, end = own.ints("start_ns"), own.ints("end_ns")
        figures = (clock.aligned(str(report.path), pid, start), end - start)
        numbers = map(own.ints, ("iteration", "instance", "device"))
        columns = (each.tolist() for each in (*figures, *numbers))
        for begin, length, *known, name in zip(*columns, own.labels("name"), strict=True):
            iteration, instance, device = (None if n < 0 else n for n in known)
            yield rank, iteration, instance, begin, length, name, device, kind


def _spread(parts: Parts[Found], kind: str, bins: int, top: int | None) -> Instances:
    """A row for each bin of the names with most time."""
    every = merge([found for _, found in parts.values if found is not None])
    names = len(every.keys) if top == 0 else top or NAMES
    durations = durations_by_time(every, bins, names)
    rows = tuple(
        (one.name, each.low_ns, each.high_ns, each.count, each.count / one.instances, *mode)
        for one in durations
        for each in one.bins
        for mode in [(each.mode + 1, one.medians_ns[each.mode])]
    )
    left = len(every.keys) - len(durations)
    figures = every.statistics()
    extremes = zip(figures.minimum.tolist(), figures.maximum.tolist(), strict=True)
    more = (f"{left:,} more names with less time are left out: --top N shows more.",)
    return Instances(
        "instances",
        BIN_FIELDS,
        rows,
        notes=more if left else (),
        total_rows=sum(len(bin_edges(*extreme, bins)) - 1 for extreme in extremes),
        identity=row_keys(KERNEL, "name") if kind == "kernel" else (),
        durations=durations,
    )
