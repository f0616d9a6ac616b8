"""The tracks of a timeline, read one report at a time: lanes and counters of each device."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.memory.allocations import usages
from nsightpy.analysis.timeline.lanes import call_lanes, host_lanes, stream_lanes
from nsightpy.analysis.timeline.marks import Collectives, with_collectives
from nsightpy.errors import ReportError
from nsightpy.frames import Frame, Ints
from nsightpy.query import Parts, Scope, SystemReport
from nsightpy.query.device_time import memory_events
from nsightpy.query.sampled_metrics import SHARES, gpus_of
from nsightpy.results.tracks import Counter, Lane, Owner, Track

_SPAN = ("start_ns", "end_ns")
_STREAM = (*_SPAN, "pid", "device", "stream", "correlation_id")
_SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_BYTES = ("bytes", "source_memory", "target_memory")
_CALL = (*_SPAN, "pid", "tid", "correlation_id", "name", "event_class")
_OPERATOR = (*_SPAN, "pid", "tid", "name")
_RANGE = (*_SPAN, "pid", "tid", "name", "domain")

# Streams by process and device, host threads by process, counters by process and device.
Lanes: TypeAlias = tuple[
    list[tuple[int, int, Lane]], list[tuple[int, Lane]], list[tuple[int, int, Counter]]
]
BYTES, PER_CENT = "bytes", "%"
_SHARE = re.compile("|".join(SHARES.values()))


def at_all_times(scope: Scope) -> Scope:
    """The same part of the ranks, devices and ranges: what crosses the window is drawn, too."""
    return replace(scope, from_ns=None, to_ns=None, iteration=None)


@dataclass(frozen=True)
class TrackReader:
    """Reads the tracks of some reports, whole events of ranks and devices in scope.

    `window`: the stretch of time on the common clock, None to the end; `notes` gets what failed.
    """

    parts: Parts[Any]
    owners: Sequence[Owner]
    communication: tuple[str, ...]
    collectives: Collectives
    window: tuple[int | None, int | None]
    notes: list[str]

    @property
    def reports(self) -> dict[str, SystemReport]:
        """The reports by path, in the order of their owners."""
        by_path = {str(report.path): report for report, _ in self.parts.results}
        return {owner.report: by_path[owner.report] for owner in self.owners}

    def tracks(self, detail: bool) -> Iterator[Track]:
        """The tracks; with `detail` grids, sizes, launches, API calls, operators and counters."""
        for path, report in self.reports.items():
            owners = [owner for owner in self.owners if owner.report == path]
            try:
                lanes = self._lanes(report, detail)
            except ReportError as error:
                if self.parts.ranks.on_error == "raise" or len(self.reports) == 1:
                    raise
                self.notes.append(error.left_out)
                continue
            finally:
                report.close()
            seen: set[int] = set()
            for owner in owners:
                yield self._track(owner, lanes, is_first=owner.pid not in seen)
                seen.add(owner.pid)

    def earliest(self) -> int:
        """A time that is not later than any event."""
        bounds = {path: report.bounds() for path, report in self.reports.items()}
        starts = (
            self.parts.clock.moment(owner.report, owner.pid, bound[0])
            for owner in self.owners
            if (bound := bounds[owner.report])
        )
        return min(starts, default=0)

    def _track(self, owner: Owner, lanes: Lanes, *, is_first: bool) -> Track:
        """What was read of one device; on the first one of a process its host threads, too."""
        streams, hosts, counters = lanes
        move = partial(self.parts.clock.aligned, owner.report, owner.pid)
        key = (owner.pid, owner.device)
        own = [lane for *of, lane in streams if tuple(of) == key]
        lanes_shown = [with_collectives(lane, owner, self.collectives) for lane in own]
        lanes_shown += [lane for pid, lane in hosts if is_first and pid == owner.pid]
        moved = (lane.moved(move).within(*self.window) for lane in lanes_shown)
        counted = (c.moved(move).within(*self.window) for *of, c in counters if tuple(of) == key)
        kept = tuple(counter for counter in counted if len(counter.times))
        return Track(owner, tuple(lane for lane in moved if len(lane)), kept)

    def _lanes(self, report: SystemReport, detail: bool) -> Lanes:
        """The lanes of one report, in its own time."""
        scope = at_all_times(self.parts.scope)

        def gpu_frame(name: str, *columns: str) -> Frame:
            return scope.read(report, name, (*_STREAM, *columns))

        def host_frame(name: str, columns: tuple[str, ...]) -> Frame:
            return scope.within(report, report.frame(name, columns))

        calls = host_frame("api_calls", _CALL) if detail else None
        streams = stream_lanes(
            gpu_frame("kernels", "name", *(_SHAPE if detail else ())),
            gpu_frame("memory_operations", "operation", *(_BYTES if detail else ())),
            gpu_frame("graph_launches", *(("graph_id",) if detail else ())),
            calls,
            self.communication,
        )
        hosts = host_lanes(host_frame("nvtx_ranges", _RANGE), "NVTX")
        if not detail:
            return streams, hosts, []
        hosts += host_lanes(host_frame("operators", _OPERATOR), "operators")
        hosts += call_lanes(calls, streams) if calls is not None else []
        return streams, hosts, [*_memory(report, scope), *_metrics(report)]


def _memory(report: SystemReport, scope: Scope) -> Iterator[tuple[int, int, Counter]]:
    """Live bytes of each kind of memory; the definition is that of memory-usage."""
    if not report.has_memory_usage:
        return
    for pid, device, memory, _, used in usages(memory_events(report, scope)):
        label = f"{memory} memory, live".lstrip()
        yield pid, device, Counter(label, BYTES, *_changes(used.times, used.live[1:]))


def _metrics(report: SystemReport) -> Iterator[tuple[int, int, Counter]]:
    """The sampled metrics of `breakdown --bins`, in % of their peak, each sample until the next.

    They are of a GPU, whoever used it: they are given once, to the first process on it.
    """
    samples = report.frame("gpu_metrics")
    samples = samples.take(samples.labels("metric").where(_SHARE.fullmatch))
    if not samples.rows:
        return
    owners: dict[int, tuple[int, int]] = {}
    for owner, gpu in sorted(gpus_of(report).items()):
        owners.setdefault(gpu, owner)
    groups = group_by(samples, ("metric", "gpu_id"))
    for code, (name, gpu) in enumerate(cast(Sequence[tuple[str, int]], groups.keys)):
        own = samples.take(groups.codes == code)
        if gpu in owners and own.rows > 1:
            times, values = own.ints("time_ns"), own.ints("value")
            # the last one lasts as long as others do
            times = np.append(times, times[-1] + int(np.median(np.diff(times))))
            label = name.removesuffix(" [Throughput %]")
            yield *owners[gpu], Counter(label, PER_CENT, *_changes(times, np.append(values, 0)))


def _changes(times: Ints, values: Ints) -> tuple[Ints, Ints]:
    """The moments at which a quantity changes."""
    keep = np.append(True, values[1:] != values[:-1]) if len(values) else np.empty(0, dtype=bool)
    return times[keep], values[keep]
