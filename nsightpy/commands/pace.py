"""pace: one kernel, range or collective, instance by instance, over iterations and ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Unpack

import numpy as np

from nsightpy.analysis.iterations.candidates import owner_of
from nsightpy.errors import NsightpyError, require_choice
from nsightpy.frames import Frame, Ints
from nsightpy.query.common_clock import common_clock
from nsightpy.query.iteration_search import search
from nsightpy.query.named_events import KINDS, close_names, named_events
from nsightpy.query.parameters import NAME_COLUMNS
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Table, Value, fields_in
from nsightpy.units import format_time, significant

ANY = "any"
FIELDS = (
    *fields_in("id", "rank", "iteration", "instance"),
    Field("start_ns", "ns"),
    Field("duration_ns", "ns"),
    Field("name", "text"),
    Field("device", "id"),
    Field("kind", "text", own=True),
)
PEOPLE = (
    Field("rank", "id"),
    Field("device", "id"),
    Field("instances"),
    *fields_in("ns", "median_ns", "minimum_ns", "p95_ns", "maximum_ns"),
    Field("name", "text"),
)


@dataclass(frozen=True)
class _Part:
    """The instances in one report by start, with iteration and number in it (-1: in none).

    `close` are names like the wanted one, where nothing has it.
    """

    kind: str
    events: Frame
    iteration: Ints
    instance: Ints
    close: list[str]


@command_function
def pace(
    reports: Paths, *, of: str, kind: str = ANY, name: str = "demangled", **common: Unpack[Common]
) -> Table:
    """Every instance of what is called `of`, by rank and start; times in ns.

    `of` is the name of a kernel (demangled, base or mangled), a collective's operation (AllReduce),
    or an NVTX range (RANGE[@DOMAIN]); * stands for anything. `kind`: kernel, collective, range (on
    the host), projection (from the first start to the last end of what a range launched), or any:
    the first of these that has the name. Starts are moments on the clock that all ranks share.
    instance counts from 0 in its iteration, or in the capture where the report has no iterations;
    what began between iterations has none. Raises NsightpyError when nothing has the name.
    """
    require_choice("kind", kind, (ANY, *KINDS))
    require_choice("name", name, tuple(NAME_COLUMNS))
    request = Request.of(reports, **common)
    work = partial(_instances, of=of, name=name, scope=request.scope)
    wanted = KINDS if kind == ANY else (kind,)
    results = request.map(partial(work, kinds=wanted), ranked=True).results
    kinds = {part.kind for _, part in results if part.events.rows}
    if not kinds:
        raise NsightpyError(_nothing(of, kind, results))
    first = next(known for known in KINDS if known in kinds)
    if len(kinds) > 1:
        results = request.map(partial(work, kinds=(first,)), ranked=True).results
    clock = common_clock(request.ranks)
    rows: list[tuple[Value, ...]] = []
    for report, part in results:
        for pid in np.unique(part.events.ints("pid")).tolist():
            mine = np.flatnonzero(part.events.ints("pid") == pid)
            starts = clock.aligned(str(report.path), pid, part.events.ints("start_ns")[mine])
            rows += _rows(report.rank_of(pid)[0], part, mine, starts)
    rows.sort(key=_order)
    table = Table("pace", FIELDS, tuple(rows))
    return request.finish(table, *_notes(rows), *clock.notes)


def _instances(
    report: SystemReport, *, of: str, name: str, kinds: Sequence[str], scope: Scope
) -> _Part:
    """The instances of the first kind that has the name."""
    for kind in kinds:
        events = named_events(report, scope, kind, of, name)
        if events.rows:
            return _Part(kind, events, *_numbered(report, events), [])
    every = {n for kind in kinds for n in _names(named_events(report, scope, kind, None, "base"))}
    none = np.empty(0, dtype=np.int64)
    return _Part(kinds[0], events, none, none, close_names(of, every))


def _names(events: Frame) -> tuple[str, ...]:
    labels = events.labels("name")
    return tuple(labels.values[code] for code in np.unique(labels.codes).tolist())


def _numbered(report: SystemReport, events: Frame) -> tuple[Ints, Ints]:
    """The iteration of each event, and its number in it or, without any, in the capture."""
    iteration = np.full(events.rows, -1, dtype=np.int64)
    instance = np.full(events.rows, -1, dtype=np.int64)
    every = search(report)
    for pid in np.unique(events.ints("pid")).tolist():
        mine = np.flatnonzero(events.ints("pid") == pid)
        iterations = every[pid].iterations if pid in every else None
        if iterations is not None and len(iterations):
            iteration[mine] = owner_of(
                iterations.start, iterations.end - 1, events.ints("start_ns")[mine]
            )
        for device in np.unique(events.ints("device")[mine]).tolist():
            rows = mine[events.ints("device")[mine] == device]
            rows = (
                rows[iteration[rows] >= 0] if iterations is not None and len(iterations) else rows
            )
            instance[rows] = _running_number(iteration[rows])
    return iteration, instance


def _running_number(groups: Ints) -> Ints:
    """0, 1, 2, ... of each row among the rows of its group; groups follow one another."""
    if len(groups) == 0:
        return groups
    fresh = np.concatenate([[True], groups[1:] != groups[:-1]])
    place = np.arange(len(groups))
    return place - np.maximum.accumulate(np.where(fresh, place, 0))


def _rows(rank: int | None, part: _Part, mine: Ints, starts: Ints) -> Iterable[tuple[Value, ...]]:
    names = part.events.labels("name").take(mine)
    lengths = (part.events.ints("end_ns") - part.events.ints("start_ns"))[mine]
    figures = (part.iteration[mine], part.instance[mine], starts, lengths)
    devices = part.events.ints("device")[mine].tolist()
    texts = map(names.values.__getitem__, names.codes.tolist())
    lists = (each.tolist() for each in figures)
    for iteration, instance, start, length, name, device in zip(
        *lists, texts, devices, strict=True
    ):
        known = (None if number < 0 else number for number in (iteration, instance, device))
        numbers = tuple(known)
        yield (rank, *numbers[:2], start, length, name, numbers[2], part.kind)


def _order(row: tuple[Value, ...]) -> tuple[object, ...]:
    rank, _, _, start, length, name, device, _ = row
    return (rank is None, rank or 0, device is None, device or 0, start, length, name)


def _nothing(of: str, kind: str, results: Sequence[tuple[SystemReport, _Part]]) -> str:
    """The message where nothing has the name: what was looked at, and names like it."""
    shown = str(results[0][0].path) if results else "the reports"
    more = f" and {len(results) - 1} more" if len(results) > 1 else ""
    what = "kernel, collective or range" if kind == ANY else kind
    near = close_names(of, [name for _, part in results for name in part.close])
    advice = f"similar ones: {', '.join(near)}." if near else "nothing has a similar name."
    return (
        f"{shown}{more}: no {what} is called {of!r}\n  {advice} `nsightpy kernels`, `collectives` "
        "and `nvtx` list what there is; * stands for anything."
    )


def _notes(rows: Sequence[tuple[Value, ...]]) -> list[str]:
    """The usual duration, and the longest instance."""
    lengths = np.asarray([row[4] for row in rows], dtype=np.int64)
    middle, longest = float(np.median(lengths)), int(np.argmax(lengths))
    rank, iteration, instance, start = rows[longest][:4]
    where = [f"rank {rank}"] if rank is not None else []
    where += [f"iteration {iteration}"] if iteration is not None else []
    where += [f"instance {instance}"] if instance is not None else []
    ratio = f", {significant(lengths[longest] / middle)} times the median" if middle else ""
    text = (
        f"{len(rows):,} instances, median {format_time(middle)}; the longest takes "
        f"{format_time(int(lengths[longest]))}{ratio}: {', '.join(where) or 'it'} at "
        f"{format_time(int(start or 0))}."
    )
    return [text]


def by_rank(table: Table) -> Table:
    """The table for people: one row a rank, device and name."""
    groups: dict[tuple[Value, ...], list[int]] = {}
    for row in table.rows:
        groups.setdefault((row[0], row[6], row[5]), []).append(int(row[4] or 0))
    rows = []
    for (rank, device, name), lengths in groups.items():
        low, middle, high, top = np.percentile(lengths, (0, 50, 95, 100), method="lower").tolist()
        rows.append((rank, device, len(lengths), middle, low, high, top, name))
    return replace(table, fields=PEOPLE, rows=tuple(rows))
