"""select: the few ncu runs that are worth their hours, from a ranking over all ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Unpack

import numpy as np

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.iterations.steady import SteadyState
from nsightpy.analysis.ranking import durations
from nsightpy.analysis.selection.coverage import Choice, Selection, Unit, choose, passes_of
from nsightpy.analysis.selection.launch_places import (
    COLUMNS,
    Launches,
    Mask,
    Portion,
    launches_of,
    portions,
    warm,
)
from nsightpy.analysis.selection.launch_window import shortest_window
from nsightpy.errors import ReportError, UsageError
from nsightpy.frames import Frame
from nsightpy.ncu_command import APPLICATION, Options
from nsightpy.rank_set import Paths
from nsightpy.reports import NsysReport
from nsightpy.verbs.request import Common, Request
from nsightpy.verbs.scope import Scope, numbers
from nsightpy.verbs.select_notes import plan_notes
from nsightpy.verbs.select_plan import (
    FIELDS,
    FORMS,
    NAME_COLUMNS,
    Plan,
    PlannedRun,
    names_of,
    planned_runs,
    rows,
    window_run,
)
from nsightpy.verbs.select_range import NvtxFilter, range_filter
from nsightpy.verbs.steady_windows import is_steady, steady_states


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which launches count, and how representatives are found."""

    scope: Scope
    communication: tuple[str, ...] = ()
    with_communication: bool = False
    outlier: bool = False
    warm_up: int = 1
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What one report has to offer; times in ns."""

    portions: list[tuple[Unit, Portion]]
    communication_ns: int
    kernels_ns: int
    opaque_launches: int
    opaque_ns: int
    ranges: NvtxFilter
    processes: int
    steady: list[SteadyState]


def select(
    reports: Paths,
    *,
    coverage: float = 0.8,
    top: int | None = None,
    metric_set: str | None = None,
    sections: Sequence[str] = (),
    metrics: Sequence[str] = (),
    application: Sequence[str] = (),
    communication: Iterable[str] = (),
    with_communication: bool = False,
    outlier: bool = False,
    warm_up: int = 1,
    whole: bool = False,
    budget: int | None = None,
    passes: int | None = None,
    form: str = "auto",
    one_run: bool = False,
    profile_rank: str | int | None = None,
    rank_variable: str | None = None,
    output: str = "ncu",
    overwrite: bool = False,
    kill: bool = False,
    from_start: bool = True,
    extra: Sequence[str] = (),
    version: tuple[int, ...] = (),
    **common: Unpack[Common],
) -> Plan:
    """The fewest kernel variants that cover that share of the GPU time, and the ncu runs for them.

    A variant is a kernel under one grid, block and shared memory; times in ns over all reports,
    of the steady state unless `whole`, without communication kernels unless
    `with_communication`. Each is measured by the launch
    nearest the median, the first `warm_up` of a variant left out, in as few processes as possible
    (only `profile_rank` where given). `budget` bounds passes x launches. `metric_set` is roofline
    unless sections or metrics are given. `form` is how kernels are named: mangled, function,
    demangled, or auto for the first of these that the capture has. Raises UsageError, ReportError.
    """
    if not 0 < coverage <= 1:
        raise UsageError(f"coverage is a share above 0 and up to 1, not {coverage}")
    if form not in FORMS:
        raise UsageError(f"form must be one of {', '.join(FORMS)}, not {form!r}")
    if metric_set is None:
        metric_set = "" if sections or metrics else "roofline"
    request = Request.of(reports, **common)
    wanted = Wanted(
        request.scope, tuple(communication), with_communication, outlier, warm_up, whole
    )
    found = request.map(partial(offered, wanted=wanted), ranked=True).values
    offers = _of_ranks([one for part in found for one in part.portions], profile_rank)
    if not offers:
        raise ReportError(
            request.ranks.inputs[0],
            "has no kernels to choose from",
            "Widen --from, --to, --rank, --device or --nvtx, or see `nsightpy kernels`.",
        )
    selection = choose(
        offers,
        coverage=coverage,
        top=top,
        passes=passes_of(metric_set, passes),
        budget=budget,
    )
    ranges = _merged([part.ranges for part in found])
    processes = sum(part.processes for part in found)
    options = Options(
        metric_set=metric_set,
        sections=tuple(sections),
        metrics=tuple(metrics),
        application=tuple(application) or APPLICATION,
        nvtx=ranges.include,
        graph="node" if any(c.from_graph for c in selection.choices) else "",
        rank_variable=_rank_variable(selection, rank_variable, processes),
        kill=kill,
        overwrite=overwrite,
        from_start=from_start,
        extra=tuple(extra),
        version=version,
    )
    if one_run and selection.choices:
        runs = _one_run(request, wanted, selection, output, form)
    else:
        runs = planned_runs(selection, output, form)
    plan = Plan(
        "select",
        FIELDS,
        tuple(rows(selection, runs, options)),
        request.ranks.inputs,
        selection=selection,
        runs=tuple(runs),
        options=options,
        ranks=max(1, processes),
    )
    said = [*plan_notes(plan, found, metric_set, passes), *request.finish(plan).notes]
    return Plan(**{**plan.__dict__, "notes": tuple(dict.fromkeys(said))})


def offered(report: NsysReport, *, wanted: Wanted) -> Found:
    """The variants of one report with their representatives; what other processes send back."""
    states = {} if wanted.whole else steady_states(report, wanted.scope)
    done, weighed, ranges = _launches(report, wanted, states)
    names = done.frame.labels("name")
    talking = is_communication(names, wanted.communication) & weighed
    length = durations(done.frame)
    graphs = wanted.scope.narrow(
        report, report.frame("graph_launches", ("start_ns", "end_ns", "pid", "device"))
    )
    counted = weighed if wanted.with_communication else weighed & ~talking
    own = portions(done, counted, warm_up=wanted.warm_up, outlier=wanted.outlier)
    return Found(
        [(unit_of(report, portion.pid), portion) for portion in own],
        int(length[talking].sum()),
        int(length[weighed].sum()),
        graphs.rows,
        int(durations(graphs).sum()),
        ranges,
        len(report.pids),
        list(states.values()),
    )


def _launches(
    report: NsysReport, wanted: Wanted, states: Mapping[int, SteadyState]
) -> tuple[Launches, Mask, NvtxFilter]:
    """All launches of a report, which of them count, and the NVTX filter that finds them."""
    columns = dict.fromkeys((*COLUMNS, "device", *wanted.scope.columns))
    kernels = report.frame("kernels", tuple(columns))
    ranges = range_filter(report, kernels, wanted.scope.nvtx)
    done = launches_of(kernels, ranges.visible)
    numbered = Frame({**done.frame, "row": np.arange(done.frame.rows, dtype=np.int64)})
    weighed = np.zeros(done.frame.rows, dtype=np.bool_)
    weighed[wanted.scope.within(report, numbered).ints("row")] = True
    weighed &= done.visible & is_steady(done.frame, states)
    return done, weighed, ranges.without_mask()


def unit_of(report: NsysReport, pid: int) -> Unit:
    """Where a process was seen: its report, its rank and the evidence for that."""
    rank, source = report.rank_of(pid)
    return Unit(str(report.path), rank, pid, source)


def _of_ranks(
    offers: list[tuple[Unit, Portion]], spec: str | int | None
) -> list[tuple[Unit, Portion]]:
    """The same offers, with samples only where they may be profiled."""
    ranks = numbers(spec, "rank")
    if ranks is None:
        return offers
    if not any(unit.rank in ranks for unit, _ in offers):
        raise UsageError(f"--profile-rank {spec}: no report is of that rank")
    return [
        (unit, portion if unit.rank in ranks else _unsampled(portion)) for unit, portion in offers
    ]


def _unsampled(portion: Portion) -> Portion:
    return Portion(portion.variant, portion.pid, portion.instances, portion.total_ns, ())


def _rank_variable(selection: Selection, given: str | None, processes: int) -> str:
    """The variable that tells ranks apart in the names of reports; empty for a single process."""
    if given is not None:
        return given
    sources = {choice.unit.rank_source for choice in selection.choices}
    for kind, _, variable in (source.partition(" ") for source in sorted(sources)):
        if kind == "environment":
            return variable
    return "RANK" if processes > 1 else ""


def _one_run(
    request: Request, wanted: Wanted, selection: Selection, output: str, form: str
) -> list[PlannedRun]:
    """One run per process for all its choices. Raises UsageError where no stretch holds them."""
    homes: dict[Unit, list[Choice]] = {}
    for choice in selection.choices:
        homes.setdefault(choice.unit, []).append(choice)
    runs = []
    for place, (unit, choices) in enumerate(homes.items(), start=1):
        name = output if len(homes) == 1 else f"{output}_{place:02d}"
        report = next(one for one in request.ranks if str(one.path) == unit.report)
        planned = _stretch(report, wanted, unit, choices, name, form)
        orders = tuple(selection.choices.index(choice) + 1 for choice in choices)
        runs.append(replace(planned, rows=orders))
    return runs


def _stretch(
    report: NsysReport, wanted: Wanted, unit: Unit, choices: list[Choice], output: str, form: str
) -> PlannedRun:
    """The run of the shortest stretch, by the surest kind of name that all choices have."""
    states = {} if wanted.whole else steady_states(report, wanted.scope)
    done, weighed, _ = _launches(report, wanted, states)
    named = [dict(names_of(choice.variant, form)) for choice in choices]
    found = []
    for base in (base for base in named[0] if all(base in each for each in named)):
        window = shortest_window(
            done,
            unit.pid,
            [choice.variant for choice in choices],
            name=NAME_COLUMNS[base],
            may_stand=weighed & warm(done, wanted.warm_up),
            typical_ns=[choice.samples[0].duration_ns for choice in choices],
        )
        if window is not None:
            found.append(window_run(choices, window, base, output))
    if not found:
        raise UsageError("these kernels do not fit into one run: leave out --one-run")
    return replace(found[0], fallbacks=tuple(each.run for each in found[1:]))


def _merged(parts: Sequence[NvtxFilter]) -> NvtxFilter:
    include = tuple(dict.fromkeys(value for part in parts for value in part.include))
    return NvtxFilter(include=include)
