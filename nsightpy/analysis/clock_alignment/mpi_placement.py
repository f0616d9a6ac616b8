"""Clocks that no NCCL collective ties, placed by the MPI operations of their ranks.

Ends of MPI calls do not agree, as they poll; but nobody leaves a barrier before all have entered
it, and no receive ends before its send began (the clock condition of Scalasca: Becker et al.,
"Scalable timestamp synchronization for event traces of message-passing applications", 2009). Each
operation bounds differences of clocks from both sides; what is left is an interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.clock_alignment.clocks import UNKNOWN, Clock, ClockFit, Seen
from nsightpy.analysis.clock_alignment.tree import ClockModels
from nsightpy.analysis.collectives.log import Codes
from nsightpy.analysis.collectives.thresholds import MOST_DRIFT
from nsightpy.analysis.grouping import connected
from nsightpy.analysis.mpi.functions import Mask
from nsightpy.analysis.mpi.matching import CALL_COLUMNS, Matched, matched_calls
from nsightpy.frames import MPI_CALLS, Floats, Frame, Ints, distinct
from nsightpy.units import counted, format_time


def no_calls() -> Frame:
    """The log of a report without MPI calls."""
    return Frame.empty(MPI_CALLS, CALL_COLUMNS)


@dataclass(frozen=True)
class MpiCalls:
    """The calls of all clocks (CALL_COLUMNS), whose they are, and which are one operation."""

    calls: Frame
    clock: Ints
    matched: Matched

    def aligned(self, models: ClockModels) -> tuple[Ints, Ints]:
        """Starts and ends on the common clock."""
        times = self.calls.ints("start_ns"), self.calls.ints("end_ns")
        starts, ends = (models.aligned(self.clock.astype(np.int32), one) for one in times)
        return starts, ends


def mpi_calls_of(clocks: Sequence[Clock], logs: Sequence[Frame], epochs: Sequence[int]) -> MpiCalls:
    """The calls of clocks on level 0 (epochs[clock] is added); logs[i] may hold all processes of
    clocks[i]'s report."""
    parts, owners = [], []
    for number, (clock, log) in enumerate(zip(clocks, logs, strict=True)):
        own = log.at(pid=clock.pid)
        times = {name: own.ints(name) + epochs[number] for name in ("start_ns", "end_ns")}
        parts.append(Frame({**own, **times}))
        owners.append(np.full(own.rows, number, dtype=np.int64))
    calls = Frame.concatenate(parts) if parts else no_calls()
    clock_of = np.concatenate(owners) if owners else np.empty(0, dtype=np.int64)
    return MpiCalls(
        calls, clock_of, matched_calls(calls, clock_of, [clock.rank for clock in clocks])
    )


def placed_by_mpi(
    calls: MpiCalls,
    level0: Sequence[ClockFit],
    models: ClockModels,
    detected: Mask,
    together: tuple[Codes, Sequence[str]],
) -> tuple[ClockModels, list[Seen], bool, list[str]]:
    """The models with clocks moved to where MPI says that they are, what it shows of each clock,
    whether all hang together through MPI, hosts and collectives, and notes.

    `together` are the session and the machine of each clock, which keep their places to each other;
    with them go clocks that collectives tie (`detected`). The middle of an interval is taken.
    """
    clocks = len(level0)
    sessions, machines = together
    tied = np.where(detected, models.components, clocks + np.arange(clocks))
    groups = np.stack([sessions, np.unique(machines, return_inverse=True)[1], tied]).astype(
        np.int64
    )
    groups += 2 * clocks * np.arange(len(groups))[:, None]
    members = np.tile(np.arange(clocks), len(groups))
    # the first clock of those that keep their places to each other
    owner = connected(members, groups.ravel(), clocks).astype(np.int64)
    starts, ends = calls.aligned(models)
    unplaced = np.asarray([fit.method == UNKNOWN for fit in level0], dtype=np.bool_)
    matched = calls.matched
    if unplaced.any():  # times without a date are not of the same scale
        kept = ~unplaced[calls.clock[matched.row]]
        matched = replace(matched, enters=matched.enters & kept, exits=matched.exits & kept)
    ahead, error, first, counts = intervals_of(matched, owner[calls.clock], starts, ends, clocks)
    sets = np.unique(np.where(np.isfinite(error), first, np.arange(clocks))[owner])
    error = np.where(first == np.arange(clocks), np.inf, error)[owner]
    shown = zip(counts[owner].tolist(), error.tolist(), strict=True)
    seen = [Seen(count, (-most, 0.0, most), most) for count, most in shown]
    notes = _placing_notes(error, calls.matched)
    models = replace(models, offsets=models.offsets + ahead[owner])
    notes += violations_note(calls.matched, *calls.aligned(models))
    return models, seen, len(sets) == 1, notes


