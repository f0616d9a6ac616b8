"""Iterations of one process: where they are, by what evidence, and which of them are steady.

The steady state is the stretch without warm-up and without what the profiler's start or stop cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.iterations.candidates import Candidate, Other, owner_of
from nsightpy.analysis.iterations.choice import choose_iterations
from nsightpy.analysis.iterations.ranges import ProgramRanges, from_named_ranges, named_groups
from nsightpy.analysis.iterations.repetition import REPEATS
from nsightpy.analysis.iterations.sequences import find_levels
from nsightpy.analysis.iterations.vocabulary import Role, is_wait
from nsightpy.analysis.iterations.work import work_of
from nsightpy.frames import Frame, Ints
from nsightpy.results import Note, Said

SLACK = 0.02
SLACK_OF_FEW = 0.1
MANY = 8
WHOLE = 0.9
CUT_SHORT = 0.5
FEWEST = 3
MOST_WARM = 3
# What shows the steps of a program, in a report of nsys and in a PyTorch trace.
MARK_STEPS = (
    "An NVTX range around each step shows them.",
    "The profiler's step(), or a record_function around each step, shows them.",
)
WARM_UP, STEADY, EDGE = "warm-up", "steady", "edge"
# What a user chooses: numbers of iterations, or STEADY.
Chosen: TypeAlias = "frozenset[int] | str"
PROFILER_CALLS = tuple(
    f"{api}Profiler{call}" for api in ("cuda", "cu", "hip") for call in ("Start", "Stop")
)


_NEVER = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Iterations:
    """The iterations of one process, windows in ns of the report's own time.

    `phase` of each: warm-up, steady, or edge (cut off by the profiler's start or stop). Without
    any, `notes` say why. `others` repeat, too, and were not chosen; `coverage` is the
    share of the work in iterations that are alike; `sampled`: only the middle of a long capture
    was searched.
    """

    source: str
    start: Ints
    end: Ints
    kernels: Ints
    phase: tuple[str, ...]
    notes: tuple[Said, ...] = ()
    others: tuple[Other, ...] = ()
    kind: str = ""
    coverage: float = 0.0
    sampled: bool = False

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


NONE = Iterations("", _NEVER, _NEVER, _NEVER, ())


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
    host: Frame | None = None,
    *,
    named: Frame | None = None,
    text: str = "",
    first_ns: int | None = None,
) -> Iterations:
    """The iterations of one process, from its frames.

    kernels, graphs: start_ns, end_ns, pid, correlation_id, name; calls: start_ns, pid and
    correlation_id of those that launch, by start; ranges: RANGE_COLUMNS; `host`: start_ns and name
    of other calls, of which those count that wait for the GPU or start and stop the profiler.
    `named`: the ranges that the user called iterations, as `text`. `first_ns`: when the process's
    first operation on a GPU began, copies among them.
    """
    waits = profiler = _NEVER
    if host is not None and host.rows:
        names = host.labels("name")
        waits = host.ints("start_ns")[is_wait(names)]
        profiler = host.ints("start_ns")[names.equals(PROFILER_CALLS)]
    if kernels.rows + graphs.rows == 0:
        return _none("no kernels and no graph launches")

    work = work_of(kernels, graphs, calls, waits)
    some = _on_busiest_device(kernels, graphs)
    alone = work if some is None else work_of(*some, calls, waits)
    groups = named_groups(ranges)
    if named is not None and (chosen := from_named_ranges(named, work, text)) is not None:
        return _phased(chosen, profiler, None, (), ())
    choice = choose_iterations(work, alone, find_levels(alone), groups, first_ns)
    if choice.chosen is None:
        return _none(choice.why, choice.others)
    return _phased(choice.chosen, profiler, groups, choice.others, choice.notes)


def _on_busiest_device(kernels: Frame, graphs: Frame) -> tuple[Frame, Frame] | None:
    """The work of the device with the most of it, where a process has several; else None.

    Its order is the program's; that of all devices depends on which thread was faster.
    """
    if "device" not in kernels or "device" not in graphs:
        return None
    device = np.concatenate([kernels.ints("device"), graphs.ints("device")])
    if len(device) == 0 or (device == device[0]).all():
        return None
    lengths = [frame.ints("end_ns") - frame.ints("start_ns") for frame in (kernels, graphs)]
    values, codes = np.unique(device, return_inverse=True)
    most = values[np.argmax(np.bincount(codes, np.concatenate(lengths)))]
    return kernels.take(kernels.ints("device") == most), graphs.take(graphs.ints("device") == most)


def steady_state(iterations: Iterations) -> SteadyState | None:
    """The steady stretch of a run; None where fewer than three iterations are steady."""
    steady = iterations.steady
    if len(steady) < REPEATS:
        return None
    return SteadyState(
        int(iterations.start[steady[0]]),
        int(iterations.end[steady[-1]]),
        len(steady),
        iterations.source,
        float(np.median(iterations.duration[steady])),
    )


def _phased(
    chosen: Candidate,
    profiler: Ints,
    ranges: ProgramRanges | None,
    others: Sequence[Other],
    notes: Sequence[str],
) -> Iterations:
    """The phase of every iteration."""
    phase = [STEADY] * len(chosen)
    for place in _edges(chosen, profiler):
        phase[place] = EDGE
    whole = np.flatnonzero(np.asarray(phase) == STEADY)
    said = list(notes)
    if chosen.sampled:
        said.append(
            "The middle of this long capture was searched; all of it is cut by what was found."
        )
    if ranges is not None:
        named = _named_warm_up(chosen, ranges)
        for place in whole[named[whole]].tolist():
            phase[place] = WARM_UP
        whole = whole[~named[whole]]
    warm = _warming(chosen, whole)
    if warm > max(MOST_WARM, len(whole) // 4):
        said.append("the first iterations are longer and never settle: no warm-up is left out")
        warm = 0
    for place in whole[:warm].tolist():
        phase[place] = WARM_UP
    return Iterations(
        *(chosen.source, chosen.start, chosen.end, chosen.kernels, tuple(phase), tuple(said)),
        others=tuple(others),
        kind=chosen.kind,
        coverage=chosen.coverage,
        sampled=chosen.sampled,
    )


def _named_warm_up(chosen: Candidate, ranges: ProgramRanges) -> NDArray[np.bool_]:
    """Which iterations lie in ranges called warm-up; none where all of them do."""
    inside = np.zeros(len(chosen), dtype=np.bool_)
    middle = (chosen.start + chosen.end) // 2
    for code in ranges.of_roles(Role.WARM_UP):
        start, end = ranges.spans(code)
        inside |= owner_of(start, end, middle) >= 0
    return inside if not inside.all() else ~inside


def _warming(chosen: Candidate, whole: Ints) -> int:
    """How many of the first iterations last longer, or compute longer, than nearly all later ones.

    Later ones are the second half: a slow one among them that comes again is no warm-up. Of few
    iterations the usual spread is unknown, so that only much longer ones are taken for warm-up.
    """
    if len(whole) < REPEATS:
        return 0
    slack = SLACK if len(whole) >= MANY else SLACK_OF_FEW
    slow = np.zeros(len(whole), dtype=np.bool_)
    for figure in (chosen.end - chosen.start, chosen.compute_ns):
        later = figure[whole[len(whole) // 2 :]]
        usual = float(np.quantile(later, 0.95, method="higher"))
        slow |= figure[whole] > (1 + slack) * usual
    return int(np.argmin(slow)) if not slow.all() else 0


def _edges(chosen: Candidate, profiler: Ints) -> list[int]:
    """The first and last iteration where they are no whole ones.

    They have too few kernels, compute less than half as long as the shortest of the others, or hold
    a profiler call after the first kernels or before the last ones. Of three, the first is cut,
    too, when it lasts less than half as long: what lies before its first kernel is unknown.
    """
    usual = float(np.median(chosen.kernels))
    compute = chosen.compute_ns
    lengths = chosen.end - chosen.start
    least = CUT_SHORT * int(compute[1:-1].min()) if len(chosen) > 2 else 0.0
    shortest = CUT_SHORT * int(lengths[1:].min()) if len(chosen) == FEWEST else 0.0
    edges = {
        place
        for place in (0, len(chosen) - 1)
        if chosen.kernels[place] < WHOLE * usual
        or compute[place] < least
        or (place == 0 and lengths[place] < shortest)
    }
    for time in profiler.tolist():
        inside = (chosen.start < time) & (time < chosen.end)
        edges |= set(np.flatnonzero(inside).tolist()) & {0, len(chosen) - 1}
    return sorted(edges) if len(chosen) > len(edges) else []


def _none(why: str, others: Sequence[Other] = ()) -> Iterations:
    notes = (Note(f"No iterations found: {why}.", *MARK_STEPS),)
    return replace(NONE, notes=notes, others=tuple(others))
