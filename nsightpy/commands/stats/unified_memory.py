"""Summaries of unified memory: um_total_sum and um_cpu_page_faults_sum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.ranking import MEGA
from nsightpy.analysis.tally import Statistics, tally
from nsightpy.commands.stats.summary import Shown, Summary, Tallies
from nsightpy.frames import Frame
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Row
from nsightpy.units import round_half_up

_COPIES = ("start_ns", "end_ns", "pid", "device", "correlation_id", "operation", "bytes")
_FAULTS = ("start_ns", "end_ns", "pid", "device", "address", "faults", "instruction")
_MIGRATIONS = {
    "[CUDA memcpy Unified Host-to-Device]": "HtoD",
    "[CUDA memcpy Unified Device-to-Host]": "DtoH",
}
HOST, DEVICE = "CPU", "GPU"


def _total(report: SystemReport, scope: Scope) -> Tallies:
    """Bytes moved by direction, faults by side, addresses of faults; each under one key."""
    copies = scope.narrow(report, report.frame("memory_operations", _COPIES))
    moved = copies.take(copies.labels("operation").equals(list(_MIGRATIONS)))
    groups = group_by(moved, ("operation",))
    directions = tuple((_MIGRATIONS.get(str(operation), ""),) for (operation,) in groups.keys)
    faults = scope.narrow(report, report.frame("page_faults", _FAULTS))
    on_gpu = (faults.ints("device") >= 0).astype(np.int32)
    same = np.zeros(faults.rows, dtype=np.int32)
    return (
        tally(groups.codes, moved.ints("bytes"), directions),
        tally(on_gpu, faults.ints("faults"), ((HOST,), (DEVICE,))),
        tally(same, faults.ints("address"), (("address",),)),
    )


def _total_shown(parts: Sequence[Statistics]) -> Shown:
    moved, faults, addresses = (
        {key[0]: group for group, key in enumerate(part.keys)} for part in parts
    )
    fields = (
        *(Field(f"Total {way} Migration Size (MB)", "MB", 3) for way in ("HtoD", "DtoH")),
        *(Field(f"Total {side} Page Faults") for side in (HOST, DEVICE)),
        *(Field(f"{which} Virtual Address", "text") for which in ("Minimum", "Maximum")),
    )
    if not moved and not faults:
        return fields, []
    sizes = [int(parts[0].total[moved[way]]) if way in moved else 0 for way in ("HtoD", "DtoH")]
    counts = [int(parts[1].total[faults[s]]) if s in faults else 0 for s in (HOST, DEVICE)]
    bounds: list[str | None] = [None, None]
    if addresses:
        bounds = [hex(int(part[0])) for part in (parts[2].minimum, parts[2].maximum)]
    return fields, [(*(round_half_up(size / MEGA, 3) for size in sizes), *counts, *bounds)]


def _instructions(report: SystemReport, scope: Scope) -> Tallies:
    faults: Frame = scope.narrow(report, report.frame("page_faults", _FAULTS))
    mine = faults.take(faults.ints("device") < 0)
    groups = group_by(mine, ("instruction",))
    return (tally(groups.codes, mine.ints("faults"), groups.keys),)


def _instructions_shown(parts: Sequence[Statistics]) -> Shown:
    (found,) = parts
    rows: list[Row] = [
        (int(found.total[group]), hex(int(key[0] or 0))) for group, key in enumerate(found.keys)
    ]
    rows.sort(key=lambda row: (-int(row[0] or 0), str(row[1])))
    return (Field("CPU Page Faults"), Field("CPU Instruction Address", "text")), rows


SUMMARIES = {
    "um_total_sum": Summary(
        "Migrations of unified memory and page faults.",
        _total,
        _total_shown,
        "--cuda-um-cpu-page-faults=true --cuda-um-gpu-page-faults=true",
    ),
    "um_cpu_page_faults_sum": Summary(
        "Page faults of processors by instruction.",
        _instructions,
        _instructions_shown,
        "--cuda-um-cpu-page-faults=true",
    ),
}