def intervals_of(
    matched: Matched, owner: Ints, starts: Ints, ends: Ints, owners: int
) -> tuple[Floats, Floats, Ints, Ints]:
    """How far each owner of calls is ahead of the first of its set (ns, at the middle of the
    calls), the error (infinite where nothing bounds it), that first one, and how many operations
    show it.

    `owner`, `starts` and `ends` are by row of the calls; only operations of several owners count,
    and those at other times than the middle less tightly, as clocks may drift.
    """
    telling = matched.strict[matched.instance] & (matched.enters | matched.exits)
    whose = owner[matched.row]
    pairs, _ = distinct(matched.instance[telling] * owners + whose[telling])
    several = np.bincount(pairs // owners, minlength=matched.count) > 1
    counts = np.bincount(pairs[several[pairs // owners]] % owners, minlength=owners)
    rows = np.flatnonzero(telling & several[matched.instance])
    whose, operation = whose[rows], matched.instance[rows]
    first = connected(whose, operation, owners).astype(np.int64)
    enter, leave = starts[matched.row[rows]], ends[matched.row[rows]]
    middle = (int(enter.min()) + int(leave.max())) // 2 if len(rows) else 0
    began = np.full(matched.count, np.iinfo(np.int64).max)
    np.minimum.at(began, operation, enter)
    slack: Floats = np.where(
        first[whose] == whose, 0.0, MOST_DRIFT * np.abs(began[operation] - middle)
    )
    enters, exits = matched.enters[rows], matched.exits[rows]
    entered = whose[enters], operation[enters], (enter - middle - slack)[enters]
    left = whose[exits], operation[exits], (leave - middle + slack)[exits]
    low, high = _bounds(entered, left, first == np.arange(owners))
    known = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(known, low, 0.0), np.where(known, high, 0.0)
    return (low + high) / 2, np.where(known, (high - low) / 2, np.inf), first, counts


def _bounds(
    entered: tuple[Ints, Ints, Floats], left: tuple[Ints, Ints, Floats], reference: Mask
) -> tuple[Floats, Floats]:
    """Bounds of every owner against the reference of its set; no bounds where conditions contradict
    each other. Who entered and left which operation, and when (ns), are given.

    Each pass hands bounds on to whoever shares an operation: shortest paths after Bellman and Ford.
    """
    (came, of_came, enter), (went, of_went, leave) = entered, left
    operations = 1 + max(int(of_came.max(initial=-1)), int(of_went.max(initial=-1)))
    nothing = np.where(reference, 0.0, -np.inf), np.where(reference, 0.0, np.inf)
    low, high = nothing
    for _ in range(len(reference) + 1):
        earliest, latest = np.full(operations, np.inf), np.full(operations, -np.inf)
        np.minimum.at(earliest, of_went, leave - low[went])
        np.maximum.at(latest, of_came, enter - high[came])
        lower, higher = low.copy(), high.copy()
        np.maximum.at(lower, came, enter - earliest[of_came])
        np.minimum.at(higher, went, leave - latest[of_went])
        if (lower > higher).any():
            return nothing
        if np.allclose(lower, low, 0.0, 1.0) and np.allclose(higher, high, 0.0, 1.0):
            break
        low, high = lower, higher
    return low, high


def _placing_notes(error: Floats, matched: Matched) -> list[str]:
    notes = []
    placed = np.isfinite(error)
    if placed.any():
        widest = format_time(round(float(error[placed].max())))
        notes.append(
            f"{counted(int(np.count_nonzero(placed)), 'clock')} placed by MPI operations, which "
            f"nobody leaves before others have entered: to within {widest} at the middle of the "
            "calls (residual_p05_ns, residual_p95_ns)."
        )
    if matched.unmatched:
        notes.append(
            f"The calls of {counted(len(matched.unmatched), 'MPI communicator')} could not be "
            "matched: they differ between its ranks, which were not all captured from MPI_Init on, "
            "or the export does not tell communicators apart."
        )
    return notes


def violations_note(matched: Matched, starts: Ints, ends: Ints) -> list[str]:
    """How many operations break the clock condition on the common clock, by how much."""
    latest = np.full(matched.count, np.iinfo(np.int64).min)
    earliest = np.full(matched.count, np.iinfo(np.int64).max)
    rows, operation = matched.row, matched.instance
    enters, exits = matched.enters, matched.exits
    np.maximum.at(latest, operation[enters], starts[rows[enters]])
    np.minimum.at(earliest, operation[exits], ends[rows[exits]])
    known = matched.strict & (latest > np.iinfo(np.int64).min) & (earliest < np.iinfo(np.int64).max)
    broken = known & (latest > earliest)
    if not broken.any():
        return []
    worst = int((latest[broken] - earliest[broken]).max())
    note = (
        f"{int(np.count_nonzero(broken)):,} of {int(np.count_nonzero(known)):,} MPI operations "
        "break the clock condition: on the common clock a rank leaves before another one that it "
        f"waits for has come, by up to {format_time(worst)}."
    )
    return [note]
