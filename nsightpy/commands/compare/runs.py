"""The runs of both sides: which files each is, of which tool, and their summaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias, Unpack, cast

from nsightpy.commands.compare.merging import run_summary
from nsightpy.commands.compare.ncu_runs import ncu_summaries
from nsightpy.commands.compare.report_part import ReportPart, report_part
from nsightpy.commands.roofline.command import refuse_times
from nsightpy.errors import NsightpyError, ReportError, UsageError
from nsightpy.query.capture_advice import bearing_on
from nsightpy.query.options import Common
from nsightpy.query.request import Request, reading_options
from nsightpy.report_sets.by_tool import split_by_tool
from nsightpy.report_sets.one_file_sets import open_ncu_reports
from nsightpy.report_sets.rank_set import RankSet, map_runs
from nsightpy.report_sets.report_files import files_of
from nsightpy.report_sets.report_set import ReportSet
from nsightpy.reports.ncu import NcuReport
from nsightpy.reports.system import SystemReport
from nsightpy.results.notes import texts
from nsightpy.results.run_summary import KINDS, UNITS, RunSummary

OneRun: TypeAlias = str | Path | SystemReport | NcuReport | RankSet
Runs: TypeAlias = OneRun | Iterable[OneRun]


@dataclass(frozen=True)
class OpenRun:
    """One run: its name, and its reports."""

    name: str
    request: Request | None
    measured: ReportSet[NcuReport] | None = None

    @property
    def kind(self) -> str:
        return "ncu" if self.request is None else self.request.ranks.reports[0].kind


def listed(runs: Runs | None) -> list[OneRun]:
    """The runs that are given; those of a pattern each by itself, one without files as it is."""
    if runs is None:
        return []
    given = [runs] if isinstance(runs, str | Path | SystemReport | NcuReport | RankSet) else runs
    expanded: list[OneRun] = []
    for run in given:
        files = None
        if isinstance(run, str | Path) and not Path(run).is_dir():
            files = files_of(run)
        expanded += sorted(files) if files else [run]
    return expanded


def open_runs(runs: Sequence[OneRun], **common: Unpack[Common]) -> list[OpenRun]:
    """Open each run; raises ReportError for what is none, UsageError for options without sense."""
    return [_open(run, **common) for run in runs]


def _open(run: OneRun, **common: Unpack[Common]) -> OpenRun:
    name = ", ".join(run.inputs) if isinstance(run, RankSet) else str(getattr(run, "path", run))
    systems, compute, snapshots = split_by_tool(run)
    if snapshots and not systems:
        problem = "is a memory snapshot"
        raise ReportError(name, problem, "`nsightpy memory-usage --diff A B` compares two of them.")
    if systems and compute:
        problem = "holds reports of Nsight Systems and of Nsight Compute"
        raise ReportError(name, problem, "a run is reports of one tool: give a folder of those.")
    if not compute:
        return OpenRun(name, Request.of(cast(RankSet, systems), **common))
    refuse_times(common, "nvtx")
    return OpenRun(name, None, open_ncu_reports(compute, **reading_options(common)))


def same_kind(runs: Sequence[tuple[str, str]]) -> None:
    """Raise UsageError where runs (name, kind) are of several tools."""
    first, kind = runs[0]
    for name, other in runs[1:]:
        if other != kind:
            raise UsageError(
                f"{first} is of {KINDS[kind]} and {name} of {KINDS[other]}: their times mean "
                "different things; compare runs of one tool"
            )


def summaries(
    runs: Sequence[OpenRun], also: Sequence[RunSummary] = (), *, every: bool = False
) -> list[RunSummary]:
    """The summaries of runs of one kind, in their order; reports are read one by one a worker.

    Units are those that all runs have, and those of `also`: steps, else windows, and what repeats;
    with `every` all that a run has.
    Raises NsightpyError for a run without GPU work.
    """
    if not runs:
        return []
    if runs[0].request is None:
        measured = [run.measured for run in runs if run.measured is not None]
        return ncu_summaries([run.name for run in runs], measured)
    requests = [run.request for run in runs if run.request is not None]
    work = partial(report_part, scope=requests[0].scope)
    scope = requests[0].scope
    parts = map_runs([request.ranks for request in requests], work, ranked=scope.ranks is not None)
    for run, results in zip(runs, parts, strict=True):
        _require_work(run, results)
    known = [
        set(UNITS).intersection(*(part.units for _, part in results if part.units))
        for results in parts
    ]
    common = set(UNITS).intersection(*known, *(run.units for run in also))
    if "step" in common:
        common = {"step"}
    return [
        run_summary(
            run.name,
            results,
            texts([*bearing_on(request.ranks.notes, "compare"), *scope.notes]),
            [kind for kind in UNITS if kind in (kinds_of_run if every else common)],
        )
        for run, request, results, kinds_of_run in zip(runs, requests, parts, known, strict=True)
    ]


def _require_work(run: OpenRun, results: Sequence[tuple[SystemReport, ReportPart]]) -> None:
    if any(part.units for _, part in results):
        return
    failures = run.request.ranks.failures if run.request is not None else []
    if failures:
        raise failures[0]
    raise NsightpyError(
        f"{run.name}: holds no GPU work (of these ranks, devices and times): there is nothing to "
        "compare.\n  `nsightpy info` says what it holds."
    )
