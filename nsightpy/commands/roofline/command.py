"""roofline: kernels against the machine's limits, from Nsight Compute reports of any version."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.roofline.points import MAXIMUM, PROFILED, launch_rooflines, variants
from nsightpy.commands.roofline.choice import of_kernels
from nsightpy.commands.roofline.table import (
    FIELDS,
    ORIGIN,
    SPREAD,
    launch_rows,
    variant_rows,
)
from nsightpy.errors import ReportError, UsageError, require_choice
from nsightpy.frames import Labels
from nsightpy.query.request import Common, reading_options
from nsightpy.query.scope import numbers
from nsightpy.query.signature import command_function
from nsightpy.readers.ceilings import read_ceilings
from nsightpy.report_sets.one_file_sets import NcuPaths, open_ncu_reports
from nsightpy.report_sets.report_set import ReportSet
from nsightpy.reports.ncu import NcuReport
from nsightpy.results import Field
from nsightpy.results.abstention import reworded
from nsightpy.results.rooflines import Roofline, RooflineLaunch

NAMES = ("demangled", "base", "mangled")
ROWS = ("launch", "variant")
_MHZ = re.compile(r"(\d+(?:\.\d+)?)\s*(?:mhz)?", re.IGNORECASE)
MORE_FIELDS = (*ORIGIN, *SPREAD)
MEMBERS = {"kernels": {"type": "array", "items": {"type": "object"}}}


@command_function
def roofline(
    reports: NcuPaths,
    *,
    clock: str | float = PROFILED,
    ceilings: Path | str | None = None,
    by: str = "launch",
    name: str = "demangled",
    kernel_name: str | None = None,
    launch_id: str | int | None = None,
    top: int | None = None,
    **common: Unpack[Common],
) -> Roofline:
    """Every launch, precision and memory level: achieved, peak, intensity, roof; speed of light.

    Rates are FLOP/s and bytes/s, times ns. `clock` is "profiled", "max" or MHz and moves the peaks
    of the SMs, never what was achieved; `ceilings` is a file of measured limits for the picture;
    `top` keeps the longest launches or variants, `nvtx` those inside a range, `kernel_name` those
    of a kernel (a name, * for anything, or regex:EXPRESSION), `launch_id` those with ids (3,7-9);
    `name` is the one that is shown. Rows of several reports end with rank and report. `by`: launch,
    or variant: the launch of median duration speaks for all of its kernel and shape, whose spread
    ends the row. Raises UsageError and ReportError.
    """
    require_choice("name", name, NAMES)
    require_choice("by", by, ROWS)
    if common.get("from_time") is not None or common.get("to_time") is not None:
        raise UsageError("Nsight Compute reports have no timeline: --from and --to mean nothing")
    if common.get("iteration") is not None:
        raise UsageError("Nsight Compute reports have no timeline: --iteration means nothing")
    wanted = parse_clock(clock)
    measured = read_ceilings(ceilings) if ceilings is not None else ()
    opened = _of_ranks(open_ncu_reports(reports, **reading_options(common)), common.get("rank"))
    devices = numbers(common.get("device"), "device")
    parts = opened.map(
        partial(_read, clock=wanted, devices=devices, nvtx=common.get("nvtx"))
    ).values
    read = [launch for launches, _ in parts for launch in launches]
    every = of_kernels(read, kernel_name, launch_id)
    kept = _longest(every, by, top)
    groups = variants(kept)
    shared = _shared_notes([note for _, notes in parts for note in notes], len(opened))
    notes = [*_launch_notes(kept), *_clock_notes(kept)]
    several = len(opened) > 1
    extra: tuple[Field, ...] = ORIGIN if several else ()
    if by == "variant":
        extra, rows = SPREAD, variant_rows(groups, name)
    else:
        rows = launch_rows(kept, name, several=several)
    return Roofline(
        "roofline",
        (*FIELDS, *extra),
        tuple(rows),
        opened.inputs,
        tuple(dict.fromkeys([*opened.failure_notes, *shared, *notes])),
        total_rows=_row_count(every, by),
        launches=tuple(kept),
        variants=groups,
        ceilings=measured,
        naming=name,
        by=by,
    )


def parse_clock(clock: str | float) -> str | float:
    """ "profiled", "max", or Hz of a clock in MHz. Raises UsageError."""
    if isinstance(clock, str):
        if clock in (PROFILED, MAXIMUM):
            return clock
        match = _MHZ.fullmatch(clock.strip())
        clock = float(match[1]) if match else 0.0
    if not 0 < clock < 100_000:
        raise UsageError("clock must be profiled, max, or the SM clock in MHz, as 1755")
    return clock * 1e6


def _read(
    report: NcuReport, *, clock: str | float, devices: frozenset[int] | None, nvtx: object = None
) -> tuple[list[RooflineLaunch], list[str]]:
    """The rooflines of one report and its notes; what other processes send back."""
    tables = report.tables
    launches = tables.launches
    if isinstance(nvtx, str):
        launches = launches.take(in_range(launches.labels("nvtx"), nvtx))
    rooflines = launch_rooflines(launches, tables.metrics, tables.rules, clock=clock)
    mine = [
        dataclasses.replace(
            launch,
            report=str(report.path),
            rank=report.rank,
            tool_version=tables.tool_version,
        )
        for launch in rooflines
        if devices is None or launch.device in devices
    ]
    return mine, report.notes


def in_range(nvtx: Labels, wanted: str) -> NDArray[np.bool_]:
    """Which launches ran inside a range RANGE[@DOMAIN]; * stands for anything."""
    name, _, domain = wanted.partition("@")
    pattern = re.compile(".*".join(map(re.escape, name.split("*"))))

    def inside(text: str) -> bool:
        stacks = [each.partition("@") for each in text.split(", ")]
        ranges = (name for path, _, where in stacks if where == domain for name in path.split("/"))
        return any(pattern.fullmatch(name) for name in ranges if name)

    return nvtx.where(inside)


def _of_ranks(reports: ReportSet[NcuReport], spec: str | int | None) -> ReportSet[NcuReport]:
    ranks = numbers(spec, "rank")
    kept = reports.only(lambda report: ranks is None or report.rank in ranks)
    if not len(kept):
        raise ReportError(
            reports.reports[0].path,
            f"is not of rank {spec}",
            "only the file's name gives a rank.",
        )
    return kept


def _longest(launches: list[RooflineLaunch], by: str, top: int | None) -> list[RooflineLaunch]:
    """All launches; the longest, in the order of the reports, or those of the first variants."""
    if top is None:
        return launches
    if by == "variant":
        return [launch for variant in variants(launches)[:top] for launch in variant.launches]
    places = sorted(range(len(launches)), key=lambda i: (-(launches[i].duration_ns or 0), i))[:top]
    return [launches[place] for place in sorted(places)]


def _row_count(launches: Sequence[RooflineLaunch], by: str) -> int:
    """The rows of so many launches: one for each point, one for a launch without any."""
    if by == "variant":
        launches = [variant.typical for variant in variants(launches)]
    return sum(max(len(launch.points), 1) for launch in launches)


def _shared_notes(notes: Sequence[str], reports: int) -> list[str]:
    """The reports' own notes, each once, with how many reports it is about."""
    counts = {note: notes.count(note) for note in dict.fromkeys(notes)}
    if reports == 1:
        return list(counts)
    return [f"{note} ({count} of {reports} reports)" for note, count in counts.items()]


