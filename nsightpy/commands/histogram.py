"""histogram: how durations of kernels, ranges or collectives are distributed, and their modes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Unpack

import numpy as np

from nsightpy.analysis.modes import ENOUGH, Mode, find_modes
from nsightpy.analysis.tally import Tally, merge, tally
from nsightpy.errors import NsightpyError, require_choice
from nsightpy.frames import Ints
from nsightpy.names import brief
from nsightpy.query.named_events import (
    KINDS,
    close_names,
    named_events,
)
from nsightpy.query.parameters import NAME_COLUMNS
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Table, Value
from nsightpy.results.keys import KERNEL, RowKey
from nsightpy.results.series import DurationModes, Histogram
from nsightpy.units import format_time

FIELDS = (
    Field("name", "text"),
    Field("low_ns", "ns"),
    Field("high_ns", "ns"),
    Field("count"),
    Field("share", "ratio", 4),
    Field("mode", "id"),
    Field("mode_median_ns", "ns", 1),
)
PEOPLE = (
    Field("name", "text"),
    Field("instances"),
    Field("medians_and_shares", "text", own=True),
)
TOP = 10
PER_OCTAVE = 8  # bins in a doubling of the duration
NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
MODES_SAID, MODES_IN_CELL = 4, 2


@dataclass(frozen=True)
class _Part:
    """What one report contributes; `close` are names like the wanted one where none has it."""

    durations: Tally
    close: list[str]


@command_function
def histogram(
    reports: Paths,
    *,
    of: str | None = None,
    kind: str = "kernel",
    name: str = "demangled",
    top: int | None = None,
    **common: Unpack[Common],
) -> Histogram:
    """How long instances of each name take: bins of equal ratio (8 a doubling); times in ns.

    `kind`: kernel, collective, range (on the host) or projection (from the first start to the last
    end of what a range launched). Of the `top` names (10) by total time, or of those that `of`
    means; * stands for anything. share is the part of the name's instances, mode the number of the
    mode that the bin belongs to, from the shortest. Modes are values that durations cluster around,
    divided by valleys at most half as high as the lower peak beside them (see analysis.modes);
    `.modes` has them by name. Raises NsightpyError when nothing has the name.
    """
    require_choice("kind", kind, KINDS)
    require_choice("name", name, tuple(NAME_COLUMNS))
    request = Request.of(reports, **common)
    work = partial(_durations, of=of, kind=kind, name=name, scope=request.scope)
    parts = request.map(work).values
    every = merge([part.durations for part in parts])
    if of is not None and not every.keys:
        near = close_names(of, [similar for part in parts for similar in part.close])
        advice = f"\n  similar ones: {', '.join(near)}." if near else ""
        first = request.ranks.inputs[0]
        raise NsightpyError(f"{first}: no {kind} is called {of!r}; * stands for anything.{advice}")
    figures = every.statistics()
    order = figures.by_total()[: top or TOP]
    rows: list[tuple[Value, ...]] = []
    modes = []
    for group in order:
        bounds = slice(int(every.bounds[group]), int(every.bounds[group + 1]))
        values, counts = every.values[bounds], every.counts[bounds].astype(np.int64)
        modes_of_name = find_modes(values, counts)
        text = str(every.keys[group][0])
        modes.append(_named(text, modes_of_name))
        rows += _bins(text, values, counts, modes_of_name)
    identity = (RowKey(KERNEL, ("name",)),) if kind == "kernel" else ()
    extremes = zip(figures.minimum.tolist(), figures.maximum.tolist(), strict=True)
    bins = sum(len(bin_edges(low, high)) - 1 for low, high in extremes)
    table = Histogram(
        "histogram", FIELDS, tuple(rows), modes=tuple(modes), identity=identity, total_rows=bins
    )
    left = len(every.keys) - len(order)
    more = [f"{left:,} more names with less time are left out: --top N shows more."] if left else []
    return request.finish(table, *map(_note, modes[:MODES_SAID]), *more)


def _durations(
    report: SystemReport, *, of: str | None, kind: str, name: str, scope: Scope
) -> _Part:
    events = named_events(report, scope, kind, of, name)
    names = events.labels("name").merged()
    lengths = np.maximum(events.ints("end_ns") - events.ints("start_ns"), 0)
    close = []
    if of is not None and not events.rows:
        everything = named_events(report, scope, kind, None, "base").labels("name")
        close = close_names(of, everything.values)
    return _Part(tally(names.codes, lengths, [(value,) for value in names.values]), close)


def _named(name: str, modes: Sequence[Mode]) -> DurationModes:
    return DurationModes(
        name,
        tuple(mode.median_ns for mode in modes),
        tuple(mode.count for mode in modes),
    )


def bin_edges(low: int, high: int) -> Ints:
    """Edges of equal ratio around durations, whole ns: the same for all, so that bins compare."""
    first = int(np.floor(PER_OCTAVE * np.log2(max(low, 1))))
    last = int(np.floor(PER_OCTAVE * np.log2(max(high, 1)))) + 1
    edges = np.unique(np.ceil(2.0 ** (np.arange(first, last + 2) / PER_OCTAVE)).astype(np.int64))
    edges = edges[np.searchsorted(edges, max(low, 1), side="right") - 1 :]
    edges = edges[: np.searchsorted(edges, high, side="right") + 1]
    return np.concatenate([[0], edges]).astype(np.int64) if low < 1 else edges


def _bins(name: str, values: Ints, counts: Ints, modes: Sequence[Mode]) -> list[tuple[Value, ...]]:
    """The bins from the shortest to the longest; a mode begins in the bin of its first value."""
    edges = bin_edges(int(values[0]), int(values[-1]))
    seen = np.append(0, np.cumsum(counts))
    inside = np.diff(seen[np.searchsorted(values, edges)]).tolist()
    begins = np.asarray([mode.low_ns for mode in modes], dtype=np.int64)
    rows: list[tuple[Value, ...]] = []
    for (low, high), count in zip(pairwise(edges.tolist()), inside, strict=True):
        mode = max(int(np.searchsorted(begins, high - 1, side="right")) - 1, 0)
        about = (mode + 1, modes[mode].median_ns)
        rows.append((name, low, high, count, count / int(seen[-1]), *about))
    return rows


def modes_text(modes: DurationModes, most: int = 99) -> str:
    """The modes as people say them: two modes: 2.1 us (61 %), 48 us (39 %).

    Of more than `most` the most frequent, and how many others there are.
    """
    number = len(modes.medians_ns)
    count = NUMBERS[number] if number < len(NUMBERS) else str(number)
    if modes.instances < ENOUGH:
        return f"too few to tell: {format_time(modes.medians_ns[0])}"
    if number == 1:
        return f"one mode: {format_time(modes.medians_ns[0])}"
    often = sorted(range(number), key=lambda mode: -modes.counts[mode])[:most]
    pairs = [(modes.medians_ns[mode], modes.counts[mode]) for mode in sorted(often)]
    parts = [f"{format_time(ns)} ({100 * n / modes.instances:.2g} %)" for ns, n in pairs]
    left = f" + {number - most}" if number > most else ""
    return f"{count} modes: {', '.join(parts)}{left}"


def _note(modes: DurationModes) -> str:
    return f"{brief(modes.name, 60)}: {modes_text(modes)}."


def by_name(table: Histogram) -> Table:
    """The table for people: one row a name with its modes."""
    rows = []
    for mode in table.modes:
        rows.append((mode.name, mode.instances, modes_text(mode, MODES_IN_CELL).partition(": ")[2]))
    said = tuple(note for note in table.notes if note not in set(map(_note, table.modes)))
    return Table(table.command, PEOPLE, tuple(rows), table.inputs, said, table.title)
