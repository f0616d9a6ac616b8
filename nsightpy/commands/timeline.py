"""timeline: what every rank and device did, on one clock, as tracks of lanes of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Unpack

from nsightpy.analysis.iterations.steady import Chosen
from nsightpy.analysis.time_budget import places_of
from nsightpy.analysis.timeline.lanes import call_lanes, operator_lanes, range_lanes, stream_lanes
from nsightpy.errors import MissingDataError, ReportError, UsageError
from nsightpy.frames import Frame
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.query.timeline_clock import Clocks, clocks_of
from nsightpy.query.timeline_counters import counters_of
from nsightpy.readers.extent import bounds_of
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.report_sets.report_files import natural
from nsightpy.reports.system import SystemReport
from nsightpy.results import rank_order
from nsightpy.results.tracks import Lane, Mark, Place, Timeline, Track
from nsightpy.units import listed

_SPAN = ("start_ns", "end_ns")
_PLACED = (*_SPAN, "pid", "device")
_STREAM = (*_PLACED, "stream", "correlation_id")
_SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_BYTES = ("bytes", "source_memory", "target_memory")
_CALL = (*_SPAN, "pid", "tid", "correlation_id", "name", "event_class")
_OPERATOR = (*_SPAN, "pid", "tid", "name")
_RANGE = (*_SPAN, "pid", "tid", "name", "domain")


@dataclass(frozen=True, slots=True)
class _Survey:
    """The places of one report and the bounds of what they did, in its own time."""

    places: tuple[tuple[int, int | None], ...]
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class _Wanted:
    """What is read of every report."""

    scope: Scope
    detail: bool
    calls: bool
    counters: bool
    communication: tuple[str, ...]
    start_ns: int | None
    end_ns: int | None


@command_function
def timeline(
    reports: Paths,
    *,
    detail: bool = True,
    calls: bool = True,
    counters: bool = True,
    communication: Iterable[str] = (),
    **common: Unpack[Common],
) -> Timeline:
    """The timeline of one or many reports; its tracks are read when they are asked for.

    Times are those of the first report, ns; from_time and to_time are given in them, or the window
    is that of the `iteration`s, as nsightpy.iterations counts them. `detail` adds grids, sizes
    and launches, with it `calls` the API calls, `counters` live memory and GPU metrics. Raises
    MissingDataError when nothing happened.
    """
    request = Request.of(reports, on_common_clock=False, **common)
    chosen = request.scope.iteration
    # the window is cut out of the picture, so that what crosses its edges is drawn, too
    scope = replace(request.scope, iteration=None)
    mapped = request.map(partial(_survey_of, scope=scope), ranked=True)
    repeated = request.ranks.repeated
    placed = _placed(pair for pair in mapped.results if pair[0].path not in repeated)
    if not any(survey.end_ns > survey.start_ns for _, survey in placed):
        what = listed(request.ranks.inputs)
        narrowed = scope.ranks is not None or scope.devices is not None
        hint = "check --rank and --device." if narrowed else "nsightpy info says what was recorded."
        raise MissingDataError(what, "holds no GPU work: there is nothing to draw", hint)
    places = tuple(place for place, _ in placed)
    clocks = clocks_of(request.ranks, places)
    bounds = [clocks.aligned(place, survey.start_ns, survey.end_ns) for place, survey in placed]
    window = _window(request, clocks, places, chosen)
    wanted = _Wanted(scope, detail, calls, counters and detail, tuple(communication), *window)
    reports_by_path = {str(report.path): report for report, _ in mapped.results}
    ordered = [reports_by_path[path] for path in dict.fromkeys(place.report for place in places)]
    notes = list(
        dict.fromkeys((*request.ranks.notes, *request.said, *clocks.notes, *_scope_notes(scope)))
    )
    skip = request.ranks.on_error == "skip" and len(ordered) > 1
    return Timeline(
        places=places,
        start_ns=min(b[0] for b in bounds) if window[0] is None else window[0],
        end_ns=max(b[1] for b in bounds) if window[1] is None else window[1],
        clock=clocks.caption,
        tracks=partial(_tracks, ordered, clocks, wanted, places, notes if skip else None),
        earliest=partial(_earliest, ordered, clocks, places),
        inputs=request.ranks.inputs,
        notes=notes,
        iterations=partial(_iterations, request, clocks, places, window, notes),
    )


def _window(
    request: Request, clocks: Clocks, places: tuple[Place, ...], chosen: Chosen | None
) -> tuple[int | None, int | None]:
    """The stretch of time that is drawn, on the clock of the picture; None: to the end."""
    window = (request.scope.from_ns, request.scope.to_ns)
    if chosen is None:
        return window
    if window != (None, None):
        raise UsageError("--iteration already says from when to when: leave out --from, --to")
    from nsightpy.query.timeline_iterations import iteration_window

    return iteration_window(request, clocks, places, chosen)


def _iterations(
    request: Request,
    clocks: Clocks,
    places: tuple[Place, ...],
    window: tuple[int | None, int | None],
    notes: list[str],
) -> tuple[Mark, ...]:
    """Iterations as marks; a report in which they cannot be looked for has none."""
    from nsightpy.query.timeline_iterations import iteration_marks

    try:
        return iteration_marks(request, clocks, places, window)
    except ReportError as error:
        notes.append(f"No iterations are marked: {error}")
        return ()


def _scope_notes(scope: Scope) -> list[str]:
    if scope.nvtx is None:
        return []
    return [f"Of the GPU's work only what was launched inside ranges {scope.nvtx!r}."]


def _placed(
    surveys: Iterable[tuple[SystemReport, _Survey | None]],
) -> list[tuple[Place, _Survey]]:
    """Every place with its report's survey, in the order of the picture."""
    placed = [
        (
            Place(str(report.path), report.session.host, pid, _rank(report, pid), device),
            survey,
        )
        for report, survey in surveys
        if survey is not None
        for pid, device in survey.places
    ]
    return sorted(placed, key=lambda pair: _order(pair[0]))


