"""The runs of both sides: which files each is, of which tool, and their summaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias, Unpack, cast

from nsightpy.commands.compare.merging import run_summary
from nsightpy.commands.compare.ncu_runs import ncu_summaries
from nsightpy.commands.compare.report_part import report_part
from nsightpy.commands.roofline.command import refuse_times
from nsightpy.errors import ReportError, UsageError
from nsightpy.query.engine import Question, answer_each
from nsightpy.query.options import Common
from nsightpy.query.request import Request, reading_options
from nsightpy.report_sets.by_tool import split_by_tool
from nsightpy.report_sets.one_file_sets import open_ncu_reports
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.report_sets.report_files import files_of
from nsightpy.report_sets.report_set import ReportSet
from nsightpy.reports.ncu import NcuReport
from nsightpy.reports.system import SystemReport
from nsightpy.results.run_summary import KINDS, RunSummary

OneRun: TypeAlias = str | Path | SystemReport | NcuReport | RankSet
Runs: TypeAlias = OneRun | Iterable[OneRun]


@dataclass(frozen=True)
class OpenRun:
    """One run: its name, and its reports."""

    name: str
    reports: Request | ReportSet[NcuReport]

    @property
    def kind(self) -> str:
        return self.reports.kind if isinstance(self.reports, Request) else "ncu"


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


def open_run(run: OneRun, **common: Unpack[Common]) -> OpenRun:
    """Open a run; raises ReportError for what is none, UsageError for options without sense."""
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
    return OpenRun(name, open_ncu_reports(compute, **reading_options(common)))


def same_kind(runs: Sequence[OpenRun | RunSummary]) -> None:
    """Raise UsageError where runs are of several tools."""
    first = runs[0]
    for run in runs:
        if run.kind != first.kind:
            raise UsageError(
                f"{first.name} is of {KINDS[first.kind]} and {run.name} of {KINDS[run.kind]}: "
                "their times mean different things; compare runs of one tool"
            )


def summaries(runs: Sequence[OpenRun]) -> list[RunSummary]:
    """The summaries of runs of one kind, in their order, in all units that each has.

    Raises NsightpyError for a run without GPU work.
    """
    requests = [run.reports for run in runs if isinstance(run.reports, Request)]
    measured = [run.reports for run in runs if isinstance(run.reports, ReportSet)]
    if measured:
        return ncu_summaries([run.name for run in runs], measured)
    found = answer_each(requests, Question(report_part, run_summary)) if requests else []
    return [replace(summary, name=run.name) for run, summary in zip(runs, found, strict=True)]
