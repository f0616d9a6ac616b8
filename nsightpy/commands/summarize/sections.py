"""What the sections of a summary are made of: each report's part, and the parts together."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nsightpy.analysis import ranking
from nsightpy.analysis.communication import is_communication, operation_of
from nsightpy.analysis.findings.evidence import JobEvidence
from nsightpy.analysis.findings.work_evidence import COLUMNS as SHAPE_COLUMNS
from nsightpy.analysis.kernel_categories import category_of
from nsightpy.analysis.memory.copies import believable
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.analysis.nvtx.ranges import tally_ranges
from nsightpy.analysis.tally import Statistics, Tally, merge
from nsightpy.commands.breakdown.command import FIELDS as BREAKDOWN_FIELDS, budget_row
from nsightpy.commands.findings.report_evidence import ReportEvidence, report_evidence
from nsightpy.commands.info import ReportInfo, gpu_text, report_info
from nsightpy.commands.memory import fastest_memory
from nsightpy.frames import Frame
from nsightpy.query import Parts, Request, Scope, SystemReport
from nsightpy.query.device_time import MEMORY_COLUMNS, read_work
from nsightpy.query.steps import began_in
from nsightpy.readers.activity import Extent, extent_of_frames
from nsightpy.results import FINDING_FIELDS, Field, Row, Table, Value, fields_in, rank_order
from nsightpy.results.keys import KERNEL, MEMORY, RANGE, row_keys

TOP_RANGES = 4
# The columns of kernels that the rankings need.
TALLIED = ("start_ns", "end_ns", "pid", "device", "name")
SECTIONS: Mapping[str, tuple[Field, ...]] = {
    "header": (
        Field("reports"),
        Field("gpu", "text"),
        *fields_in("count", "devices", "processes", "ranks"),
        *fields_in("text", "hosts", "tool_version", "start_utc"),
        Field("duration_ns", "time"),
        Field("kernels"),
        Field("outside_ns", "time"),
        *fields_in("text", "steady", "critical_path"),
        *fields_in("share", "replay_error", "unexplained"),
    ),
    "ranks": (
        Field("rank", "id"),
        *fields_in("text", "report", "host"),
        Field("device", "id"),
        Field("rank_source", "text"),
    ),
    "breakdown": BREAKDOWN_FIELDS,
    "kernels": ranking.fields_of(ranking.KERNELS),
    "collectives": (
        Field("operation", "name", importance=1, place=-1),
        Field("group", "text"),
        Field("ranks", importance=5),
        Field("instances", heading="count", importance=3),
        Field("bytes", "bytes"),
        Field("duration_med_ns", "time", 1, heading="median", importance=4),
        Field("total_ns", "time", importance=2, place=1),
    ),
    "memory": ranking.fields_of(ranking.MEMORY),
    "nvtx": (
        Field("range", "name", importance=1, place=-1),
        Field("domain", "text", importance=5),
        Field("style", "text", own=True),
        Field("instances", heading="count", importance=3),
        Field("total_range_ns", "time", heading="host time", importance=2, place=1),
        Field("range_med_ns", "time", 1, heading="median", importance=4),
    ),
    "findings": FINDING_FIELDS,
    "categories": (
        Field("category", "text", own=True),
        Field("total_ns", "time"),
        Field("share", "share", 4),
    ),
}


@dataclass(frozen=True)
class Part:
    """What one report contributes."""

    info: ReportInfo
    extent: Extent
    kernels: Tally
    memory: list[Tally]
    fastest_memory: int
    collectives: Tally
    ranges: Tally
    facts: ReportEvidence


def read_part(report: SystemReport, scope: Scope) -> Part:
    """Everything that the summary needs of one report."""
    ranges = scope.read(report, "nvtx_ranges", RANGE_COLUMNS)
    work = read_work(report, scope, MEMORY_COLUMNS, SHAPE_COLUMNS)
    facts = report_evidence(report, scope, work, ranges)
    extent = extent_of_frames(work.kernels.rows, work)
    # one window for one answer: that of the findings
    steady = {place: state.window for place, state in facts.steady.items()}
    kernels, operations, named = (
        frame.take(began_in(frame, steady)) if steady else frame
        for frame in (
            scope.narrow(report, work.kernels).select(TALLIED),
            scope.narrow(report, work.operations),
            ranges,
        )
    )
    collectives = kernels.take(is_communication(kernels.labels("name")))
    operation = collectives.labels("name").used().renamed(operation_of)
    called = Frame({**collectives, "operation": operation})
    by_process = ranking.tally_durations(called, ("operation", "pid"))
    keys = ((operation, f"{report.path}:{pid}") for operation, pid in by_process.keys)
    return Part(
        info=report_info(report, extent),
        extent=extent,
        kernels=ranking.tally_durations(kernels, ["name"]),
        memory=ranking.tallies(operations, ["operation"], ("duration", "bytes")),
        fastest_memory=fastest_memory(report),
        collectives=replace(by_process, keys=tuple(keys)),
        ranges=tally_ranges(named),
        facts=facts,
    )


def sections_of(parts: Parts[Part], facts: JobEvidence, kernels: int) -> dict[str, Table]:
    """The sections that are tables; of kernels so many rows."""
    values = parts.values
    devices = sorted(facts.devices, key=lambda device: (*rank_order(device.rank), device.device))
    statistics = merge([part.kernels for part in values]).statistics()
    ranges = merge([part.ranges for part in values]).statistics()
    rows: dict[str, Iterable[Row]] = {
        "ranks": sorted(_ranks(parts), key=lambda row: (*rank_order(row[0]), row[1], row[3])),
        "breakdown": (budget_row(d.rank, d.device, d.budget, d.causes or None) for d in devices),
        # no keys: sizes are not known here, so that they would not be those of `collectives`
        "collectives": _collectives(merge([part.collectives for part in values])),
        "nvtx": ranges.rows("instances", "total", "median")[:TOP_RANGES],
        "categories": _categories(statistics),
    }
    made = {name: Table(name, SECTIONS[name], tuple(each)) for name, each in rows.items()}
    ranked = ranking.ranked("kernels", ranking.KERNELS, {"duration": statistics}).first(kernels)
    keys = row_keys(RANGE, "range", "domain")
    made |= {
        "kernels": replace(ranked, identity=row_keys(KERNEL, "Name")),
        "memory": _memory(values),
        "nvtx": replace(made["nvtx"], identity=keys),
    }
    return {name: made[name] for name in SECTIONS if name in made}


def _ranks(parts: Parts[Part]) -> Iterator[Row]:
    """Where each device's work ran."""
    for report, part in parts.results:
        host, source = part.info.host or None, part.info.rank_source or None
        for row in part.facts.devices.values():
            yield row.rank, str(report.path), host, row.device, source