def _launch_notes(launches: Sequence[RooflineLaunch]) -> list[str]:
    """Why points are missing and what to know of those that are there, with the launches' count."""
    texts = [text for launch in launches for text in (*launch.missing, *launch.remarks)]
    notes = []
    for text in dict.fromkeys(texts):
        count = texts.count(text)
        some = "" if count == len(launches) else f"{count} of {len(launches)}: "
        notes.append(reworded(text, partial(_of_launches, some)))
    return notes


def _of_launches(some: str, text: str) -> str:
    return f"{some}{text}" if some else f"{text[0].upper()}{text[1:]}"


def _clock_notes(launches: Sequence[RooflineLaunch]) -> list[str]:
    """At which clocks the peaks are meant, when there are any."""
    clocks = [
        launch.machine.clock_hz for launch in launches if launch.points and launch.machine.clock_hz
    ]
    if not clocks:
        return []
    low, high = min(clocks) / 1e6, max(clocks) / 1e6
    shown = f"{low:.0f} MHz" if round(low) == round(high) else f"{low:.0f} to {high:.0f} MHz"
    kinds = {launch.machine.clock for launch in launches if launch.machine.clock_hz}
    if kinds == {PROFILED}:
        return [f"Peaks are at the SM clock of the profile, {shown}; --clock max asks for more."]
    what = "the maximum SM clock" if MAXIMUM in kinds else "an SM clock"
    text = (
        f"Peaks of the SMs and L1 are at {what} of {shown}, those of L2 and DRAM at the profile's "
        "clocks; what was achieved is as profiled."
    )
    return [text]
