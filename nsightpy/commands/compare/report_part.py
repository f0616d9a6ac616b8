"""What one report contributes to the summary of its run: units of each device, and what ran."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.comparison.device_units import UnitWorks, unit_times, unit_works
from nsightpy.analysis.intervals import Spans, owners
from nsightpy.analysis.iterations.steady import Iterations
from nsightpy.analysis.iterations.thresholds import REPEATS
from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.nvtx.projection import (
    CALL_COLUMNS,
    OPERATION_COLUMNS,
    RANGE_COLUMNS,
    launched,
    project,
)
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.analysis.thresholds import MOST
from nsightpy.analysis.time_budget import activity
from nsightpy.analysis.work_graph.launched_work import LaunchedWork, Work
from nsightpy.commands.info import used_gpus
from nsightpy.frames import Frame, Ints, Labels
from nsightpy.names import without_numbers
from nsightpy.query import Scope, SystemReport
from nsightpy.query.device_time import (
    MEMORY_COLUMNS,
    followed_work,
    host_events,
    idle_intervals,
    rank_budgets,
    read_work,
)
from nsightpy.query.rank_alignment import RankPart, collective_part
from nsightpy.query.steps import places_in
from nsightpy.results.notes import Said, texts

# A process and one of its devices; starts and ends.
Device = tuple[int, int]
Times = tuple[Ints, Ints]
# Its ranges are calls of the library, not parts of a program.
LIBRARY_DOMAINS = ("NCCL",)
# So many launches of a unit are kept in their order.
MOST_LAUNCHES = 3_000


@dataclass(frozen=True)
class DeviceUnits:
    """The units [start, end) of a device of a process: their parts by row, and what ran in them.

    A window is one unit, which may have holes. `order`: what the unit of median length launched.
    """

    device: Device
    start: Ints
    end: Ints
    parts: Ints
    ran: UnitWorks
    order: tuple[str, ...]
    ranges: UnitWorks | None


@dataclass(frozen=True)
class ReportPart:
    """One report's units by kind (see UNITS); its collectives; what it ran on."""

    units: Mapping[str, Sequence[DeviceUnits]]
    collectives: RankPart | None
    circumstances: Mapping[str, set[str]]
    notes: tuple[str, ...] = ()


def report_part(report: SystemReport, scope: Scope) -> ReportPart:
    """Everything that a comparison needs of one report."""
    work = read_work(report, scope, MEMORY_COLUMNS)
    communicates = is_communication(work.kernels.labels("name"))
    recorded = report.calls.recorded
    followed = followed_work(report, work, communicates) if recorded else None
    budgets = rank_budgets(report, scope, work)
    windows = {row.place: row.budget.window for row in budgets if len(row.budget.window)}
    iterations = scope.iterations(report) if windows else {}
    kind, repeated = _repeated(iterations, {pid for pid, _ in windows}, scope)
    hulls = {}
    for device, window in windows.items():  # from the first to the last of what is divided
        edges = [int(window.starts[0]), int(window.ends[-1])]
        if device[0] in repeated:
            edges += [int(repeated[device[0]][0][0]), int(repeated[device[0]][1][-1])]
        hulls[device] = Spans.of(min(edges), max(edges))
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    gaps = {} if followed is None else idle_intervals(followed, hulls, host_events(report, ranges))
    ran = _ran(report, scope, work, followed)
    narrowed = scope.narrow(report, ran)
    spans = _projected(report, work, ranges) if recorded else None
    units: dict[str, list[DeviceUnits]] = defaultdict(list)
    for device, window in windows.items():
        pid, own = device[0], {"pid": device[0], "device": device[1]}
        kernels, *others = (frame.at(**own) for frame in work)
        did = activity(kernels, is_communication(kernels.labels("name")), *others)
        # ranges are the process's own, and counted on the first of its devices
        first = device == min(other for other in windows if other[0] == pid)
        in_process = spans.at(pid=pid) if spans is not None and first else None
        times = window.starts, window.ends
        parts = unit_times(*times, did, gaps.get(device)).sum(axis=0, keepdims=True)
        units["window"].append(_units(device, times, parts, narrowed.at(**own), in_process))
        if kind:
            parts = unit_times(*repeated[pid], did, gaps.get(device))
            units[kind].append(_units(device, repeated[pid], parts, ran.at(**own), in_process))
    collectives = collective_part(report) if communicates.any() else None
    about = circumstances_of(report, list(windows), iterations if kind == "step" else {})
    notes: list[Said] = []
    if windows and not recorded:
        notes.append("Idle time has no causes: the capture holds no CUDA API calls.")
    if kind != "step":
        notes += [note for process in iterations.values() for note in process.notes][:1]
    return ReportPart(units, collectives, about, texts(notes, report.kind))


