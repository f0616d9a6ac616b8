"""info: what each report is: who, where, when, with what, and what to be careful about."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from nsightpy.commands.info.ncu_rows import AnyPaths, ncu_rows, snapshot_row, split_by_tool
from nsightpy.query.request import Common, Request
from nsightpy.query.signature import command_function
from nsightpy.readers.extent import Extent
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Table, Value, fields_in

FIELDS = (
    Field("report", "text"),
    Field("kind", "text", own=True),
    Field("rank", "id"),
    *fields_in("text", "rank_source", "host", "gpu"),
    Field("devices"),
    Field("processes"),
    *fields_in("text", "tool_version", "schema_version", "start_utc"),
    Field("duration_ns", "ns"),
    Field("kernels"),
    Field("warnings", "text"),
)


@dataclass(frozen=True, slots=True)
class ReportInfo:
    """What one report is; times in ns, None where the export does not say."""

    kind: str
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


@command_function
def info(reports: AnyPaths, **common: Unpack[Common]) -> Table:
    """One row per report: rank and its evidence, host, GPUs, versions, length, warnings.

    Of an Nsight Compute report: rank, GPU, version, how many launches, warnings. Of a memory
    snapshot of PyTorch: rank, devices, warnings.
    """
    systems, compute, snapshots = split_by_tool(reports)
    rows, inputs, failures = ncu_rows(compute, **common) if compute else ([], [], [])
    rows += map(snapshot_row, snapshots)
    inputs += [str(snapshot.path) for snapshot in snapshots]
    if systems or not (compute or snapshots):
        request = Request.of(systems, **common)
        infos = request.map(report_info, ranked=True).results
        rows = [*(_row(str(report.path), facts) for report, facts in infos), *rows]
        inputs = [*request.ranks.inputs, *inputs]
        failures = [*request.ranks.failure_notes, *failures]
    return Table("info", FIELDS, tuple(rows), tuple(inputs), tuple(failures))


def report_info(report: SystemReport, extent: Extent | None = None) -> ReportInfo:
    """What one report says about itself, from its small tables and the extent of its GPU work."""
    ranks = [report.rank_of(pid) for pid in report.pids]
    extent = extent or report.extent
    duration = report.session.duration_ns
    if duration is None and extent.start_ns is not None and extent.end_ns is not None:
        duration = extent.end_ns - extent.start_ns
    return ReportInfo(
        kind=report.kind,
        ranks=tuple(rank for rank, _ in ranks),
        rank_sources=tuple(dict.fromkeys(source for _, source in ranks if source)),
        host=report.session.host,
        gpus=used_gpus(report, extent.places),
        devices=len(extent.places),
        pids=tuple(report.pids),
        tool_version=report.tool_version,
        schema_version=report.session.schema_version,
        start_utc=report.session.start_utc,
        duration_ns=duration,
        kernels=extent.kernels,
        notes=tuple(report.notes),
    )


def used_gpus(report: SystemReport, places: Collection[tuple[int, int]]) -> tuple[str, ...]:
    """Product names of the devices in use, one for each; of all devices when none did work."""
    devices = report.frame("devices").tuples("pid", "device", "name")
    by_place = {(pid, device): name for pid, device, name in devices}
    if not places:
        return tuple(name for name in by_place.values() if name)
    gpus = (by_place.get(place) or by_place.get((0, place[1]), "") for place in sorted(places))
    return tuple(name for name in gpus if name)


def _row(path: str, facts: ReportInfo) -> tuple[Value, ...]:
    known = [rank for rank in facts.ranks if rank is not None]
    return (
        path,
        facts.kind,
        known[0] if len(known) == 1 else ",".join(map(str, sorted(known))) or None,
        "; ".join(facts.rank_sources) or None,
        facts.host or None,
        gpu_text(facts.gpus) or None,
        facts.devices,
        len(facts.pids),
        facts.tool_version or None,
        facts.schema_version or None,
        facts.start_utc,
        facts.duration_ns,
        facts.kernels,
        " | ".join(facts.notes) or None,
    )


def overview(table: Table) -> Table:
    """The same reports, one short row each, for people with many of them."""
    wanted = ("rank", "report", "host", "gpu", "devices", "duration_ns", "kernels", "rank_source")
    places = [table.columns.index(name) for name in wanted]
    fields = tuple(table.fields[place] for place in places)
    rows = (tuple(row[place] for place in places) for row in table.rows)
    named = tuple((row[0], Path(str(row[1])).name, *row[2:]) for row in rows)
    return Table("info", fields, named, table.inputs, table.notes)


def gpu_text(names: tuple[str, ...]) -> str:
    """GPU names with how many of each: "2x NVIDIA H100, Tesla T4"."""
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    return ", ".join(f"{n}x {name}" if n > 1 else name for name, n in counts.items())
