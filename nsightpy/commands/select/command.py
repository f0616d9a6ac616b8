"""select: the few ncu runs that are worth their hours, from a ranking over all ranks."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import TypeVar, Unpack

from nsightpy.analysis.selection.coverage import (
    COVERAGE,
    MOST_CHOSEN,
    Selection,
    choose_kernels,
)
from nsightpy.commands.select.offers import ReportOffers, of_ranks, offered
from nsightpy.commands.select.one_run import one_run_each
from nsightpy.commands.select.plan import FIELDS, Plan, planned_runs, rows, starts_a_job
from nsightpy.commands.select.plan_notes import plan_notes
from nsightpy.commands.select.run_plan import FIELDS as OUTCOME_FIELDS
from nsightpy.commands.select.settings import AUTO, Criteria, NcuSettings
from nsightpy.errors import ReportError, UsageError
from nsightpy.ncu_command import Job, Options
from nsightpy.query.request import Common, Request
from nsightpy.query.signature import command_function
from nsightpy.readers.nsys.capture_start import CUDA_PROFILER_API
from nsightpy.report_sets.rank_opening import Paths

T = TypeVar("T")
# With `--run` the rows say what was run.
LAYOUTS = (FIELDS, OUTCOME_FIELDS)
# What its document holds beside rows; see Plan.members.
MEMBERS = {"runs": {"type": "array", "items": {"type": "object"}}}


@command_function
def select(
    reports: Paths,
    *,
    coverage: float | None = None,
    top: int | None = None,
    metric_set: str | None = None,
    sections: str | Sequence[str] = (),
    metrics: str | Sequence[str] = (),
    application: str | Sequence[str] = (),
    communication: str | Iterable[str] = (),
    with_communication: bool = False,
    outlier: bool = False,
    warm_up: int = 1,
    whole: bool = False,
    budget: int | None = None,
    passes: int | None = None,
    form: str = AUTO,
    one_run: bool = False,
    profile_rank: str | int | None = None,
    rank_variable: str | None = None,
    output: str = "ncu",
    overwrite: bool = False,
    kill: bool = False,
    capture_range: str = AUTO,
    extra: str | Sequence[str] = (),
    version: tuple[int, ...] = (),
    **common: Unpack[Common],
) -> Plan:
    """The fewest kernel variants with `coverage` of the GPU time, and the ncu runs for them.

    Without `coverage` and `top`: 0.8 of the time, in 25 variants at most. A variant is a kernel
    under one grid, block and shared memory, or one size of a kernel with more than 20 grids; times
    in ns over all reports, of the steady state unless `whole`, without communication kernels unless
    `with_communication`. Each is measured by the launch nearest the median, the first `warm_up` of
    a variant left out, with `outlier` by its slowest, too, in as few processes as possible (only
    `profile_rank` where given; `one_run`: one run of the application for all). `budget` bounds
    launches times `passes` of each.
    ncu gets `metric_set` (roofline unless `sections` or `metrics` are given) and `extra`, ends the
    application after the last launch with `kill`, and writes reports that begin with `output`
    (`overwrite`: over older ones) and hold `rank_variable`. `form` is how kernels are named:
    mangled, function, demangled, or auto for the first that the capture has. `capture_range` is
    what began the capture, so that ncu counts from there: none, cudaProfilerApi, or auto for what
    the report says. `version` is ncu's, () for not known. `application` is the application's own
    command; it and `extra` are words, or a text as a shell reads it.

    Raises UsageError, ReportError.
    """
    communication, sections, metrics = map(_several, (communication, sections, metrics))
    application, extra = _words(application), _words(extra)
    given = locals()
    criteria, settings = _of(Criteria, given), _of(NcuSettings, given)
    return _plan(Request.of(reports, **common), criteria, settings)


def _plan(request: Request, criteria: Criteria, settings: NcuSettings) -> Plan:
    work = partial(offered, scope=request.scope, criteria=criteria)
    reports = request.map(work, ranked=True).values
    selection = _chosen(request, reports, criteria, settings)
    if settings.one_run and selection.choices:
        selection, runs = one_run_each(request, criteria, settings, reports, selection)
    else:
        runs = planned_runs(selection, settings.output, settings.form)
    options = _options(selection, reports, settings)
    plan = Plan(
        "select",
        FIELDS,
        tuple(rows(selection, runs, options)),
        total_rows=selection.variants if 0 < (criteria.top or 0) < selection.variants else None,
        selection=selection,
        runs=tuple(runs),
        options=options,
        job=_job(reports),
    )
    return request.finish(plan, *plan_notes(plan, reports, settings.sets, criteria.passes))


def _of(kind: Callable[..., T], given: Mapping[str, object]) -> T:
    """The parameters of a function that are fields of a dataclass, as one."""
    return kind(**{name: given[name] for name in signature(kind).parameters})


def _several(given: str | Iterable[str]) -> tuple[str, ...]:
    """One text or many, as many."""
    return (given,) if isinstance(given, str) else tuple(given)


def _words(given: str | Iterable[str]) -> tuple[str, ...]:
    """A text as a shell cuts it into words, or words."""
    return tuple(shlex.split(given) if isinstance(given, str) else given)


def _options(
    selection: Selection, reports: Sequence[ReportOffers], settings: NcuSettings
) -> Options:
    """What every run of ncu is asked. Graphs' kernels and NVTX ranges come from the reports."""
    return Options(
        metric_set=settings.sets,
        sections=settings.sections,
        metrics=settings.metrics,
        application=settings.command,
        nvtx=tuple(dict.fromkeys(value for part in reports for value in part.ranges.include)),
        graph="node" if any(choice.from_graph for choice in selection.choices) else "",
        rank_variable=_rank_variable(selection, reports, settings),
        kill=settings.kill,
        overwrite=settings.overwrite,
        from_start=_from_start(selection, reports, settings.capture_range),
        extra=settings.extra,
        version=settings.version,
    )


