"""select: the few ncu runs that are worth their hours, from a ranking over all ranks."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Unpack

from nsightpy.analysis.selection.coverage import Selection, choose, passes_of
from nsightpy.commands.select.offers import Found, Wanted, of_ranks, offered
from nsightpy.commands.select.one_run import one_run_each
from nsightpy.commands.select.plan import FIELDS, FORMS, Plan, planned_runs, rows, starts_a_job
from nsightpy.commands.select.plan_notes import plan_notes
from nsightpy.errors import ReportError, UsageError
from nsightpy.ncu_command import APPLICATION, Job, Options
from nsightpy.query.request import Common, Request
from nsightpy.rank_set import Paths
from nsightpy.readers.nsys.capture_start import CUDA_PROFILER_API

AUTO = "auto"
CAPTURE_RANGES = (AUTO, "none", CUDA_PROFILER_API)


def select(
    reports: Paths,
    *,
    coverage: float = 0.8,
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
    """The fewest kernel variants that cover that share of the GPU time, and the ncu runs for them.

    A variant is a kernel under one grid, block and shared memory; times in ns over all reports, of
    the steady state unless `whole`, without communication kernels unless `with_communication`. Each
    is measured by the launch nearest the median, the first `warm_up` of a variant left out, in as
    few processes as possible (only `profile_rank` where given). `budget` bounds passes x launches.
    `metric_set` is roofline unless sections or metrics are given. `form` is how kernels are named:
    mangled, function, demangled, or auto for the first of these that the capture has.
    `capture_range` is what began the capture, so that ncu counts from there: none, cudaProfilerApi,
    or auto for what the report says. `application` and `extra` are words, or a text as a shell
    reads it.
    Raises UsageError, ReportError.
    """
    if not 0 < coverage <= 1:
        raise UsageError(f"coverage is a share above 0 and up to 1, not {coverage}")
    if form not in FORMS:
        raise UsageError(f"form must be one of {', '.join(FORMS)}, not {form!r}")
    if capture_range not in CAPTURE_RANGES:
        wanted_ranges = ", ".join(CAPTURE_RANGES)
        raise UsageError(f"capture_range must be one of {wanted_ranges}, not {capture_range!r}")
    if metric_set is None:
        metric_set = "" if sections or metrics else "roofline"
    words = _words(application)
    request = Request.of(reports, **common)
    wanted = Wanted(
        request.scope, _several(communication), with_communication, outlier, warm_up, whole
    )
    found = request.map(partial(offered, wanted=wanted), ranked=True).values
    selection = _chosen(
        request, found, profile_rank, coverage, top, budget, passes_of(metric_set, passes)
    )
    processes = sum(part.processes for part in found)
    options = Options(
        metric_set=metric_set,
        sections=_several(sections),
        metrics=_several(metrics),
        application=words or APPLICATION,
        nvtx=tuple(dict.fromkeys(value for part in found for value in part.ranges.include)),
        graph="node" if any(c.from_graph for c in selection.choices) else "",
        rank_variable=_rank_variable(selection, rank_variable, processes, words),
        kill=kill,
        overwrite=overwrite,
        from_start=_from_start(selection, found, capture_range),
        extra=_words(extra),
        version=version,
    )
    if one_run and selection.choices:
        selection, runs = one_run_each(request, wanted, found, selection, output, form, budget)
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
        job=_job(found),
    )
    said = [*plan_notes(plan, found, metric_set, passes), *request.finish(plan).notes]
    return Plan(**{**plan.__dict__, "notes": tuple(dict.fromkeys(said))})


def _several(given: str | Iterable[str]) -> tuple[str, ...]:
    """One text or many, as many."""
    return (given,) if isinstance(given, str) else tuple(given)


def _words(given: str | Iterable[str]) -> tuple[str, ...]:
    """A text as a shell cuts it into words, or words."""
    return tuple(shlex.split(given) if isinstance(given, str) else given)


def _chosen(
    request: Request,
    found: Sequence[Found],
    profile_rank: str | int | None,
    coverage: float,
    top: int | None,
    budget: int | None,
    passes: int,
) -> Selection:
    """The selection over all reports. Raises ReportError and UsageError where nothing is left."""
    offers = of_ranks([one for part in found for one in part.offers], profile_rank)
    if not offers:
        problem = "has no kernels to choose from"
        raise ReportError(request.ranks.inputs[0], problem, _way_out(found))
    selection = choose(offers, coverage=coverage, top=top, passes=passes, budget=budget)
    if selection.over_budget and not selection.choices:
        raise UsageError(
            f"--budget {budget} is less than the {passes} passes that one launch is assumed to "
            "take: raise it, choose a smaller --set, or tell --passes"
        )
    return selection


def _way_out(found: Sequence[Found]) -> str:
    """What to do where there is nothing to choose from."""
    if any(part.communication_ns for part in found):
        return "All of them are communication kernels: --with-communication chooses them, too."
    if any(part.opaque_launches for part in found):
        return (
            "Its CUDA graphs were traced as a whole: `nsys profile --cuda-graph-trace=node` shows "
            "their kernels."
        )
    return "Widen --from, --to, --rank, --device or --nvtx, or see `nsightpy kernels`."


def _job(found: Sequence[Found]) -> Job:
    """How large the job is: every captured process, and every rank up to the highest known."""
    known = [unit.rank for part in found for unit, _ in part.offers if unit.rank is not None]
    processes = sum(part.processes for part in found)
    hosts = {part.host for part in found}
    whole = processes > max(known, default=0) and "" not in hosts
    ranks = max(1, processes, *(rank + 1 for rank in known))
    return Job(ranks, len(hosts) if whole else 1)


def _rank_variable(
    selection: Selection, given: str | None, processes: int, application: Sequence[str]
) -> str:
    """The variable that tells ranks apart in the names of reports.

    Empty for a single process, and where ncu runs outside of the ranks, around their launcher.
    """
    if given is not None:
        return given
    if application and starts_a_job(application):
        return ""
    sources = {choice.unit.rank_source for choice in selection.choices}
    for kind, _, variable in (source.partition(" ") for source in sorted(sources)):
        if kind == "environment":
            return variable
    return "RANK" if processes > 1 else ""


def _from_start(selection: Selection, found: Sequence[Found], capture_range: str) -> bool:
    """Whether ncu counts from the start of the program, or from its call of cudaProfilerStart."""
    if capture_range != AUTO:
        return capture_range != CUDA_PROFILER_API
    chosen = {choice.unit.report for choice in selection.choices}
    return all(p.start.trigger != CUDA_PROFILER_API for p in found if p.report in chosen)
