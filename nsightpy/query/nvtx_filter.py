"""What `--nvtx RANGE[@DOMAIN]` leaves of a report: what the named ranges launched or hold."""

import difflib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.intervals import NOTHING, Spans, measure_before, spans_of, union_of
from nsightpy.analysis.nvtx import membership
from nsightpy.analysis.nvtx.membership import as_launched_by, waiting_threads, windows
from nsightpy.analysis.nvtx.projection import CALL_COLUMNS, OPERATION_COLUMNS, RANGE_COLUMNS, Place
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.errors import MissingDataError
from nsightpy.frames import GPU_FRAMES, Frame, Ints
from nsightpy.query.capture_advice import CUDA_NVTX, not_recorded
from nsightpy.reports.system import SystemReport
from nsightpy.results.notes import Said, as_note

# So many names are proposed for one that is not there.
CLOSE = 5


@dataclass
class NamedRanges:
    """The ranges of one report that a name means, those that stay on one thread."""

    report: SystemReport
    ranges: Frame

    @cached_property
    def calls(self) -> Frame:
        return self.report.frame("api_calls", CALL_COLUMNS)

    @cached_property
    def keys(self) -> Ints:
        """The API calls inside the ranges, by process and correlation id."""
        return membership.call_keys(self.calls, self.ranges)

    @cached_property
    def attributed(self) -> Frame:
        """Launching calls of other threads that the ranges' threads waited for, as if their own.

        Looked for among all ranges of the report, so that no call counts for two of them.
        """
        made = self.report.calls.launching()
        ranges = self.report.frame("nvtx_ranges", RANGE_COLUMNS)
        waited = as_launched_by(made, waiting_threads(made, ranges))
        return waited.take(membership.inside(waited, self.ranges))

    @cached_property
    def launches(self) -> Ints:
        """The calls whose operations belong to the ranges: made inside them, or attributed."""
        return np.union1d(self.keys, membership.launch_key(self.attributed))

    @cached_property
    def windows(self) -> dict[Place, Spans]:
        """Per process and device the union of the ranges' projected intervals, in ns."""
        operations = Frame.concatenate(
            [self.report.frame(name, OPERATION_COLUMNS) for name in GPU_FRAMES]
        )
        by_place = windows(self.ranges, operations, self.calls)
        for place, spans in windows(self.ranges, operations, self.attributed).items():
            by_place[place] = by_place.get(place, NOTHING) | spans
        return by_place

    def mask(self, frame: Frame) -> NDArray[np.bool_]:
        """Which rows belong to the ranges: launched by a call inside, or inside on the thread.

        Rows with neither launch nor thread belong when they overlap the ranges' time.
        """
        if "correlation_id" in frame and "pid" in frame:
            return membership.belongs(frame, self.keys if "tid" in frame else self.launches)
        if {"pid", "tid"} <= set(frame):
            return membership.inside(frame, self.ranges)
        if "device" in frame:
            return _overlapping(frame, union_of(self.windows.values()))
        return _overlapping(frame, spans_of(self.ranges))


def named_ranges(report: SystemReport, text: str) -> NamedRanges:
    """The ranges that `text` means in a report; found once, until the report is closed.

    Raises MissingDataError, naming similar ranges, when there is none.
    """

    def find() -> NamedRanges:
        chosen = ranges_called(report, text)
        on_thread = chosen.take(chosen.ints("tid") == chosen.ints("end_tid"))
        if on_thread.rows:
            return NamedRanges(report, on_thread)
        raise MissingDataError(
            report.path,
            f"all {chosen.rows:,} ranges {text!r} end on another thread than they began",
            "what they launched is not known; name a range of one thread.",
        )

    return report.derived(("named ranges", text), find)


def ranges_called(report: SystemReport, text: str) -> Frame:
    """The ranges that `text` means in a report. Raises MissingDataError, naming similar ones."""
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    meant = membership.named(text, ranges)
    if meant is not None:
        return ranges.take(meant.matches(ranges))
    names = folded(ranges.labels("name")).values
    near = difflib.get_close_matches(text, names, n=CLOSE, cutoff=0.4)
    similar = list(dict.fromkeys([*near, *filter(None, names)]))[:CLOSE]
    advice: Said = (
        f"similar ones: {', '.join(similar)}. `nsightpy nvtx` lists all; * stands for anything."
        if ranges.rows
        else not_recorded("the capture holds no ranges.", CUDA_NVTX)
    )
    raise MissingDataError(report.path, f"has no range {text!r}", as_note(advice).text(report.kind))


def _overlapping(frame: Frame, time: Spans) -> NDArray[np.bool_]:
    """Mask of the rows that share a moment with a set of time."""
    starts = frame.ints("start_ns")
    ends = np.maximum(frame.ints("end_ns"), starts + 1)
    hits: NDArray[np.bool_] = measure_before(time, ends) > measure_before(time, starts)
    return hits
