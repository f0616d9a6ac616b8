"""The summaries of runs that Nsight Compute measured: time, speed of light and roof by kernel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from nsightpy.analysis.roofline.points import PROFILED, launch_rooflines
from nsightpy.errors import NsightpyError
from nsightpy.report_sets.report_set import ReportSet
from nsightpy.reports.ncu import NcuReport
from nsightpy.results.rooflines import RooflineLaunch
from nsightpy.results.run_summary import PARTS, RunSummary, UnitSummary, WorkSummary
from nsightpy.units import format_count

# The launches of a report, the version of ncu, its notes.
_Measured: TypeAlias = tuple[list[RooflineLaunch], str, list[str]]


def ncu_summaries(names: Sequence[str], runs: Sequence[ReportSet[NcuReport]]) -> list[RunSummary]:
    """The summaries of some runs; reports are read one by one a worker."""
    every = {report.path: report for run in runs for report in run.reports}
    together = ReportSet(list(every.values()), **runs[0].settings)
    measured = {report.path: value for report, value in together.map(_measured).results}
    return [
        _summary(name, [measured[r.path] for r in run.reports if r.path in measured])
        for name, run in zip(names, runs, strict=True)
    ]


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
    medians = {}
    for figure, values in figures.items():
        measured = [value for value in values if value is not None]
        if measured:
            medians[figure] = float(np.median(measured))
    return WorkSummary(
        "kernel",
        name,
        float(len(launches)),
        sum(launch.duration_ns or 0 for launch in launches),
        figures=medians,
        shapes=tuple(sorted({f"{one.grid} x {one.block}" for one in launches if one.grid})),
    )
