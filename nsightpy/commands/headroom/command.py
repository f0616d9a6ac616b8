"""headroom: what ncu measured, brought back to the kernels of nsys, as ceilings of what to gain."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Unpack

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.iterations.steady import SteadyState
from nsightpy.analysis.selection.headroom import LOOSE, StepParts, match, step_parts
from nsightpy.analysis.selection.launch_places import COLUMNS, Variant
from nsightpy.analysis.selection.thresholds import APART
from nsightpy.analysis.thresholds import MATERIAL
from nsightpy.commands.headroom.gains import FIELDS, Headroom, gains, replayed_gains, row_of
from nsightpy.commands.roofline.command import roofline
from nsightpy.names import brief
from nsightpy.query import (
    Common,
    Communication,
    Option,
    Parts,
    Question,
    Scope,
    SystemReport,
    Top,
    answer,
)
from nsightpy.query.command import command
from nsightpy.query.device_time import rank_budgets, read_work
from nsightpy.query.replayed import Replayed, job_of_work, replayed
from nsightpy.query.request import Request, running_options
from nsightpy.query.steps import is_steady, steady_notes
from nsightpy.query.work_reading import Recorded, recorded
from nsightpy.report_sets.opening import NcuPaths, Paths
from nsightpy.results.keys import VARIANT, row_keys
from nsightpy.results.rooflines import Roofline, RooflineVariant
from nsightpy.units import counted, format_time, listed

_NAME_WIDTH = 60


@command(
    *FIELDS,
    keys=row_keys(VARIANT, "name", "grid", "block"),
    members={
        "step_ns": {"type": "integer"},
        "ceiling_share": {"type": ["number", "null"]},
        "gain_share": {"type": ["number", "null"]},
        "unmatched": {"type": "array", "items": {"type": "object"}},
        "replay": {"type": "object"},
    },
    picture="nsightpy.render.plots.headroom_plot:headroom_figure",
)
def headroom(
    reports: Paths,
    *,
    ncu: Annotated[
        NcuPaths | Roofline,
        Option(
            "What ncu measured: .ncu-rep or ncu --csv files, folders, globs; up to the next "
            "option.",
            "NCU...",
            several=True,
        ),
    ],
    communication: Communication = (),
    top: Top = None,
    **common: Unpack[Common],
) -> Headroom:
    """Kernels joined by name and shape with their measurements, the largest gain first.

    gain_share is what a replay of the step with the kernel at its nearest roof is shorter by;
    ceiling_share = share of the step x (1 - achieved / nearest roof) is never less. Neither is a
    forecast. The picture has lines of equal ceilings.
    """
    profiled = ncu if isinstance(ncu, Roofline) else roofline(ncu, **running_options(common))
    request = Request.of(reports, **common)
    about: dict[str, Any] = {"measured": profiled.variants, "communication": tuple(communication)}
    work = partial(_part_of, **about)
    return answer(request, Question(work, partial(_combined, **about), ranked=True, top=top))


@dataclass(frozen=True)
class Part:
    """What one report adds: its step, the highest clock of its devices in Hz (0: not known)."""

    step: StepParts
    clock_hz: int
    states: list[SteadyState]
    recorded: Recorded


def _combined(
    parts: Parts[Part], *, measured: Sequence[RooflineVariant], communication: tuple[str, ...]
) -> Headroom | Question[Headroom]:
    """The table, for which the step is replayed with kernels at their roofs."""
    values = parts.values
    kernels = gains([p.step for p in values], measured, max(p.clock_hz for p in values))
    step = sum(part.step.step_ns for part in values)
    states = [part.states for part in values]
    hit = {id(kernel.match.measured) for kernel in kernels if kernel.match is not None}

    def shown(job_replay: Replayed) -> Headroom:
        gained, together = kernels, None
        if job_replay.work is not None:
            gained, together = replayed_gains(kernels, step, job_replay.work)
        worth = [k for k in gained if k.match is not None or k.covered_ns >= MATERIAL * step]
        table = Headroom(
            "headroom",
            FIELDS,
            tuple(row_of(kernel, step) for kernel in worth),
            kernels=tuple(gained),
            step_ns=step,
            unit="step" if all(states) else "window",
            unmatched=tuple(kernel for kernel in measured if id(kernel) not in hit),
            replay=job_replay.record(),
        )
        if together is not None:
            table = replace(table, gain_share=min(together, table.ceiling_share or 0.0))
        steady = steady_notes(state for of_report in states for state in of_report)
        return replace(table, notes=(*headroom_notes(table), *job_replay.notes, *steady))

    if not any(kernel.roof for kernel in kernels):
        return shown(Replayed())
    job = job_of_work(parts.ranks, [(report, part.recorded) for report, part in parts.results])
    return replayed(job, parts.scope, communication, shown, by_variant=True)


def _part_of(
    report: SystemReport,
    scope: Scope,
    *,
    measured: Sequence[RooflineVariant],
    communication: tuple[str, ...],
) -> Part:
    """What one report adds to the step."""
    states = {} if scope.nvtx is not None else scope.steady_states(report)
    kernels = scope.read(report, "kernels", (*COLUMNS, "device"))
    kernels = kernels.take(is_steady(kernels, states))
    kernels = kernels.take(~is_communication(kernels.labels("name"), communication))

    def distance(variant: Variant) -> float | None:
        matched = match(variant, measured)
        exact = matched if matched is not None and matched.way != LOOSE else None
        roof = None if exact is None else exact.measured.typical.nearest_roof
        return None if roof is None else roof.distance

    clocks = report.frame("devices").ints("clock_hz")
    steady = {pid: state.window for pid, state in states.items()}
    budgets = rank_budgets(report, scope, read_work(report, scope))
    windows = {row.place: steady.get(row.pid, row.budget.window) for row in budgets}
    parts = step_parts(kernels, windows, distance)
    work = recorded(report, scope)
    return Part(parts, int(clocks.max(initial=0)), list(states.values()), work)


def headroom_notes(table: Headroom) -> Iterator[str]:
    """The notes of a table of headroom, most important first."""
    matched = [kernel for kernel in table.kernels if kernel.match is not None]
    if table.kernels and not matched:
        yield (
            "Nothing that ncu measured is a kernel of these reports, by name: it is of another "
            "program, or of another build of it."
        )
    if table.step_ns:
        yield from _gains(table)
    if roofless := [kernel for kernel in matched if kernel.roof is None]:
        why = dict.fromkeys(str(text) for k in roofless if k.typical for text in k.typical.missing)
        kernels = counted(len(roofless), "kernel")
        texts = " ".join(text[:1].upper() + text[1:] for text in why)
        yield f"Measured, but without a roof, and so no ceiling: {kernels}: {texts}"
    if apart := [kernel.reason for kernel in matched if kernel.reason]:
        yield (
            f"More than {APART} x as long in one tool as in the other: "
            f"{counted(len(apart), 'kernel')}: {listed(dict.fromkeys(apart), 3)}. "
            "`--clock-control none --cache-control none` brings ncu nearer to nsys."
        )
    if loose := [kernel for kernel in matched if kernel.match and kernel.match.way == LOOSE]:
        yield (
            f"Matched loosely (same function, other geometry): {counted(len(loose), 'kernel')}. "
            "Such ceilings are guesses, and no part of the sum."
        )
    if alone := [kernel for kernel in table.kernels if kernel.match is None]:
        lost = sum(kernel.covered_ns for kernel in alone) / max(table.step_ns, 1)
        names = _first(kernel.variant.base or kernel.variant.name for kernel in alone)
        yield (
            f"Not measured: {counted(len(alone), 'kernel')} of nsys with {100 * lost:.1f} % of the "
            f"{table.unit} ({names}); `nsightpy select` prints the commands for them."
        )
    if table.unmatched:
        names = _first(kernel.first.base_name or kernel.first.name for kernel in table.unmatched)
        seen = counted(len(table.unmatched), "kernel")
        yield f"Measured, but not seen by nsys: {seen} ({names})."


def _gains(table: Headroom) -> Iterator[str]:
    """The measured kernel with the highest ceiling, and the ceiling of all."""
    step, together = table.step_ns, table.ceiling_share
    top = next(iter(table.measured), None)
    if top is not None and top.roof is not None and top.gain_ns is not None:
        replayed = "" if top.gain_share is None else f", {100 * top.gain_share:.1f} % by replay"
        name = brief(top.variant.any_name, _NAME_WIDTH)
        yield (
            f"{name} is {100 * top.covered_ns / step:.1f} % of the {table.unit} and runs at "
            f"{100 * top.roof.fraction:.0f} % of its roof ({top.roof.name}): at most "
            f"{100 * top.gain_ns / step:.1f} % to gain{replayed}."
        )
    yield f"share is of the {table.unit}: {format_time(step)} over the windows of all devices."
    if together is not None and len(table.measured) > 1:
        replayed = "" if table.gain_share is None else f"; a replay gains {table.gain_share:.1%}"
        yield (
            f"Together at most {100 * together:.1f} % of the {table.unit} are to be gained (time "
            f"in which several ran counts once{replayed})."
        )


def _first(names: Iterable[str]) -> str:
    """The first three of some names, each once."""
    return listed(dict.fromkeys(brief(name, _NAME_WIDTH) for name in names), 3)
