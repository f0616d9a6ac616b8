"""Clocks that no NCCL collective ties, placed by the MPI operations of their ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nsightpy.analysis.clock_alignment.clocks import MPI, UNKNOWN, Clock, ClockFit
from nsightpy.analysis.clock_alignment.mpi_intervals import conditions_of, intervals_of
from nsightpy.analysis.clock_alignment.tree import ClockModels
from nsightpy.analysis.collectives.log import Codes
from nsightpy.analysis.grouping import connected
from nsightpy.analysis.mpi.functions import Mask
from nsightpy.analysis.mpi.matching import CALL_COLUMNS, Matched, matched_calls
from nsightpy.frames import MPI_CALLS, Floats, Frame, Ints
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


@dataclass(frozen=True)
class MpiPlacement:
    """What MPI says of each clock; `error_ns` is half an interval's width, infinite for those
    whose place it does not say; `whole`: that all clocks hang together through MPI, hosts and
    collectives."""

    error_ns: Floats
    drift: Floats
    operations: Ints
    whole: bool = False
    notes: tuple[str, ...] = field(default=())

    @property
    def placed(self) -> Mask:
        placed: Mask = np.isfinite(self.error_ns)
        return placed

    def fit_of(self, fit: ClockFit, clock: int) -> ClockFit:
        """The published fit of a clock that MPI places."""
        error, drift = float(self.error_ns[clock]), float(self.drift[clock])
        return replace(
            fit,
            method=MPI,
            drift_ppm=drift * 1e6 if drift else None,
            instances=int(self.operations[clock]),
            residual_p05_ns=-error,
            residual_p50_ns=0.0,
            residual_p95_ns=error,
        )


def mpi_calls_of(clocks: Sequence[Clock], logs: Sequence[Frame], epochs: Sequence[int]) -> MpiCalls:
    """The calls of clocks on level 0 (epochs[clock] is added); logs[i] may hold all processes of
    clocks[i]'s report."""
    parts, owners = [], []
    for place, (clock, log) in enumerate(zip(clocks, logs, strict=True)):
        mine = log.at(pid=clock.pid)
        times = {name: mine.ints(name) + epochs[place] for name in ("start_ns", "end_ns")}
        parts.append(Frame({**mine, **times}))
        owners.append(np.full(mine.rows, place, dtype=np.int64))
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
) -> tuple[ClockModels, MpiPlacement]:
    """The models with clocks moved to where MPI says that they are.

    `together` are the session and the machine of each clock, which keep their places to each other;
    with them go clocks that collectives tie (`detected`). The middle of an interval is taken.
    """
    clocks = len(level0)
    owner = _rigid(models, detected, *together)
    starts, ends = calls.aligned(models)
    unplaced = np.asarray([fit.method == UNKNOWN for fit in level0], dtype=np.bool_)
    matched = calls.matched
    if unplaced.any():  # times without a date are not of the same scale
        kept = ~unplaced[calls.clock[matched.row]]
        matched = replace(matched, enters=matched.enters & kept, exits=matched.exits & kept)
    conditions, middle = conditions_of(matched, owner[calls.clock], starts, ends)
    intervals, first = intervals_of(conditions, clocks)
    moved = intervals.known & (first != np.arange(clocks))
    offset = np.where(moved, intervals.middle, 0.0)[owner]
    drift = np.where(moved, intervals.drift, 0.0)[owner]
    offsets = models.offsets + offset + drift * (models.center_ns - middle)
    error = np.where(moved, intervals.error, np.inf)[owner]
    sets = np.unique(np.where(intervals.known, first, np.arange(clocks))[owner])
    placement = MpiPlacement(error, drift, intervals.operations[owner], len(sets) == 1)
    notes = _placing_notes(placement, intervals.contradictions, calls.matched)
    models = replace(models, offsets=offsets, drifts=models.drifts + drift)
    notes += violations_note(calls.matched, *calls.aligned(models))
    return models, replace(placement, notes=tuple(notes))


def _rigid(models: ClockModels, detected: Mask, sessions: Codes, machines: Sequence[str]) -> Ints:
    """The first clock of those that keep their places to each other."""
    clocks = np.arange(len(detected))
    tied = np.where(detected, models.components, len(detected) + clocks)
    machine = np.unique(np.asarray(machines), return_inverse=True)[1]
    groups = np.stack([sessions, machine, tied]).astype(np.int64)
    groups += 2 * len(clocks) * np.arange(len(groups))[:, None]
    return connected(np.tile(clocks, len(groups)), groups.ravel(), len(clocks)).astype(np.int64)


def _placing_notes(placement: MpiPlacement, contradictions: int, matched: Matched) -> list[str]:
    notes = []
    if placement.placed.any():
        placed = placement.placed
        widest = format_time(round(float(placement.error_ns[placed].max())))
        notes.append(
            f"{counted(int(np.count_nonzero(placed)), 'clock')} placed by MPI operations, which "
            f"nobody leaves before others have entered: to within {widest} at the middle of the "
            "calls (residual_p05_ns, residual_p95_ns)."
        )
    if contradictions:
        notes.append(
            "MPI operations of some of the time contradict each other, so that they place no "
            "clock: they were matched wrongly, or a clock jumped."
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
    asked = matched.strict & (latest > np.iinfo(np.int64).min) & (earliest < np.iinfo(np.int64).max)
    broken = asked & (latest > earliest)
    if not broken.any():
        return []
    worst = int((latest[broken] - earliest[broken]).max())
    note = (
        f"{int(np.count_nonzero(broken)):,} of {int(np.count_nonzero(asked)):,} MPI operations "
        "break the clock condition: on the common clock a rank leaves before another one that it "
        f"waits for has come, by up to {format_time(worst)}."
    )
    return [note]
