"""timeline: what every rank and device did, on one clock, as tracks of lanes of events."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

from nsightpy.analysis.clock_alignment.clocks import UNKNOWN
from nsightpy.analysis.iterations.steady import Iterations
from nsightpy.analysis.time_budget import places_of
from nsightpy.analysis.timeline.marks import (
    METHODS,
    caption_of,
    collectives_of,
    finding_marks,
    iteration_marks,
    path_marks,
)
from nsightpy.analysis.timeline.picture import picture
from nsightpy.analysis.work_graph.critical_path import legs
from nsightpy.commands.findings import command as checks
from nsightpy.commands.timeline.tracks import TrackReader, at_all_times
from nsightpy.errors import MissingDataError, NsightpyError, UsageError
from nsightpy.frames import GPU_FRAMES
from nsightpy.query import Communication, Option, Parts, Question, Request, Scope, answers
from nsightpy.query.command import command
from nsightpy.query.rank_alignment import CommonClock, alignment_of
from nsightpy.query.replayed import Replayed, path_question
from nsightpy.query.steps import none_of, places_in
from nsightpy.readers.activity import bounds_of
from nsightpy.reports.system import SystemReport
from nsightpy.results import rank_order
from nsightpy.results.notes import texts
from nsightpy.results.tracks import Mark, Owner, Timeline
from nsightpy.units import listed

# In this order in what is drawn.
_MARKS = ("findings", "iterations", "critical path")
_RENDER = "nsightpy.render.timeline"
_PLACED = ("start_ns", "end_ns", "pid", "device")


@dataclass(frozen=True, slots=True)
class Survey:
    """The owners of one report and the bounds of what they did, in its own time.

    `iterations` by process, where some of them were chosen.
    """

    owners: tuple[tuple[int, int], ...]
    start_ns: int
    end_ns: int
    iterations: dict[int, Iterations] = field(default_factory=dict)


@command(
    picture=f"{_RENDER}.plot:timeline_figure",
    files={
        ".html": f"{_RENDER}.page:write_page",
        ".json": f"{_RENDER}.chrome_trace:write_chrome_trace",
        ".json.gz": f"{_RENDER}.chrome_trace:write_packed_trace",
        ".pftrace": f"{_RENDER}.perfetto:write_perfetto",
    },
)
def timeline(
    *,
    findings: Annotated[
        bool, Option("No findings and no critical path in pages and traces.")
    ] = True,
    communication: Communication = (),
) -> Question[Timeline]:
    """The file's name says what is made: .png, .svg, .pdf (a picture), .html (one offline page to
    zoom, pan and search in), .json, .json.gz (Chrome trace events), .pftrace (Perfetto). Times,
    --from and --to too, are those of the first report. --iteration draws the window of those
    iterations.
    """
    drawn = partial(_drawn, findings=findings, communication=tuple(communication))
    return Question(_survey, drawn, identified=True, clock=True)


def _survey(report: SystemReport, scope: Scope) -> Survey | None:
    """The owners of a report in scope; None when there are none."""
    chosen, scope = scope.iteration, at_all_times(scope)
    frames = [scope.read(report, name, _PLACED) for name in GPU_FRAMES]
    bounds = bounds_of(frames)
    if bounds is None:
        return None
    iterations = {} if chosen is None else scope.iterations(report)
    return Survey(tuple(places_of(*frames)), *bounds, iterations)


def _drawn(
    parts: Parts[Survey | None], *, findings: bool, communication: tuple[str, ...]
) -> Timeline:
    """The timeline of the reports; their tracks are read when they are asked for."""
    request, clock, scope = parts.request, parts.clock, parts.scope
    placed = _placed(parts)
    if not any(survey.end_ns > survey.start_ns for _, survey in placed):
        problem = "holds no GPU work: there is nothing to draw"
        hint = "`nsightpy info` says what was recorded; check --rank and --device."
        raise MissingDataError(listed(parts.ranks.inputs), problem, hint)
    owners = tuple(owner for owner, _ in placed)
    window = _window(request, clock, placed)
    notes = list(texts([*parts.ranks.notes, *clock.notes], request.kind))
    if scope.nvtx is not None:
        notes.append(f"Of the GPU's work only what was launched inside ranges {scope.nvtx!r}.")
    alone = len(owners) == len(parts.ranks) == 1 or not parts.ranks.one_job
    collectives = {} if alone else collectives_of(alignment_of(parts.ranks))
    reader = TrackReader(parts, owners, communication, collectives, window, notes)
    moments = [
        clock.moment(owner.report, owner.pid, time_ns)
        for owner, survey in placed
        for time_ns in (survey.start_ns, survey.end_ns)
    ]
    marks = partial(_marks, request, reader, communication)
    drawn = Timeline(
        owners=owners,
        start_ns=min(moments) if window[0] is None else window[0],
        end_ns=max(moments) if window[1] is None else window[1],
        clock=_caption(request, owners),
        tracks=reader.tracks,
        earliest=reader.earliest,
        inputs=parts.ranks.inputs,
        notes=notes,
        marks=partial(marks, _MARKS if findings else _MARKS[1:2]),
        path=partial(marks, _MARKS[2:] if findings else ()),
    )
    return replace(drawn, picture=partial(picture, drawn))


def _placed(parts: Parts[Survey | None]) -> list[tuple[Owner, Survey]]:
    """Every owner with its report's survey, in the order of the picture.

    Ranks ascending, unknown ones last; those of one rank as reports, processes and devices come.
    """
    repeated = parts.ranks.repeated
    placed = [
        (Owner(str(report.path), report.session.host, pid, report.rank_of(pid)[0], device), survey)
        for report, survey in parts.results
        if survey is not None and report.path not in repeated
        for pid, device in survey.owners
    ]
    return sorted(placed, key=lambda pair: rank_order(pair[0].rank))


def _caption(request: Request, owners: Sequence[Owner]) -> str:
    """How the ranks were brought together."""
    units = {(owner.report, owner.pid) for owner in owners}
    if len(units) == 1:
        return "the report's own clock"
    if not request.ranks.one_job:
        return METHODS[UNKNOWN]
    fits = alignment_of(request.ranks).fits
    return caption_of([fit for fit in fits if (fit.report, fit.pid) in units])


def _window(
    request: Request, clock: CommonClock, placed: Sequence[tuple[Owner, Survey]]
) -> tuple[int | None, int | None]:
    """The stretch of time that is drawn, on the clock of all ranks; None: to the end.

    Raises MissingDataError where no rank has any of the wanted iterations.
    """
    chosen, window = request.scope.iteration, (request.scope.from_ns, request.scope.to_ns)
    if chosen is None:
        return window
    if window != (None, None):
        raise UsageError("--iteration already says from when to when: leave out --from, --to")
    units = {(owner.report, owner.pid): survey.iterations for owner, survey in placed}
    found = [(*unit, by_pid[unit[1]]) for unit, by_pid in units.items() if unit[1] in by_pid]
    starts, ends = [], []
    for report, pid, iterations in found:
        if len(rows := places_in(iterations, chosen)):
            starts.append(clock.moment(report, pid, int(iterations.start[rows[0]])))
            ends.append(clock.moment(report, pid, int(iterations.end[rows[-1]])))
    if not starts:
        searched = [iterations for _, _, iterations in found]
        raise none_of(listed(request.ranks.inputs), request.kind, searched, chosen)
    return min(starts), max(ends)


def _marks(
    request: Request, reader: TrackReader, communication: tuple[str, ...], wanted: Sequence[str]
) -> tuple[Mark, ...]:
    """The wanted marks; why there are none is noted."""
    iterations = partial(_on_one_clock, reader=reader)
    questions: dict[str, Question[Any]] = {
        "findings": checks.findings.question(communication=communication),
        "iterations": Question(_iterations, iterations, identified=True),
        "critical path": path_question(partial(_path, owners=reader.owners), communication),
    }
    try:
        found = answers(request, [questions[name] for name in wanted])
    except NsightpyError as error:
        found = [error] * len(wanted)
    marks: list[Mark] = []
    for name, answer in zip(wanted, found, strict=True):
        if isinstance(answer, NsightpyError):
            reader.notes.append(f"Not marked: {name}: {answer}")
        else:
            marks += finding_marks(reader.owners, answer) if name == "findings" else answer
    return tuple(marks)


def _path(replayed: Replayed, *, owners: Sequence[Owner]) -> list[Mark]:
    """The critical path of the steady state, or of the drawn window; nothing without one."""
    found, path, alignment = replayed.found, replayed.path, replayed.alignment
    if found is None or path is None:
        return []
    later = alignment.base_ns - CommonClock.of(alignment).zero_ns if alignment is not None else 0
    moved = [(unit, start + later, end + later) for unit, start, end in legs(found.graph, path)]
    return path_marks(owners, found.graph.work.units, moved, replayed.path_text or "")


def _iterations(report: SystemReport, scope: Scope) -> dict[int, Iterations]:
    """The iterations of each process of the whole capture, in its own time."""
    return at_all_times(scope).iterations(report)


def _on_one_clock(parts: Parts[dict[int, Iterations]], reader: TrackReader) -> list[Mark]:
    """The iterations of the drawn processes as marks, those that the window holds some of."""
    units = {(owner.report, owner.pid) for owner in reader.owners}
    processes, clock = [], reader.parts.clock
    for report, by_pid in parts.results:
        for pid, found in by_pid.items():
            if (path := str(report.path), pid) in units:
                start, end = (clock.aligned(path, pid, t) for t in (found.start, found.end))
                processes.append(replace(found, start=start, end=end))
    low, high = reader.window
    return [
        mark
        for mark in iteration_marks(processes)
        if (low is None or mark.end_ns is None or mark.end_ns > low)
        and (high is None or mark.start_ns is None or mark.start_ns < high)
    ]