def _survey_of(report: SystemReport, *, scope: Scope) -> _Survey | None:
    """The places of a report inside the scope; None when there are none."""
    scope = replace(scope, from_ns=None, to_ns=None)
    if scope.ranks is None and scope.devices is None and scope.nvtx is None:
        extent = report.extent
        gpu = (extent.start_ns, extent.end_ns)
        places: tuple[tuple[int, int | None], ...] = extent.places
    else:
        columns = tuple(dict.fromkeys((*_PLACED, *scope.columns)))
        frame = Frame.concatenate(
            [
                scope.narrow(report, report.frame(name, columns))
                for name in ("kernels", "memory_operations", "graph_launches")
            ]
        )
        gpu = bounds_of([frame]) or (None, None)
        places = tuple(places_of(frame))
    if gpu[0] is not None and gpu[1] is not None:
        return _Survey(places, gpu[0], gpu[1])
    if scope.devices is not None:
        return None
    pids = [pid for pid in report.pids if scope.ranks is None or _rank(report, pid) in scope.ranks]
    host = report.bounds(gpu=False)
    return None if host is None else _Survey(tuple((pid, None) for pid in pids), *host)


def _rank(report: SystemReport, pid: int) -> int | None:
    return report.rank_of(pid)[0]


def _earliest(reports: Sequence[SystemReport], clocks: Clocks, places: Sequence[Place]) -> int:
    bounds = {str(report.path): report.bounds(gpu=True) for report in reports}
    starts = (
        clocks.aligned(place, extent[0])[0] for place in places if (extent := bounds[place.report])
    )
    return min(starts, default=0)


def _order(place: Place) -> tuple[Any, ...]:
    """Ranks ascending, unknown ones last, then reports, processes and devices."""
    return (*rank_order(place.rank), natural(place.report), place.pid, place.device or 0)


def _tracks(
    reports: Sequence[SystemReport],
    clocks: Clocks,
    wanted: _Wanted,
    places: Sequence[Place],
    notes: list[str] | None,
) -> Iterator[Track]:
    """The tracks, read one report at a time; one that fails goes to the notes, if there are any."""
    for report in reports:
        mine = [place for place in places if place.report == str(report.path)]
        try:
            streams, hosts = _lanes(report, wanted)
            counters = counters_of(report, wanted.scope) if wanted.counters else []
        except ReportError as error:
            if notes is None:
                raise
            notes.append(error.left_out)
            continue
        finally:
            report.close()
        for place in mine:
            move = partial(clocks.move, place)
            lanes = [
                clocks.joined(place, lane)
                for pid, device, lane in streams
                if (pid, device) == _key(place)
            ]
            if place == next(other for other in mine if other.pid == place.pid):
                lanes += [lane for pid, lane in hosts if pid == place.pid]
            moved = (lane.moved(move).within(wanted.start_ns, wanted.end_ns) for lane in lanes)
            shifted = (
                counter.moved(move).within(wanted.start_ns, wanted.end_ns)
                for pid, device, counter in counters
                if (pid, device) == _key(place)
            )
            yield Track(
                place,
                tuple(lane for lane in moved if len(lane)),
                tuple(counter for counter in shifted if len(counter.times)),
            )


def _key(place: Place) -> tuple[int, int | None]:
    return place.pid, place.device


def _lanes(
    report: SystemReport, wanted: _Wanted
) -> tuple[list[tuple[int, int, Lane]], list[tuple[int, Lane]]]:
    """The lanes of one report, in its own time: streams by device, host threads by process."""
    scope = replace(wanted.scope, from_ns=None, to_ns=None)

    def frame(name: str, columns: tuple[str, ...], more: tuple[str, ...] = ()) -> Frame:
        return scope.narrow(report, report.frame(name, (*columns, *more)))

    def host_frame(name: str, columns: tuple[str, ...]) -> Frame:
        return scope.within(report, report.frame(name, columns))

    full = wanted.detail
    calls = host_frame("api_calls", _CALL) if full and wanted.calls else None
    streams = stream_lanes(
        frame("kernels", _STREAM, ("name", *_SHAPE) if full else ("name",)),
        frame("memory_operations", _STREAM, ("operation", *(_BYTES if full else ()))),
        frame("graph_launches", _STREAM, ("graph_id",) if full else ()),
        calls,
        wanted.communication,
    )
    hosts = range_lanes(host_frame("nvtx_ranges", _RANGE))
    if full:
        hosts += operator_lanes(host_frame("operators", _OPERATOR))
    return streams, hosts + (call_lanes(calls, streams) if calls is not None else [])
