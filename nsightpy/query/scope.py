"""Which part of the reports a question is about: ranks, devices, a stretch of time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import and_
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.intervals import Spans, clip
from nsightpy.analysis.iterations.steady import (
    STEADY,
    Chosen,
    Iterations,
    SteadyState,
    steady_state,
)
from nsightpy.analysis.ranking import durations
from nsightpy.analysis.thresholds import MATERIAL
from nsightpy.analysis.time_budget import places_of
from nsightpy.analysis.work_graph.launched_work import Work
from nsightpy.errors import UsageError
from nsightpy.frames import EVERY_SCHEMA, Frame
from nsightpy.query.nvtx_filter import named_ranges
from nsightpy.query.options import Scoping
from nsightpy.query.steps import began_in, chosen_time, search
from nsightpy.reports.system import SystemReport
from nsightpy.units import group_text, parse_time_ns

_PART = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?", re.ASCII)
MOST_NUMBERS = 1_000_000


@dataclass(frozen=True, slots=True)
class Scope:
    """Ranks and devices (None: all), a stretch of time in ns, an NVTX range.

    `from_ns` and `to_ns` are moments on the clock that all reports share; `own_bounds` are the same
    in the own time of each report (by path) whose clock differs. `alone`: there is one report.

    `iteration` (numbers, or "steady") leaves what began in those iterations of each process, and
    for budgets of time their windows.
    `nvtx` (RANGE[@DOMAIN], * for anything) leaves what its instances launched, whole, and for
    budgets of time the union of their projected intervals on each device.
    """

    ranks: frozenset[int] | None = None
    devices: frozenset[int] | None = None
    from_ns: int | None = None
    to_ns: int | None = None
    nvtx: str | None = None
    iteration: Chosen | None = None
    own_bounds: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    alone: bool = False

    @classmethod
    def of(cls, **given: Unpack[Scoping]) -> Scope:
        """A scope from what users write: "0,2-5", "1.5s", "forward". Raises UsageError."""
        iteration = given.get("iteration")
        scope = cls(
            numbers(given.get("rank"), "rank"),
            numbers(given.get("device"), "device"),
            _time(given.get("from_time")),
            _time(given.get("to_time")),
            given.get("nvtx"),
            STEADY if iteration == STEADY else numbers(iteration, "iteration"),
        )
        if scope.from_ns is not None and scope.to_ns is not None and scope.to_ns <= scope.from_ns:
            raise UsageError("--to must be later than --from")
        return scope

    def bounds(self, report: SystemReport) -> tuple[int | None, int | None]:
        """From when to when, in a report's own time; None where nothing was said."""
        low, high = self.own_bounds.get(str(report.path), (self.from_ns, self.to_ns))
        return None if self.from_ns is None else low, None if self.to_ns is None else high

    def includes(self, rank: int | None, device: int | None = None) -> bool:
        """Whether the question is about this rank and this device; None: about any of its."""
        return (self.ranks is None or rank in self.ranks) and (
            self.devices is None or device is None or device in self.devices
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The frame columns that narrowing needs beside start_ns and end_ns."""
        processes = (self.ranks, self.nvtx, self.iteration)
        wanted = ("pid",) if any(process is not None for process in processes) else ()
        wanted = (*wanted, "device") if self.devices is not None else wanted
        return (*wanted, "correlation_id") if self.nvtx is not None else wanted

    def wanted(self, name: str, columns: Iterable[str]) -> tuple[str, ...]:
        """These columns of a frame, its times, and what narrowing needs that it has."""
        needed = (column for column in self.columns if column in EVERY_SCHEMA[name].names)
        return tuple(dict.fromkeys((*columns, "start_ns", "end_ns", *needed)))

    def read(self, report: SystemReport, name: str, columns: Iterable[str] = ()) -> Frame:
        """The rows of a report's frame inside the scope, with these columns and its times."""
        return self.narrow(report, report.frame(name, self.wanted(name, columns)))

    def narrow(self, report: SystemReport, frame: Frame) -> Frame:
        """The rows inside the scope; whoever overlaps the stretch of time counts whole.

        Raises MissingDataError when the report has no such NVTX range or iteration.
        """
        return _taken(frame, self.mask(report, frame))

    def mask(self, report: SystemReport, frame: Frame) -> NDArray[np.bool_]:
        """Which rows are inside the scope."""
        keep = self._mask_within(report, frame)
        if self.iteration is not None:
            keep &= began_in(frame, chosen_time(report, self.iteration))
        if self.nvtx is not None:
            keep &= named_ranges(report, self.nvtx).mask(frame)
        return keep

    def narrow_any(self, report: SystemReport, frame: Frame) -> Frame:
        """The same of any frame: one without times or processes is left whole."""
        needed = {"start_ns", "end_ns", "pid", *self.columns} - {"device", "correlation_id"}
        return self.narrow(report, frame) if needed <= set(frame) else frame

    @property
    def whole_time(self) -> Scope:
        """The same ranks and devices, at all times."""
        return replace(self, from_ns=None, to_ns=None, nvtx=None, iteration=None)

    @property
    def everybody(self) -> Scope:
        """The same part of the time, of all ranks and devices."""
        return replace(self, ranks=None, devices=None)

    @property
    def is_timed(self) -> bool:
        """Whether a stretch of time was chosen."""
        return self.from_ns is not None or self.to_ns is not None

    @property
    def is_part(self) -> bool:
        """Whether a part of the time was chosen: from when to when, a range, iterations."""
        return self.is_timed or self.nvtx is not None or self.iteration is not None

    @property
    def is_narrowed(self) -> bool:
        """Whether the question is about less than all that the reports hold."""
        return self.is_part or self.ranks is not None or self.devices is not None

    def windows(self, report: SystemReport) -> dict[tuple[int, int], Spans] | None:
        """Per process and device the time that range and iterations leave, ns; None for all."""
        parts: list[Mapping[tuple[int, int], Spans]] = []
        if self.nvtx is not None:
            parts.append(named_ranges(report, self.nvtx).windows)
        if self.iteration is not None:
            parts.append(chosen_time(report, self.iteration))
        if not parts:
            return None
        start, end = self.bounds(report)
        low, high = -(2**62) if start is None else start, 2**62 if end is None else end
        shared = [place for place in parts[0] if place in parts[-1]]
        return {
            place: clip(reduce(and_, (part[place] for part in parts)), low, high)
            for place in shared
        }

    def within(self, report: SystemReport, frame: Frame) -> Frame:
        """The rows of the ranks, devices and time in scope, whatever range and iterations."""
        return _taken(frame, self._mask_within(report, frame))

    def _mask_within(self, report: SystemReport, frame: Frame) -> NDArray[np.bool_]:
        keep = np.ones(frame.rows, dtype=np.bool_)
        if self.ranks is not None:
            pids = [pid for pid in report.pids if report.rank_of(pid)[0] in self.ranks]
            keep &= np.isin(frame.ints("pid"), pids)
        if self.devices is not None and "device" in frame:
            keep &= np.isin(frame.ints("device"), sorted(self.devices))
        low, high = self.bounds(report)
        if low is not None:
            keep &= frame.ints("end_ns") > low
        if high is not None:
            keep &= frame.ints("start_ns") < high
        return keep

    def iterations(self, report: SystemReport, level: int | None = None) -> dict[int, Iterations]:
        """The iterations of each process in scope, whatever `iteration` is; searched once.

        `level`: that which the user chose of the levels on which the work repeats.
        """
        key = (search, self.ranks, self.devices, self.bounds(report), self.nvtx, level)
        narrow = partial(self.within, report)
        return report.derived(key, lambda: search(report, narrow, self.nvtx, level))

    def steady_states(self, report: SystemReport) -> dict[int, SteadyState]:
        """The steady state of each process that has one; none where a stretch of time is given."""
        if self.is_timed or self.iteration is not None:
            return {}
        states = {pid: steady_state(found) for pid, found in self.iterations(report).items()}
        return {pid: state for pid, state in states.items() if state is not None}

    def steady_places(
        self, report: SystemReport, work: Work
    ) -> Mapping[tuple[int, int], SteadyState] | None:
        """The steady state of each place (process, device); None unless all processes have one.

        Processes that did next to nothing need none: theirs is that of the busiest. None, too, when
        a part of the time was chosen.
        """
        places = places_of(*work)
        if self.is_part or not (work.kernels.rows or work.graphs.rows):
            return None
        states = self.steady_states(report)
        busy = {
            pid: sum(int(durations(frame.at(pid=pid)).sum()) for frame in work) for pid, _ in places
        }
        busiest = max(busy, key=lambda pid: busy[pid])
        if any(
            spent >= MATERIAL * busy[busiest] for pid, spent in busy.items() if pid not in states
        ):
            return None
        return {place: states.get(place[0], states[busiest]) for place in places}

    @property
    def notes(self) -> list[str]:
        notes = []
        if self.is_timed:
            notes.append("Events that overlap the wanted stretch of time are counted whole.")
        if self.iteration is not None:
            chosen = self.iteration if self.iteration == STEADY else group_text([*self.iteration])
            notes.append(
                f"Only what began in iteration {chosen} of each process; "
                "budgets of time cover their windows."
            )
        if self.nvtx is not None:
            notes.append(
                f"Only what was launched inside ranges {self.nvtx!r}; budgets of time cover "
                "the union of their projected intervals, with all that ran in it."
            )
        return notes


def _taken(frame: Frame, keep: NDArray[np.bool_]) -> Frame:
    return frame if keep.all() else frame.take(keep)


def numbers(spec: str | int | None, what: str) -> frozenset[int] | None:
    """The numbers of a list with ranges, "0,2-5"; None for all. Raises UsageError."""
    if spec is None:
        return None
    chosen: set[int] = set()
    for part in str(spec).split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise UsageError(f"{spec!r} names no {what}s: write numbers and ranges, as 0,2-5")
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < MOST_NUMBERS:
            raise UsageError(
                f"{part.strip()!r} names no {what}s: a range goes up, to {MOST_NUMBERS - 1} at most"
            )
        chosen.update(range(first, last + 1))
    return frozenset(chosen)


def _time(value: str | int | None) -> int | None:
    return None if value is None else parse_time_ns(value)
