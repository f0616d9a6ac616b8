"""iterations: where a run repeats, what each iteration's time went to, which ones are slow."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, TypeAlias

import numpy as np

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.iterations.steady import (
    EDGE,
    WARM_UP,
    Iterations,
    SlowIteration,
    iteration_parts,
    slow_iterations,
)
from nsightpy.analysis.iterations.vocabulary import Batch, batches_of
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.analysis.time_budget import activity, places_of
from nsightpy.frames import Ints
from nsightpy.query.command import command
from nsightpy.query.engine import Parts, Question
from nsightpy.query.options import Communication, Option
from nsightpy.query.replayed import Replayed, job_of_work, replayed
from nsightpy.query.scope import Scope
from nsightpy.query.steps import places_in, work_to_search
from nsightpy.query.work_reading import Recorded, recorded
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Row, Table, rank_order
from nsightpy.results.notes import Said
from nsightpy.units import counted, format_time, group_text, listed

FIELDS = (
    Field("rank", "id", importance=1, place=1),
    Field("iteration", "id", importance=3, place=3),
    Field("start_ns", "moment", importance=5),
    Field("duration_ns", "time", importance=4),
    Field("busy_ns", "time", importance=6),
    Field("compute_ns", "time", importance=9),
    Field("exposed_communication_ns", "time", heading="exposed comm.", importance=10),
    Field("idle_ns", "time", importance=7),
    Field("source", "text"),
    Field("device", "id", importance=2, place=2),
    Field("phase", "text", own=True, importance=8, place=4),
)
# Of the steps of inference engines.
ENGINE_FIELDS = (
    Field("kind", "text", own=True, importance=3, place=4),
    Field("requests", importance=5),
    Field("tokens", importance=4),
    Field("tokens_per_s", "per s", 1, importance=4),
)
PATH = "Critical path of {}: {}."


@dataclass(frozen=True)
class DeviceIterations:
    """The iterations of one process, those wanted (`shown`), and what one of its devices, and an
    inference engine (`batches`), did in each."""

    pid: int
    device: int
    iterations: Iterations
    parts: Mapping[str, Ints]
    shown: Ints
    batches: list[Batch]
    report: str = ""
    rank: int | None = None

    @property
    def steady(self) -> Ints:
        """Which of those wanted are steady."""
        return np.intersect1d(self.iterations.steady, self.shown)


MOST_RANKS = 4  # that are listed one by one
# Of one report: its devices, why processes have no iterations, and what its work can be replayed by
# (None: not asked).
Part: TypeAlias = tuple[list[DeviceIterations], list[Said], Recorded | None]


@command(
    *FIELDS, more=ENGINE_FIELDS, picture="nsightpy.render.plots.iterations_plot:iterations_figure"
)
def iterations(
    *,
    level: Annotated[
        int | None, Option("Take this one of the levels that repeat and are listed.", "N", least=1)
    ] = None,
    communication: Communication = (),
) -> Question[Table]:
    """They are the instances of the range that --nvtx names, else of ranges that are called steps
    or hold the work, else a repeated sequence of launches; not layers, not single launches. Of a
    range that comes once the inside is searched. Where several levels repeat, a note lists them.

    An iteration lasts until host and GPU are done with it, and begins with the host's work on it
    unless the one before it is still running then. phase: warm-up, steady, or edge (cut off where
    the capture began or stopped). Iterations are those of the whole report, by their numbers;
    --from and --to leave those that are mostly between them, whole. kind, requests and tokens are
    what vLLM and SGLang say of their steps; tokens_per_s is over duration_ns.
    """
    taken = tuple(communication)
    work = partial(_part, level=level, communication=taken)
    return Question(work, partial(_with_path, communication=taken), clock=True, identified=True)


def _part(
    report: SystemReport, scope: Scope, *, level: int | None, communication: tuple[str, ...]
) -> Part:
    devices: list[DeviceIterations] = []
    why: list[Said] = []
    whole = replace(scope, from_ns=None, to_ns=None)
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    work = [whole.within(report, frame) for frame in work_to_search(report)]
    for pid, found in whole.iterations(report, level).items():
        if not len(found):
            why += [*found.notes, *_levels_note(found)]
            continue
        shown = _between(found, *scope.bounds(report))
        if not len(shown):
            why.append(f"None of the {len(found)} iterations is in the wanted time.")
        if scope.iteration is not None:
            shown = np.intersect1d(shown, places_in(found, scope.iteration))
        batches = batches_of(ranges.at(pid=pid))
        batches = batches if len(batches) == len(found) else []
        frames = [frame.at(pid=pid) for frame in work]
        for _, device in places_of(*frames):
            kernels, copies, traces = (frame.at(device=device) for frame in frames)
            is_comm = is_communication(kernels.labels("name"), communication)
            made_of = iteration_parts(found, activity(kernels, is_comm, copies, traces))
            devices.append(DeviceIterations(pid, device, found, made_of, shown, batches))
    return devices, why, recorded(report, scope) if level is None else None


def _with_path(parts: Parts[Part], *, communication: tuple[str, ...]) -> Table | Question[Table]:
    """The table with what the critical path of the iterations is made of, where that is known."""
    table = _table(parts)
    works = [(report, work) for report, (*_, work) in parts.results if work]
    if not (table.rows and works):
        return table

    def with_path(replay: Replayed) -> Table:
        path = replay.path_text if replay.chosen.of else None
        notes = () if path is None else (PATH.format(replay.looked_at, path),)
        return replace(table, notes=(*table.notes[:1], *notes, *table.notes[1:]))

    return replayed(job_of_work(parts.ranks, works), parts.scope, communication, with_path)


def _table(parts: Parts[Part]) -> Table:
    devices = [
        replace(device, report=str(report.path), rank=report.rank_of(device.pid)[0])
        for report, (found, *_) in parts.results
        for device in found
    ]
    devices.sort(key=lambda device: (*rank_order(device.rank), device.pid, device.device))
    engine = any(device.batches for device in devices)
    rows = tuple(row for device in devices for row in _rows(device, parts, engine=engine))
    why = [note for _, unfound, _ in parts.values for note in unfound]
    levels = _levels_note(devices[0].iterations) if devices else []
    notes = (*_spread_notes(devices), *_slow_notes(devices), *levels, *why)
    return Table("iterations", (*FIELDS, *ENGINE_FIELDS) if engine else FIELDS, rows, notes=notes)


def _between(whole: Iterations, low: int | None, high: int | None) -> Ints:
    """The places of the iterations of a stretch of time (ns; None: no bound).

    They have half of their time in it, or it has half of its time in them: a printed moment is
    rounded.
    """
    first = int(whole.start.min()) if low is None else low
    last = int(whole.end.max()) if high is None else high
    shared = np.minimum(whole.end, last) - np.maximum(whole.start, first)
    inside = (shared > 0) & (2 * shared >= np.minimum(whole.duration, last - first))
    return np.flatnonzero(inside | ((low, high) == (None, None)))


def _rows(device: DeviceIterations, parts: Parts[Part], *, engine: bool) -> Iterator[Row]:
    iterations = device.iterations
    compute, exposed, _, idle = device.parts.values()
    start = parts.clock.aligned(device.report, device.pid, iterations.start)
    lengths = iterations.duration
    figures = (start, lengths, lengths - idle, compute, exposed, idle)
    for number in device.shown.tolist():
        about = (iterations.source, device.device, iterations.phase[number])
        row = (device.rank, number, *(int(figure[number]) for figure in figures), *about)
        of_engine: Row = (None,) * len(ENGINE_FIELDS)
        if device.batches:
            batch, duration = device.batches[number], int(lengths[number])
            rate = batch.tokens / (duration * 1e-9) if duration else None
            of_engine = (batch.kind, batch.requests, batch.tokens, rate)
        yield (*row, *of_engine) if engine else row


def _who(devices: Sequence[DeviceIterations]) -> str:
    ranks = list(dict.fromkeys(device.rank for device in devices))
    if None in ranks:
        return f"device {group_text([device.device for device in devices])}"
    return f"rank{'s' if len(ranks) > 1 else ''} {group_text(ranks)}"


def _spread_notes(devices: Sequence[DeviceIterations]) -> list[str]:
    """The spread of the steady iterations of all processes."""
    alone = {(device.rank, device.pid): device for device in reversed(devices)}
    several = [device for device in reversed(alone.values()) if len(device.steady) > 1]
    if not several:
        return []
    every = [(device.iterations, device.steady) for device in several]
    lengths = np.concatenate([each.duration[steady] for each, steady in every])
    launches = np.concatenate([each.kernels[steady] for each, steady in every])
    phases = Counter(one.iterations.phase[number] for one in several for number in one.shown)
    others = ", ".join(f"{phases[phase]} {phase}" for phase in (WARM_UP, EDGE) if phases[phase])
    beside = f" (beside {others})" if others else ""
    usual, high = np.quantile(lengths, (0.5, 0.95)).tolist()
    text = (
        f"{_who(several)}: {counted(len(lengths), 'steady iteration')}{beside} by "
        f"{listed(dict.fromkeys(each.source for each, _ in every))}, "
        f"{counted(int(np.median(launches)), 'launch', 'launches')} each: median "
        f"{format_time(usual)}, min {format_time(int(lengths.min()))}, max "
        f"{format_time(int(lengths.max()))}, p95 {format_time(high)}."
    )
    return [text]


def _levels_note(iterations: Iterations) -> list[str]:
    """All levels on which a process repeats, for people; nothing where there is one only."""
    texts = [
        f"{number}: {len(level)} x {format_time(level.period_ns)}, {level.coverage:.0%} of the work"
        f"{' (these)' if number == iterations.level else ''}, {level.source}"
        f"{'' if level.role else f' of {level.size}'}{f' ({level.why})' if level.why else ''}"
        for number, level in enumerate(iterations.levels, 1)
    ]
    several = len(texts) > (len(iterations) > 0)
    return [f"Levels that repeat (--level chooses one): {'; '.join(texts)}."] * several


def _slow_notes(devices: Sequence[DeviceIterations]) -> Iterator[str]:
    """The slowest iterations of all, each where it is slowest, and what grew in them."""
    slow = [
        (one, device)
        for device in devices
        for one in slow_iterations(device.steady, device.iterations.duration, device.parts)
    ]
    slowest: dict[int, tuple[SlowIteration, DeviceIterations]] = {}
    for one, device in sorted(slow, key=lambda each: -each[0].ratio):
        slowest.setdefault(one.iteration, (one, device))
    for one, device in [*slowest.values()][:MOST_RANKS]:
        length = format_time(int(device.iterations.duration[one.iteration]))
        yield (
            f"{_who([device])}, iteration {one.iteration}: {length}, {one.ratio:.2f} x the median; "
            f"{one.part} grew by {format_time(one.grew_ns)}."
        )