def circumstances_of(
    report: SystemReport, devices: Sequence[Device], iterations: Mapping[int, Iterations]
) -> dict[str, set[str]]:
    """What a report says that it ran on and with; no names of hosts and users."""
    clocks = report.frame("devices").ints("clock_hz").tolist()
    return {
        "GPU": set(used_gpus(report, devices)),
        "maximum SM clock": {f"{clock / 1e6:.0f} MHz" for clock in clocks if clock > 0},
        "driver": {report.session.driver},
        "profiler": {report.tool_version},
        "iterations by": {process.source for process in iterations.values()},
    }


def _repeated(
    iterations: Mapping[int, Iterations], pids: set[int], scope: Scope
) -> tuple[str, Mapping[int, Times]]:
    """What repeats in all processes, steps before anything else: its kind, and when by process."""
    for kind, times_in in (("step", _steps), ("repetition", _repetitions)):
        times = {
            pid: found
            for pid in pids & iterations.keys()
            if (found := times_in(iterations[pid], scope)) is not None
        }
        if pids and times.keys() == pids:
            return kind, times
    return "", {}


def _steps(iterations: Iterations, scope: Scope) -> Times | None:
    """Starts and ends of the steps of a process; None where it has none."""
    chosen = scope.iteration
    rows = iterations.steady if chosen is None else places_in(iterations, chosen)
    if len(rows) < (REPEATS if chosen is None else 1):
        return None
    return iterations.start[rows], iterations.end[rows]


def _repetitions(iterations: Iterations, scope: Scope) -> Times | None:
    """The same of what is no step and repeats in most of the work; the capture cuts the last."""
    others = [
        other
        for other in iterations.others
        if not other.role and len(other) > REPEATS and other.coverage >= MOST
    ]
    level = max(others, key=lambda other: other.coverage, default=None)
    if scope.iteration is not None or level is None or not (level.end > level.start).all():
        return None
    return level.start[:-1], level.end[:-1]


def _ran(report: SystemReport, scope: Scope, work: Work, followed: LaunchedWork | None) -> Frame:
    """Kernels and graphs traced as a whole, by name, and when each was launched or else began."""
    columns = tuple(name for name in work.kernels if name != "name")
    graphs = scope.whole_time.within(report, report.frame("graph_launches", (*columns, "graph_id")))
    names = Labels.of(f"CUDA graph {number}" for number in graphs.ints("graph_id").tolist())
    named = Frame({**{name: graphs[name] for name in columns}, "name": names})
    ran = Frame.concatenate([work.kernels, named])
    launch = begun = ran.ints("start_ns")
    if followed is not None:
        first = work.kernels.rows
        launch = np.delete(followed.launch, slice(first, first + work.operations.rows))
    return Frame({**ran, "launch_ns": np.where(launch == NO_TIME, begun, launch)})


def _projected(report: SystemReport, work: Work, ranges: Frame) -> Frame | None:
    """The GPU time that code ranges span; None without ranges."""
    if not ranges.rows:
        return None
    operations = Frame.concatenate([part.select(OPERATION_COLUMNS) for part in work])
    projection = project(ranges, launched(operations, report.frame("api_calls", CALL_COLUMNS)))
    rows = projection.found & ~ranges.labels("domain").equals(LIBRARY_DOMAINS)
    times = {"start_ns": projection.start[rows], "end_ns": projection.end[rows]}
    names = folded(ranges.labels("name").take(rows))
    return Frame({"pid": ranges.ints("pid")[rows], "name": names, **times})


def _units(
    device: Device, times: Times, parts: Ints, ran: Frame, spans: Frame | None
) -> DeviceUnits:
    """The units of a device with what ran in them; in a window, which is one unit, all of it."""
    count, begun = len(parts), ran.ints("start_ns")
    owner = owners(*times, begun) if count == len(times[0]) else np.zeros(ran.rows, dtype=np.int64)
    durations = parts.sum(axis=1)
    middle = np.argsort(durations, kind="stable")[(count - 1) // 2]
    inside = ran.take(owner == middle)
    first = np.argsort(inside.ints("launch_ns"), kind="stable")[:MOST_LAUNCHES]
    ranges = None
    if spans is not None:
        within = np.minimum(owners(*times, spans.ints("start_ns")), count - 1)
        # names that several units number, each once, without the numbers
        labels = spans.labels("name")
        often = np.bincount(labels.codes[within >= 0], minlength=len(labels.values)).tolist()
        once = [name for name, times_in in zip(labels.values, often, strict=True) if times_in == 1]
        numbered = Counter(map(without_numbers, once))
        plain = {name: text for name in once if numbered[text := without_numbers(name)] > 1}
        names = labels.renamed(lambda name: plain.get(name, name))
        ranges = unit_works(names, within, spans.ints("end_ns") - spans.ints("start_ns"), count)
    works = unit_works(ran.labels("name"), owner, ran.ints("end_ns") - begun, count)
    order = tuple(inside.labels("name").take(first))
    return DeviceUnits(device, *times, parts, works, order, ranges)
