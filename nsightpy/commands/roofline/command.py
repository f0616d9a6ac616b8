"""roofline: kernels against the machine's limits, from Nsight Compute reports of any version."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Unpack

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.nvtx.membership import wildcard
from nsightpy.analysis.roofline.points import MAXIMUM, PROFILED, launch_rooflines, variants
from nsightpy.commands.roofline.table import (
    FIELDS,
    ORIGIN,
    SPREAD,
    for_people,
    launch_rows,
    variant_rows,
)
from nsightpy.errors import ReportError, UsageError
from nsightpy.frames import Labels
from nsightpy.query import Common, NameStyle, Option, Top
from nsightpy.query.command import command
from nsightpy.query.request import reading_options
from nsightpy.query.scope import numbers
from nsightpy.readers.references import read_ceilings
from nsightpy.report_sets.opening import NcuPaths, open_ncu_reports
from nsightpy.report_sets.report_set import ReportSet
from nsightpy.reports.one_file import NcuReport
from nsightpy.results import Note, Said, with_notes
from nsightpy.results.keys import VARIANT, row_keys
from nsightpy.results.rooflines import Roofline, RooflineLaunch


@command(
    *FIELDS,
    more=(*ORIGIN, *SPREAD),
    keys=row_keys(VARIANT, "kernel", "grid", "block"),
    members={"kernels": {"type": "array", "items": {"type": "object"}}},
    people=for_people,
    text="nsightpy.render.roofline.text:print_roofline",
    picture="nsightpy.render.roofline.plot:roofline_figure",
)
def roofline(
    reports: NcuPaths,
    *,
    by: Annotated[
        str | None,
        Option(
            "Rows of each launch, or of each kernel and shape, at every precision and memory "
            "level; without it people see one row for a kernel and shape.",
            choices=("launch", "variant"),
        ),
    ] = None,
    clock: Annotated[
        str | float, Option("SM clock at which the peaks are meant.", "profiled|max|MHZ")
    ] = PROFILED,
    ceilings: Annotated[
        Path | str | None, Option("Measured limits to draw: lines of name, value, unit.", "FILE")
    ] = None,
    name: NameStyle = "demangled",
    top: Top = None,
    **common: Unpack[Common],
) -> Roofline:
    """Reads .ncu-rep and `ncu --csv`: what was achieved of each roof, speed of light, a verdict.

    Rates are FLOP/s and bytes/s. Another clock moves the peaks of the SMs, never what was achieved.
    Of a kernel and shape the launch of median duration speaks; --top keeps the longest. The picture
    is the roofline and the speed-of-light bars.
    """
    refuse_times(common)
    opened = _of_ranks(open_ncu_reports(reports, **reading_options(common)), common.get("rank"))
    devices = numbers(common.get("device"), "device")
    work = partial(_read, clock=parse_clock(clock), devices=devices, nvtx=common.get("nvtx"))
    parts = opened.map(work).values
    every = [launch for part, _ in parts for launch in part]
    if by == "variant":
        all_groups = variants(every)
        groups, counted = all_groups[:top], [each.typical for each in all_groups]
        kept = every if top is None else [each for group in groups for each in group.launches]
        extra, rows = SPREAD, variant_rows(groups, name)
    else:
        times = [-(launch.duration_ns or 0) for launch in every]
        longest = sorted(range(len(every)), key=times.__getitem__)[:top]
        kept, counted = [every[number] for number in sorted(longest)], every
        groups, extra = variants(kept), ORIGIN if len(opened) > 1 else ()
        rows = launch_rows(kept, name, extra)
    table = Roofline(
        "roofline",
        (*FIELDS, *extra),
        tuple(rows),
        total_rows=sum(max(len(launch.points), 1) for launch in counted),
        launches=tuple(kept),
        variants=groups,
        ceilings=read_ceilings(ceilings) if ceilings is not None else {},
        naming=name,
        by=by or "",
        all_launches=tuple(every),
    )
    notes = _notes(opened, [note for _, notes in parts for note in notes], kept)
    return with_notes(table, opened.inputs, notes)


def refuse_times(common: Common, *more: str) -> None:
    """Raise UsageError for options that mean nothing to reports of Nsight Compute."""
    for name in ("from_time", "to_time", "iteration", *more):
        if common.get(name) is not None:
            option = name.removesuffix("_time")
            raise UsageError(
                f"reports of Nsight Compute have no timeline: --{option} means nothing"
            )


def parse_clock(clock: str | float) -> str | float:
    """ "profiled", "max", or Hz of a clock in MHz. Raises UsageError."""
    if clock in (PROFILED, MAXIMUM):
        return clock
    try:
        megahertz = float(clock)
    except (ValueError, OverflowError):
        megahertz = 0.0
    if not 0 < megahertz < 100_000:
        raise UsageError("clock must be profiled, max, or the SM clock in MHz, as 1755")
    return megahertz * 1e6


def _read(
    report: NcuReport, *, clock: str | float, devices: frozenset[int] | None, nvtx: object = None
) -> tuple[list[RooflineLaunch], list[str]]:
    """The rooflines of one report and its notes; what other processes send back."""
    tables = report.tables
    launches = tables.launches
    if isinstance(nvtx, str):
        launches = launches.take(in_range(launches.labels("nvtx"), nvtx))
    rooflines = launch_rooflines(launches, tables.metrics, tables.rules, clock=clock)
    path, version = str(report.path), tables.tool_version
    own = [
        replace(launch, report=path, rank=report.rank, tool_version=version)
        for launch in rooflines
        if devices is None or launch.device in devices
    ]
    return own, report.notes


def in_range(nvtx: Labels, wanted: str) -> NDArray[np.bool_]:
    """Which launches ran inside a range RANGE[@DOMAIN]; * stands for anything."""
    name, _, domain = wanted.partition("@")
    fits = wildcard(name).match

    def inside(text: str) -> bool:
        stacks = [each.partition("@") for each in text.split(", ")]
        ranges = (name for path, _, where in stacks if where == domain for name in path.split("/"))
        return any(fits(name) for name in ranges if name)

    return nvtx.where(inside)


def _of_ranks(reports: ReportSet[NcuReport], spec: str | int | None) -> ReportSet[NcuReport]:
    ranks = numbers(spec, "rank")
    kept = reports.only(lambda report: ranks is None or report.rank in ranks)
    if not len(kept):
        path, advice = reports.reports[0].path, "only the file's name gives a rank."
        raise ReportError(path, f"is not of rank {spec}", advice)
    return kept


def _notes(
    reports: ReportSet[NcuReport], of_reports: Sequence[str], launches: Sequence[RooflineLaunch]
) -> list[Said]:
    """What reports say, why points are missing and what to know of those that are there, each once
    with how many it is about."""
    of = "" if len(reports) == 1 else f" of {len(reports)} reports)"
    counts = Counter(of_reports)
    notes: list[Said] = [*reports.failure_notes]
    notes += [f"{note} ({count}{of}" if of else note for note, count in counts.items()]
    about = [note for each in launches for note in each.missing]
    about += [Note(remark) for each in launches for remark in each.remarks]
    for note, count in Counter(about).items():
        notes.append(replace(note, reason=f"{count} of {len(launches)}: {note.reason}"))
    return [*notes, *_clock_notes(launches)]


def _clock_notes(launches: Sequence[RooflineLaunch]) -> list[str]:
    """At which clocks the peaks are meant, when there are any."""
    machines = [launch.machine for launch in launches if launch.points]
    clocks = {machine.clock_hz: machine.clock for machine in machines if machine.clock_hz}
    if not clocks:
        return []
    ends = (f"{hz / 1e6:.0f}" for hz in (min(clocks), max(clocks)))
    shown, clock = " to ".join(dict.fromkeys(ends)), clocks[max(clocks)]
    return [f"Peaks are at an SM clock of {shown} MHz ({clock}); --clock asks for another."]