def _chosen(
    request: Request, reports: Sequence[ReportOffers], criteria: Criteria, settings: NcuSettings
) -> Selection:
    """The selection over all reports. Raises ReportError and UsageError where nothing is left."""
    offers = of_ranks([offer for part in reports for offer in part.offers], criteria.profile_rank)
    if not offers:
        problem = "has no kernels to choose from"
        raise ReportError(request.ranks.inputs[0], problem, _way_out(reports))
    budget, passes = criteria.budget, settings.passes(criteria.passes)
    usual = criteria.coverage is None
    selection = choose_kernels(
        offers,
        coverage=COVERAGE if criteria.coverage is None else criteria.coverage,
        top=criteria.top,
        most=MOST_CHOSEN if usual else None,
        passes=passes,
        budget=budget,
    )
    if selection.over_budget and not selection.choices:
        raise UsageError(
            f"--budget {budget} is less than the {passes} passes that one launch is assumed to "
            "take: raise it, choose a smaller --set, or give --passes"
        )
    return selection


def _way_out(reports: Sequence[ReportOffers]) -> str:
    """What to do where there is nothing to choose from."""
    if any(part.communication_ns for part in reports):
        return "All of them are communication kernels: --with-communication chooses them, too."
    if any(part.opaque_launches for part in reports):
        return (
            "Its CUDA graphs were traced as a whole: `nsys profile --cuda-graph-trace=node` shows "
            "their kernels."
        )
    return "Widen --from, --to, --rank, --device or --nvtx, or see `nsightpy kernels`."


def _job(reports: Sequence[ReportOffers]) -> Job:
    """How large the job is: every captured process, and every rank up to the highest known."""
    known = [unit.rank for part in reports for unit, _ in part.offers if unit.rank is not None]
    processes = sum(part.processes for part in reports)
    hosts = {part.host for part in reports}
    whole = processes > max(known, default=0) and "" not in hosts
    ranks = max(1, processes, *(rank + 1 for rank in known))
    return Job(ranks, len(hosts) if whole else 1)


def _rank_variable(
    selection: Selection, reports: Sequence[ReportOffers], settings: NcuSettings
) -> str:
    """The variable that distinguishes ranks in the names of reports.

    Empty for a single process, and where ncu runs outside of the ranks, around their launcher.
    """
    if settings.rank_variable is not None:
        return settings.rank_variable
    if settings.application and starts_a_job(settings.application):
        return ""
    sources = {choice.unit.rank_source for choice in selection.choices}
    for kind, _, variable in (source.partition(" ") for source in sorted(sources)):
        if kind == "environment":
            return variable
    return "RANK" if sum(part.processes for part in reports) > 1 else ""


def _from_start(selection: Selection, reports: Sequence[ReportOffers], capture_range: str) -> bool:
    """Whether ncu counts from the start of the program, or from its call of cudaProfilerStart."""
    if capture_range != AUTO:
        return capture_range != CUDA_PROFILER_API
    chosen = {choice.unit.report for choice in selection.choices}
    return all(p.start.trigger != CUDA_PROFILER_API for p in reports if p.report in chosen)
