"""The runs of both sides: which files each is, of which tool, and their summaries."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias, Unpack, cast

import numpy as np

from nsightpy.analysis.roofline.points import PROFILED, launch_rooflines
from nsightpy.commands.compare.merging import run_summary
from nsightpy.commands.compare.report_part import report_part
from nsightpy.commands.roofline.command import refuse_times
from nsightpy.errors import NsightpyError, ReportError, UsageError
from nsightpy.query import Common, SystemReport
from nsightpy.query.engine import Question, answer_each
from nsightpy.query.request import Request, reading_options
from nsightpy.report_sets.opening import open_ncu_reports, split_by_tool
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.report_sets.report_set import ReportSet
from nsightpy.reports.one_file import NcuReport
from nsightpy.reports.opening import files_of
from nsightpy.results.rooflines import RooflineLaunch
from nsightpy.results.run_summary import KINDS, PARTS, RunSummary, UnitSummary, WorkSummary
from nsightpy.units import format_count

# The launches of a report, the version of ncu, its notes.
_Measured: TypeAlias = tuple[list[RooflineLaunch], str, list[str]]
OneRun: TypeAlias = str | Path | SystemReport | NcuReport | RankSet
Runs: TypeAlias = OneRun | Iterable[OneRun]


def _measured(report: NcuReport) -> _Measured:
    tables = report.tables
    launches = launch_rooflines(tables.launches, tables.metrics, tables.rules, clock=PROFILED)
    return launches, report.tool_version, list(report.notes)


def _summary(name: str, parts: Sequence[_Measured]) -> RunSummary:
    by_name: dict[str, list[RooflineLaunch]] = defaultdict(list)
    launches = [launch for measured, _, _ in parts for launch in measured if launch.duration_ns]
    for launch in launches:
        by_name[launch.name].append(launch)
    if not launches:
        raise NsightpyError(
            f"{name}: holds no launch with a duration: there is nothing to compare.\n  "
            "Collect gpu__time_duration.sum, as every --set of ncu does."
        )
    works = tuple(_work(kernel, launches_of) for kernel, launches_of in by_name.items())
    numbers = {kernel: number for number, kernel in enumerate(by_name)}
    total = sum(work.total_ns for work in works)
    order = tuple(numbers[launch.name] for launch in launches)
    unit = UnitSummary(total, (total, *(0,) * (len(PARTS) - 1)), 1, (), works, order)
    clocks = sorted(launch.machine.clock_hz or 0 for launch in launches)
    ends = dict.fromkeys(f"{hz / 1e6:.0f} MHz" for hz in (clocks[0], clocks[-1]) if hz)
    about = {
        "GPU": ", ".join(sorted({launch.machine.name for launch in launches})),
        "SM clock of the profile": " to ".join(ends),
        "profiler": ", ".join(sorted({version for _, version, _ in parts if version})),
        "launches measured": format_count(len(launches)),
    }
    notes = dict.fromkeys(note for _, _, notes in parts for note in notes)
    return RunSummary("ncu", name, {"launch": unit}, about, tuple(notes))


def _work(name: str, launches: Sequence[RooflineLaunch]) -> WorkSummary:
    """One kernel: all its launches, and medians of what was measured of them."""
    figures = {
        "sol_compute_pct": [launch.speed.compute_pct for launch in launches],
        "sol_memory_pct": [launch.speed.memory_pct for launch in launches],
        "roof_fraction": [launch.judged.roof_fraction for launch in launches if launch.judged],
    }
    known = {name: [v for v in values if v is not None] for name, values in figures.items()}
    medians = {name: float(np.median(values)) for name, values in known.items() if values}
    return WorkSummary(
        "kernel",
        name,
        float(len(launches)),
        sum(launch.duration_ns or 0 for launch in launches),
        figures=medians,
    )


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
        # reports are read one by one a worker
        every = {report.path: report for each in measured for report in each.reports}
        read = ReportSet(list(every.values()), **measured[0].settings).map(_measured).results
        parts = {report.path: value for report, value in read}
        return [
            _summary(run.name, [parts[one.path] for one in each.reports if one.path in parts])
            for run, each in zip(runs, measured, strict=True)
        ]
    found = answer_each(requests, Question(report_part, run_summary)) if requests else []
    return [replace(summary, name=run.name) for run, summary in zip(runs, found, strict=True)]