def _categories(kernels: Statistics) -> Iterator[Row]:
    """The time of all kernels by what they compute, most of it first."""
    sums = Counter[str]()
    for name, total in kernels.rows("total"):
        sums[category_of(str(name))] += total
    for category, total in sorted(sums.items(), key=lambda each: (-each[1], each[0])):
        yield category, total, total / max(sums.total(), 1)


def _collectives(every: Tally) -> Iterator[Row]:
    """Communication kernels by operation, most time first; ranks: how many took part."""
    ranks = Counter(operation for operation, _ in every.keys)
    by_operation = merge([replace(every, keys=tuple(key[:1] for key in every.keys))]).statistics()
    for operation, count, median, total in by_operation.rows("instances", "median", "total"):
        yield operation, None, ranks[operation], count, None, median, total


def _memory(parts: Sequence[Part]) -> Table:
    """Copies and memory sets by time."""
    time, sizes = (merge([part.memory[which] for part in parts]).statistics() for which in (0, 1))
    fastest = max((part.fastest_memory for part in parts), default=0)
    measures = {"duration": time, "bytes": sizes}
    table = believable(ranking.ranked("memory", ranking.MEMORY, measures), fastest)
    return replace(table, identity=row_keys(MEMORY, "Operation"))


def header_of(request: Request, parts: Sequence[Part]) -> dict[str, Value]:
    """Who, where, when, with what: over all reports."""
    infos = [part.info for part in parts]
    gpus = tuple(name for info in infos for name in info.gpus)
    durations = [info.duration_ns for info in infos if info.duration_ns is not None]
    starts = [info.start_utc for info in infos if info.start_utc is not None]
    versions = dict.fromkeys(info.tool_version for info in infos if info.tool_version)
    hosts = dict.fromkeys(info.host for info in infos if info.host)
    return {
        "reports": len(infos),
        "gpu": gpu_text(gpus) or None,
        "devices": sum(info.devices or 0 for info in infos),
        "processes": sum(info.processes or 0 for info in infos),
        "ranks": sum(rank is not None for info in infos for rank, _ in info.ranks),
        "hosts": ", ".join(hosts) or None,
        "tool_version": ", ".join(versions) or None,
        "start_utc": min(starts, default=None),
        "duration_ns": max(durations, default=None),
        "kernels": sum(info.kernels or 0 for info in infos),
        "outside_ns": _outside_ns(request, parts),
    }


def _outside_ns(request: Request, parts: Sequence[Part]) -> int | None:
    """How much of a capture lies before the first and after the last GPU work, in ns.

    The least of all reports; None where the question is about a stretch of time, or where lengths
    are not known.
    """
    if request.scope.is_part:
        return None
    spans = ((part.info.duration_ns, part.extent.start_ns, part.extent.end_ns) for part in parts)
    lengths = [
        whole - (end - start)
        for whole, start, end in spans
        if not (whole is None or start is None or end is None)
    ]
    return max(min(lengths), 0) if lengths else None
