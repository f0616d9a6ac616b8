"""info: what each report is: who, where, when, with what, and what to be careful about."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from nsightpy.query import Common, SystemReport, Top
from nsightpy.query.command import command
from nsightpy.query.request import Request, reading_options
from nsightpy.readers.activity import Extent
from nsightpy.report_sets.by_tool import AnyPaths, open_ncu_reports, split_by_tool
from nsightpy.report_sets.report_set import ReportSet
from nsightpy.reports.one_file import MemorySnapshot, NcuReport
from nsightpy.results import Field, Row, Table, rows_of
from nsightpy.results.notes import texts

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

    report: str
    kind: str
    ranks: tuple[int | None, ...]
    rank_sources: tuple[str, ...]
    notes: Sequence[object]
    host: str = ""
    gpus: tuple[str, ...] = ()
    devices: int | None = None
    processes: int | None = None
    tool_version: str = ""
    schema_version: str = ""
    start_utc: str | None = None
    duration_ns: int | None = None
    kernels: int | None = None

    @property
    def rank(self) -> int | str:
        """The only rank of its processes, or all of them."""
        ranks = sorted(rank for rank in self.ranks if rank is not None)
        return ranks[0] if len(ranks) == 1 else ",".join(map(str, ranks))

    @property
    def row(self) -> Row:
        """Its row of FIELDS; an empty text is not known."""
        (row,) = rows_of(
            FIELDS,
            [self],
            rank_source=lambda info: "; ".join(info.rank_sources),
            gpu=lambda info: gpu_text(info.gpus),
            warnings=lambda info: " | ".join(map(str, info.notes)),
        )
        return tuple(None if value == "" else value for value in row)


@command(*FIELDS, text="nsightpy.render.text.terminal:print_cards")
def info(reports: AnyPaths, *, top: Top = None, **common: Unpack[Common]) -> Table:
    """With the evidence for the rank, and what to be careful about. Reports of Nsight Compute and
    memory snapshots of PyTorch have a row, too.
    """
    systems, compute, snapshots = split_by_tool(reports)
    infos: list[ReportInfo] = []
    sets: list[ReportSet[Any]] = []
    if systems or not (compute or snapshots):
        request = Request.of(systems, **common)
        infos += request.map(report_info, ranked=True).values
        sets.append(request.ranks)
    if compute:
        sets.append(open_ncu_reports(compute, **reading_options(common)))
        infos += sets[-1].map(_ncu_info).values
    infos += map(_snapshot_info, snapshots)
    inputs = (*(path for each in sets for path in each.inputs), *(str(s.path) for s in snapshots))
    left_out = texts(note for each in sets for note in each.failure_notes)
    rows = tuple(info.row for info in infos)
    return Table("info", FIELDS, rows, inputs, left_out).first(top or None)


def report_info(report: SystemReport, extent: Extent | None = None) -> ReportInfo:
    """What one report says about itself, from its small tables and the extent of its GPU work."""
    ranks = [report.rank_of(pid) for pid in report.pids]
    extent = extent or report.extent
    duration = report.session.duration_ns
    if duration is None and extent.start_ns is not None and extent.end_ns is not None:
        duration = extent.end_ns - extent.start_ns
    gpus = used_gpus(report, extent.places)  # first, as it notes devices that name no GPU
    return ReportInfo(
        report=str(report.path),
        kind=report.kind,
        ranks=tuple(rank for rank, _ in ranks),
        rank_sources=tuple(dict.fromkeys(source for _, source in ranks if source)),
        notes=tuple(report.notes),
        host=report.session.host,
        gpus=gpus,
        devices=len(extent.places),
        processes=len(report.pids),
        tool_version=report.tool_version,
        schema_version=report.session.schema_version,
        start_utc=report.session.start_utc,
        duration_ns=duration,
        kernels=extent.kernels,
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


def _ncu_info(report: NcuReport) -> ReportInfo:
    launches = report.frame("launches")
    return ReportInfo(
        str(report.path),
        "ncu",
        (report.rank,),
        (report.rank_source,),
        report.notes,
        gpus=tuple(name for name in launches.labels("gpu").values if name),
        tool_version=report.tool_version,
        kernels=launches.rows,
    )


def _snapshot_info(snapshot: MemorySnapshot) -> ReportInfo:
    of_rank = ((snapshot.rank,), (snapshot.rank_source,))
    notes = (*snapshot.facts, *snapshot.notes)
    devices = len(snapshot.devices)
    return ReportInfo(str(snapshot.path), "snapshot", *of_rank, notes, devices=devices)
