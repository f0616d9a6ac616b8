"""info: what each report is: who, where, when, with what, and what to be careful about."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Unpack

from nsightpy.query import Common, SystemReport, Top
from nsightpy.query.command import command
from nsightpy.query.request import Request, reading_options
from nsightpy.readers.activity import Extent
from nsightpy.report_sets.opening import AnyPaths, open_ncu_reports, split_by_tool
from nsightpy.report_sets.report_set import ReportSet
from nsightpy.reports.one_file import MemorySnapshot, NcuReport
from nsightpy.results import Field, Row, Table
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
    """What one report is; `ranks` of its processes, each with its evidence. Times are in ns.

    None and empty texts are not known.
    """

    report: str
    kind: str
    ranks: Sequence[tuple[int | None, str]]
    notes: Iterable[object]
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
    def rank_source(self) -> str:
        """What its ranks rest on."""
        return "; ".join(dict.fromkeys(source for _, source in self.ranks if source))

    @property
    def row(self) -> Row:
        """Its row of FIELDS."""
        ranks = sorted(rank for rank, _ in self.ranks if rank is not None)
        texts = {
            "rank": ranks[0] if len(ranks) == 1 else ",".join(map(str, ranks)),
            "rank_source": self.rank_source,
            "gpu": gpu_text(self.gpus),
            "warnings": " | ".join(map(str, self.notes)),
        }
        values = {each.name: getattr(self, each.name) for each in fields(self)} | texts
        return tuple(None if (value := values[each.name]) == "" else value for each in FIELDS)


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
    extent = extent or report.extent
    duration = report.session.duration_ns
    if duration is None and extent.start_ns is not None and extent.end_ns is not None:
        duration = extent.end_ns - extent.start_ns
    gpus = used_gpus(report, extent.places)  # first, as it notes devices that name no GPU
    return ReportInfo(
        report=str(report.path),
        kind=report.kind,
        ranks=[report.rank_of(pid) for pid in report.pids],
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
        [(report.rank, report.rank_source)],
        report.notes,
        gpus=tuple(name for name in launches.labels("gpu").values if name),
        tool_version=report.tool_version,
        kernels=launches.rows,
    )


def _snapshot_info(snapshot: MemorySnapshot) -> ReportInfo:
    ranks, notes = [(snapshot.rank, snapshot.rank_source)], (*snapshot.facts, *snapshot.notes)
    devices = len(snapshot.devices)
    return ReportInfo(str(snapshot.path), "snapshot", ranks, notes, devices=devices)
