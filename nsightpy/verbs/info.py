"""info: what each report is: who, where, when, with what, and what to be careful about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import sqlalchemy as sa

from nsightpy.rank_set import Paths
from nsightpy.readers.nsys import KERNEL
from nsightpy.readers.session import GPU_TABLES
from nsightpy.reports import NsysReport
from nsightpy.results import Field, Table, Value
from nsightpy.verbs.request import Common, Request

FIELDS = (
    Field("report", "text"),
    Field("kind", "text"),
    Field("rank", "id"),
    Field("rank_source", "text"),
    Field("host", "text"),
    Field("gpu", "text"),
    Field("devices"),
    Field("processes"),
    Field("tool_version", "text"),
    Field("schema_version", "text"),
    Field("start_utc", "text"),
    Field("duration_ns", "ns"),
    Field("kernels"),
    Field("warnings", "text"),
)


@dataclass(frozen=True, slots=True)
class ReportInfo:
    """What one report is; times in ns, None where the export does not tell."""

    ranks: tuple[int | None, ...]
    rank_sources: tuple[str, ...]
    host: str
    gpus: tuple[str, ...]
    devices: int
    pids: tuple[int, ...]
    tool_version: str
    schema_version: str
    start_utc: str | None
    duration_ns: int | None
    kernels: int
    notes: tuple[str, ...]


def info(reports: Paths, **common: Unpack[Common]) -> Table:
    """One row per report: rank and its evidence, host, GPUs, versions, length, warnings."""
    request = Request.of(reports, **common)
    found = request.map(report_info, ranked=True).results
    rows = tuple(_row(str(report.path), one) for report, one in found)
    failures = [f"left out: {error.path}: {error.problem}" for error in request.ranks.failures]
    return Table("info", FIELDS, rows, request.ranks.inputs, tuple(failures))


def report_info(report: NsysReport) -> ReportInfo:
    """What one report says about itself, from its small tables and a few counts."""
    ranks = [report.rank_of(pid) for pid in report.pids]
    places, first, last = _extent(report)
    duration = report.session.duration_ns
    if duration is None and first is not None and last is not None:
        duration = last - first
    return ReportInfo(
        ranks=tuple(rank for rank, _ in ranks),
        rank_sources=tuple(dict.fromkeys(source for _, source in ranks if source)),
        host=report.session.host,
        gpus=used_gpus(report, places),
        devices=len(places),
        pids=tuple(report.pids),
        tool_version=report.tool_version,
        schema_version=report.session.schema_version,
        start_utc=report.session.start_utc,
        duration_ns=duration,
        kernels=report.export.count(KERNEL),
        notes=tuple(report.notes),
    )


def used_gpus(report: NsysReport, places: set[tuple[int, int]]) -> tuple[str, ...]:
    """Product names of the devices in use, one for each; of all devices when none did work."""
    frame = report.frame("devices")
    pids, ordinals, names = frame.ints("pid"), frame.ints("device"), frame.labels("name")
    by_place = {
        (pid, ordinal): names[row]
        for row, (pid, ordinal) in enumerate(zip(pids.tolist(), ordinals.tolist(), strict=True))
    }
    if not places:
        return tuple(name for name in by_place.values() if name)
    found = (by_place.get(place) or by_place.get((0, place[1]), "") for place in sorted(places))
    return tuple(name for name in found if name)


def _extent(report: NsysReport) -> tuple[set[tuple[int, int]], int | None, int | None]:
    """The (pid, device) places with GPU work, and its first start and last end in ns."""
    export = report.export
    places: set[tuple[int, int]] = set()
    bounds: list[tuple[int, int]] = []
    for name in GPU_TABLES:
        table = export.file.tables.get(name)
        if table is None or not {"start", "end", "deviceId"} <= set(table.c.keys()):
            continue
        owner: sa.ColumnElement[Any] = (
            table.c.globalPid if "globalPid" in table.c else sa.literal_column("0")
        )
        extremes = [
            function(column)
            for column in (owner, table.c.deviceId)
            for function in (sa.func.min, sa.func.max)
        ]
        ends = (sa.func.min(table.c.start), sa.func.max(table.c.end))
        low_pid, high_pid, low, high, start, end = export.file.rows(sa.select(*extremes, *ends))[0]
        if start is None:
            continue
        bounds.append((int(start), int(end)))
        pairs = (
            [(low_pid, low)]
            if (low_pid, low) == (high_pid, high)
            else export.file.rows(sa.select(owner, table.c.deviceId).distinct())
        )
        places |= {((int(pid or 0) >> 24) & 0xFFFFFF, int(device or 0)) for pid, device in pairs}
    if not bounds:
        return places, None, None
    return places, min(start for start, _ in bounds), max(end for _, end in bounds)


def _row(path: str, one: ReportInfo) -> tuple[Value, ...]:
    known = [rank for rank in one.ranks if rank is not None]
    return (
        path,
        "nsys",
        known[0] if len(known) == 1 else ",".join(map(str, sorted(known))) or None,
        "; ".join(one.rank_sources) or None,
        one.host or None,
        gpu_text(one.gpus) or None,
        one.devices,
        len(one.pids),
        one.tool_version or None,
        one.schema_version or None,
        one.start_utc,
        one.duration_ns,
        one.kernels,
        " | ".join(one.notes) or None,
    )


def gpu_text(names: tuple[str, ...]) -> str:
    """GPU names with how many of each: "2x NVIDIA H100, Tesla T4"."""
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    return ", ".join(f"{n}x {name}" if n > 1 else name for name, n in counts.items())
