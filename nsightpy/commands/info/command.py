"""info: what each report is: who, where, when, with what, and what to be careful about."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Unpack

from nsightpy.query.command import command
from nsightpy.query.options import Common, Top
from nsightpy.query.request import Request, reading_options
from nsightpy.readers.extent import Extent
from nsightpy.report_sets.by_tool import AnyPaths, split_by_tool
from nsightpy.report_sets.one_file_sets import open_ncu_reports
from nsightpy.reports.memory_snapshot import MemorySnapshot
from nsightpy.reports.ncu import NcuReport
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Row, Table, Value
from nsightpy.results.notes import Note, texts

FIELDS = (
    Field("report", "text", importance=1, width=30),
    Field("kind", "text", own=True, importance=2),
    Field("rank", "id", importance=3, place=1),
    Field("rank_source", "text"),
    Field("host", "text", importance=9),
    Field("gpu", "text", heading="GPU", importance=4),
    Field("devices", importance=5),
    Field("processes"),
    Field("tool_version", "text"),
    Field("schema_version", "text"),
    Field("start_utc", "text", heading="start (UTC)", width=27),
    Field("duration_ns", "time", importance=7),
    Field("kernels", importance=6),
    Field("warnings", "text", importance=8, width=40),
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
    notes: tuple[Note, ...]


@command(*FIELDS, text="nsightpy.render.text.terminal:print_cards")
def info(reports: AnyPaths, *, top: Top = None, **common: Unpack[Common]) -> Table:
    """With the evidence for the rank, and what to be careful about. Reports of Nsight Compute and
    memory snapshots of PyTorch have a row, too.
    """
    systems, compute, snapshots = split_by_tool(reports)
    rows: list[Row] = []
    inputs: list[str] = []
    left_out: list[Note] = []
    if systems or not (compute or snapshots):
        request = Request.of(systems, **common)
        facts = request.map(report_info, ranked=True).results
        rows = [_row(str(report.path), **_system_values(each)) for report, each in facts]
        inputs, left_out = [*request.ranks.inputs], [*request.ranks.failure_notes]
    if compute:
        opened = open_ncu_reports(compute, **reading_options(common))
        values = opened.map(_ncu_values).results
        rows += [_row(str(report.path), **each) for report, each in values]
        inputs, left_out = [*inputs, *opened.inputs], [*left_out, *opened.failure_notes]
    for snapshot in snapshots:
        rows.append(_row(str(snapshot.path), **_snapshot_values(snapshot)))
        inputs.append(str(snapshot.path))
    return Table("info", FIELDS, tuple(rows), tuple(inputs), texts(left_out)).first(top or None)


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


def gpu_text(names: tuple[str, ...]) -> str:
    """GPU names with how many of each: "2x NVIDIA H100, Tesla T4"."""
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    return ", ".join(f"{n}x {name}" if n > 1 else name for name, n in counts.items())


def _row(report: str, **values: Value) -> Row:
    """A row of a report; an empty text is not known."""
    given = {"report": report, **values}
    return tuple(None if (value := given.get(f.name)) == "" else value for f in FIELDS)


def _system_values(facts: ReportInfo) -> dict[str, Value]:
    ranks = [rank for rank in facts.ranks if rank is not None]
    return {
        "kind": facts.kind,
        "rank": ranks[0] if len(ranks) == 1 else ",".join(map(str, sorted(ranks))),
        "rank_source": "; ".join(facts.rank_sources),
        "host": facts.host,
        "gpu": gpu_text(facts.gpus),
        "devices": facts.devices,
        "processes": len(facts.pids),
        "tool_version": facts.tool_version,
        "schema_version": facts.schema_version,
        "start_utc": facts.start_utc,
        "duration_ns": facts.duration_ns,
        "kernels": facts.kernels,
        "warnings": " | ".join(map(str, facts.notes)),
    }


def _ncu_values(report: NcuReport) -> dict[str, Value]:
    launches = report.frame("launches")
    return {
        "kind": "ncu",
        "rank": report.rank,
        "rank_source": report.rank_source,
        "gpu": ", ".join(name for name in launches.labels("gpu").values if name),
        "tool_version": report.tool_version,
        "kernels": launches.rows,
        "warnings": " | ".join(report.notes),
    }


def _snapshot_values(snapshot: MemorySnapshot) -> dict[str, Value]:
    return {
        "kind": "snapshot",
        "rank": snapshot.rank,
        "rank_source": snapshot.rank_source,
        "devices": len(snapshot.devices),
        "warnings": " | ".join([*snapshot.facts, *snapshot.notes]),
    }
