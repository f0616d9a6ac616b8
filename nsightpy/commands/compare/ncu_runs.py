"""The summaries of runs that Nsight Compute measured: time, speed of light and roof by kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsightpy.analysis.comparison.kernel_names import category_of
from nsightpy.analysis.roofline.points import PROFILED, launch_rooflines
from nsightpy.errors import NsightpyError
from nsightpy.report_sets.report_set import ReportSet
from nsightpy.reports.ncu import NcuReport
from nsightpy.results.rooflines import RooflineLaunch
from nsightpy.results.run_summary import PARTS, RunSummary, UnitSummary, WorkSummary
from nsightpy.units import format_count

MOST_LAUNCHES = 3_000


def ncu_summaries(names: Sequence[str], runs: Sequence[ReportSet[NcuReport]]) -> list[RunSummary]:
    """The summaries of some runs; reports are read one by one a worker."""
    first = runs[0]
    every = {report.path: report for run in runs for report in run.reports}
    together = ReportSet(
        list(every.values()), jobs=first.jobs, dask=first.dask, on_error=first.on_error
    )
    by_report = {report.path: value for report, value in together.map(_launches).results}
    return [
        _summary(
            name, [by_report[report.path] for report in run.reports if report.path in by_report]
        )
        for name, run in zip(names, runs, strict=True)
    ]


def _launches(report: NcuReport) -> tuple[list[RooflineLaunch], str, tuple[str, ...]]:
    tables = report.tables
    launches = launch_rooflines(tables.launches, tables.metrics, tables.rules, clock=PROFILED)
    return launches, report.tool_version, tuple(report.notes)


def _summary(
    name: str, parts: Sequence[tuple[list[RooflineLaunch], str, tuple[str, ...]]]
) -> RunSummary:
    launches = [launch for of_report, _, _ in parts for launch in of_report if launch.duration_ns]
    if not launches:
        raise NsightpyError(
            f"{name}: holds no launch with a duration: there is nothing to compare.\n  "
            "Collect gpu__time_duration.sum, as every --set of ncu does."
        )
    by_name: dict[str, list[RooflineLaunch]] = {}
    for launch in launches:
        by_name.setdefault(launch.name, []).append(launch)
    works = tuple(_work(kernel, launches_of_name) for kernel, launches_of_name in by_name.items())
    places = {work.name: place for place, work in enumerate(works)}
    total = sum(work.total_ns for work in works)
    order = tuple(places[launch.name] for launch in launches[:MOST_LAUNCHES])
    unit = UnitSummary(total, (total, *(0,) * (len(PARTS) - 1)), 1, (), works, order)
    notes = tuple(dict.fromkeys(note for _, _, notes in parts for note in notes))
    return RunSummary("ncu", name, {"launch": unit}, _circumstances(launches, parts), notes)


def _work(name: str, launches: Sequence[RooflineLaunch]) -> WorkSummary:
    """One kernel: all its launches, and medians of what was measured of them."""
    times = [launch.duration_ns or 0 for launch in launches]
    figures: dict[str, list[float]] = {}
    for launch in launches:
        speed, judged = launch.speed, launch.judged
        roof = None if judged is None else judged.roof_fraction
        known = {
            "sol_compute_pct": speed.compute_pct,
            "sol_memory_pct": speed.memory_pct,
            "roof_fraction": roof,
        }
        for figure, value in known.items():
            if value is not None:
                figures.setdefault(figure, []).append(value)
    medians = {figure: float(np.median(values)) for figure, values in figures.items()}
    return WorkSummary(
        "kernel",
        name,
        float(len(times)),
        sum(times),
        category=category_of(name),
        figures=medians,
        shapes=tuple(sorted({f"{one.grid} x {one.block}" for one in launches if one.grid})),
    )


def _circumstances(
    launches: Sequence[RooflineLaunch],
    parts: Sequence[tuple[list[RooflineLaunch], str, tuple[str, ...]]],
) -> dict[str, str]:
    clocks = sorted({launch.machine.clock_hz for launch in launches if launch.machine.clock_hz})
    shown = ""
    if clocks:
        low, high = clocks[0] / 1e6, clocks[-1] / 1e6
        shown = f"{low:.0f} MHz" if round(low) == round(high) else f"{low:.0f} to {high:.0f} MHz"
    return {
        "GPU": ", ".join(sorted({launch.machine.name for launch in launches})),
        "SM clock of the profile": shown,
        "profiler": ", ".join(sorted({version for _, version, _ in parts if version})),
        "launches measured": format_count(len(launches)),
    }
