"""Iterations of one process: where they are, by what evidence, and which of them are steady.

Evidence in this order: ranges that the user named, a repeated top-level NVTX range, a repeated
collective sequence, a repeated kernel sequence. Where two disagree about how long an iteration
is, and one is no multiple of the other, none is believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.iterations.repetition import REPEATS
from nsightpy.analysis.iterations.sources import (
    USER,
    Candidate,
    from_collectives,
    from_kernels,
    from_named_ranges,
    from_nvtx,
    work_of,
)
from nsightpy.frames import Frame, Ints
from nsightpy.units import format_time

AGREES = 0.1
SLACK = 0.05
WHOLE = 0.9
CUT_SHORT = 0.5
MOST_WARM = 3
WARM_UP, STEADY, EDGE = "warm-up", "steady", "edge"
PROFILER_CALLS = ("cudaProfilerStart", "cudaProfilerStop", "cuProfilerStart", "cuProfilerStop")


@dataclass(frozen=True)
class Iterations:
    """The iterations of one process, windows in ns of the report's own time.

    `phase` of each: warm-up, steady, or edge (cut off by the profiler's start or stop). Without
    any, `notes` say why.
    """

    source: str
    start: Ints
    end: Ints
    kernels: Ints
    phase: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.start)

    @property
    def duration(self) -> Ints:
        """Lengths in ns."""
        return self.end - self.start

    @property
    def steady(self) -> Ints:
        """The places of the steady iterations, ascending."""
        return np.flatnonzero(np.asarray(self.phase) == STEADY)


@dataclass(frozen=True, slots=True)
class SteadyState:
    """The steady part of a run: `count` iterations from `start_ns` to `end_ns`."""

    start_ns: int
    end_ns: int
    count: int
    source: str
    median_ns: float

    @property
    def window_ns(self) -> int:
        return self.end_ns - self.start_ns


def find_iterations(
    kernels: Frame,
    graphs: Frame,
    calls: Frame,
    ranges: Frame,
    *,
    named: Frame | None = None,
    text: str = "",
) -> Iterations:
    """The iterations of one process, from its frames.

    kernels, graphs: start_ns, end_ns, pid, correlation_id, name; calls: CALL_COLUMNS and name;
    ranges: RANGE_COLUMNS; `named`: the ranges that the user called iterations, as `text`.
    """
    work = work_of(kernels, graphs, calls)
    if len(work) == 0:
        return _none("no kernels and no graph launches")
    if named is not None and (chosen := from_named_ranges(named, work, text)) is not None:
        return _phased(chosen, calls, ())
    candidates = [from_nvtx(ranges, work), from_collectives(work), from_kernels(work)]
    found = [one for one in candidates if one is not None]
    if not found:
        return _none(
            "no range, collective or kernel sequence repeats through most of the run; "
            "--nvtx RANGE names one"
        )
    chosen, *others = found
    notes = []
    for other in others:
        if not _related(chosen, other):
            return _none(
                f"the sources disagree: {_described(chosen)}, {_described(other)}; --nvtx RANGE "
                "decides"
            )
        if (times := _times(chosen, other)) != 1:
            notes.append(f"{_described(other)}: {_ratio_text(times)} the {chosen.source}")
    return _phased(chosen, calls, notes)


def steady_state(found: Iterations) -> SteadyState | None:
    """The steady stretch of a run; None where no iterations were found or none is steady."""
    steady = found.steady
    if len(steady) == 0:
        return None
    return SteadyState(
        int(found.start[steady[0]]),
        int(found.end[steady[-1]]),
        len(steady),
        found.source,
        float(np.median(found.duration[steady])),
    )


def _phased(chosen: Candidate, calls: Frame, notes: Sequence[str]) -> Iterations:
    """The phase of every iteration."""
    phase = [STEADY] * len(chosen)
    for place in _edges(chosen, calls):
        phase[place] = EDGE
    whole = np.flatnonzero(np.asarray(phase) == STEADY)
    warm = _warming(chosen, whole)
    said = list(notes)
    if warm > max(MOST_WARM, len(whole) // 4):
        said.append("the first iterations are longer and never settle: no warm-up is left out")
        warm = 0
    for place in whole[:warm].tolist():
        phase[place] = WARM_UP
    return Iterations(
        chosen.source, chosen.start, chosen.end, chosen.kernels, tuple(phase), tuple(said)
    )


def _warming(chosen: Candidate, whole: Ints) -> int:
    """How many of the first iterations last longer, or compute longer, than nearly all later ones.

    Later ones are the second half: a slow one among them that comes again is no warm-up.
    """
    if len(whole) < REPEATS:
        return 0
    slow = np.zeros(len(whole), dtype=np.bool_)
    for figure in (chosen.end - chosen.start, chosen.compute_ns):
        usual = float(np.quantile(figure[whole[len(whole) // 2 :]], 0.95, method="higher"))
        slow |= figure[whole] > (1 + SLACK) * usual
    return int(np.argmin(slow)) if not slow.all() else 0


def _edges(chosen: Candidate, calls: Frame) -> list[int]:
    """The first and last iteration where they are no whole ones.

    They have too few kernels, last less than half as long as the shortest of the others, or hold a
    profiler call after the first kernels or before the last ones.
    """
    usual = float(np.median(chosen.kernels))
    lengths = chosen.end - chosen.start
    least = CUT_SHORT * int(lengths[1:-1].min()) if len(chosen) > 2 else 0.0
    found = {
        place
        for place in (0, len(chosen) - 1)
        if chosen.kernels[place] < WHOLE * usual or lengths[place] < least
    }
    if "name" in calls:
        rows = calls.labels("name").equals(PROFILER_CALLS)
        for time in calls.ints("start_ns")[rows].tolist():
            inside = (chosen.start < time) & (time < chosen.end)
            found |= set(np.flatnonzero(inside).tolist()) & {0, len(chosen) - 1}
    return sorted(found) if len(chosen) > len(found) else []


def _related(one: Candidate, other: Candidate) -> bool:
    """Whether the periods agree, or one is a whole multiple of the other."""
    short, long = sorted((one.period_ns, other.period_ns))
    if short <= 0:
        return one.kind == USER
    times = long / short
    return abs(times - round(times)) <= AGREES * min(round(times), 2)


def _times(one: Candidate, other: Candidate) -> float:
    """How many iterations of `other` make one of `one`; 1/n where it is the other way round."""
    ratio = one.period_ns / other.period_ns if other.period_ns else 1.0
    return round(ratio) if ratio >= 1 else 1 / max(round(1 / ratio), 1)


def _ratio_text(times: float) -> str:
    return f"{times:g} in each of" if times > 1 else f"one for {1 / times:g} of"


def _described(one: Candidate) -> str:
    return f"{one.source} ({len(one)} x {format_time(one.period_ns)})"


def _none(why: str) -> Iterations:
    nothing = np.empty(0, dtype=np.int64)
    return Iterations("", nothing, nothing, nothing, (), (f"No iterations found: {why}.",))
