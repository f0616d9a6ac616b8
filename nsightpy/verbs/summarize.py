"""summarize: one screen: what ran, where its time went, what to look at, what to type next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

from nsightpy.analysis import ranking
from nsightpy.analysis.communication import is_communication, operation_of
from nsightpy.analysis.findings.checks import findings as checked
from nsightpy.analysis.findings.facts import Facts
from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.memory.rates import believable
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.analysis.nvtx.ranges import tally_ranges
from nsightpy.analysis.tally import Tally, merge, tally
from nsightpy.frames import Frame, Labels
from nsightpy.rank_set import Paths
from nsightpy.reports import NsysReport
from nsightpy.results import Field, Finding, Summary, Table, Value, with_notes
from nsightpy.verbs.breakdown import (
    FIELDS as BREAKDOWN_FIELDS,
)
from nsightpy.verbs.breakdown import (
    RankedBudget,
    attributed,
    budget_order,
    budget_row,
    doubtful_names,
    read_work,
    suspect_note,
)
from nsightpy.verbs.evidence import Gathered, gather
from nsightpy.verbs.extent import Extent, extent_of_frames
from nsightpy.verbs.findings import MEMORY_COLUMNS, facts_of, findings_table
from nsightpy.verbs.idleness import launches_of
from nsightpy.verbs.info import ReportInfo, gpu_text, report_info
from nsightpy.verbs.memory import fastest_memory
from nsightpy.verbs.request import Common, Request
from nsightpy.verbs.scope import Scope

TOP_KERNELS = 5
TOP_RANGES = 4
HOST_COLUMNS = ("start_ns", "end_ns", "pid", "name", "domain", "style")
COLLECTIVE_FIELDS = (
    Field("operation", "text"),
    Field("group", "text"),
    Field("ranks"),
    Field("instances"),
    Field("bytes", "bytes"),
    Field("duration_med_ns", "ns", 1),
    Field("total_ns", "ns"),
)
NVTX_FIELDS = (
    Field("range", "text"),
    Field("domain", "text"),
    Field("style", "text"),
    Field("instances"),
    Field("total_range_ns", "ns"),
    Field("range_med_ns", "ns", 1),
)
RANK_FIELDS = (
    Field("rank", "id"),
    Field("report", "text"),
    Field("host", "text"),
    Field("device", "id"),
    Field("rank_source", "text"),
)


@dataclass(frozen=True)
class _Part:
    """What one report contributes."""

    info: ReportInfo
    extent: Extent
    budgets: list[RankedBudget]
    kernels: Tally
    memory: tuple[Tally, Tally]
    fastest_memory: int
    collectives: Tally
    ranges: Tally
    gathered: Gathered
    doubtful: list[str]
    idle_notes: tuple[str, ...]


def summarize(reports: Paths, *, top: int = TOP_KERNELS, **common: Unpack[Common]) -> Summary:
    """Everything that matters first, in sections; times in ns, sizes in bytes.

    Sections: header, ranks, breakdown, kernels, collectives, memory, nvtx, findings, next_steps.
    """
    request = Request.of(reports, **common)
    mapped = request.map(partial(_summarize_one, scope=request.scope), ranked=True)
    parts = mapped.values
    budgets = sorted((row for part in parts for row in part.budgets), key=budget_order)
    kernel_statistics = merge([part.kernels for part in parts]).statistics()
    gathered = [(report, part.gathered) for report, part in mapped.results]
    facts = facts_of(request, gathered, [part.kernels for part in parts])
    found = tuple(checked(facts))
    doubtful = dict.fromkeys(name for part in parts for name in part.doubtful)
    sections = {
        "ranks": _ranks([(str(report.path), part) for report, part in mapped.results]),
        "breakdown": Table("breakdown", BREAKDOWN_FIELDS, tuple(map(budget_row, budgets))),
        "kernels": ranking.rank_by_time("kernels", kernel_statistics, (), top=top),
        "collectives": _collectives([part.collectives for part in parts]),
        "memory": _memory(parts),
        "nvtx": _ranges([part.ranges for part in parts]),
    }
    idle = (note for part in parts for note in part.idle_notes)
    told = (note for part in parts for note in part.gathered.notes)
    notes = [
        *request.ranks.notes,
        *map(suspect_note, doubtful),
        *idle,
        *told,
        *sections["memory"].notes,
        *request.scope.notes,
    ]
    return Summary(
        inputs=request.ranks.inputs,
        header=_header([part.info for part in parts]) | {"outside_ns": _outside(request, parts)},
        sections=sections,
        findings=found,
        next_steps=_next_steps(found, sections, facts),
        notes=tuple(dict.fromkeys(notes)),
    )


def summary_findings(summary: Summary) -> Table:
    """The findings of a summary as a table."""
    table = findings_table(summary.findings)
    return with_notes(table, summary.inputs, summary.notes)


def _summarize_one(report: NsysReport, *, scope: Scope) -> _Part:
    with launches_of(report, ends=True) as launches:
        work = read_work(report, scope, MEMORY_COLUMNS)
        extent = extent_of_frames(work.kernels, work)
        kernels = scope.narrow(report, work.kernels)
        operations = scope.narrow(report, work.operations)
        columns = RANGE_COLUMNS if scope.nvtx else HOST_COLUMNS
        ranges = scope.narrow(report, report.frame("nvtx_ranges", columns))
        budgets, idle = known = attributed(report, scope, work, launches)
        gathered = gather(report, scope, work, launches, known, ranges)
    return _Part(
        info=report_info(report, extent),
        extent=extent,
        budgets=budgets,
        kernels=ranking.tally_durations(kernels, ["name"]),
        memory=(
            ranking.tally_durations(operations, ["operation"]),
            ranking.tally_bytes(operations, ["operation"]),
        ),
        fastest_memory=fastest_memory(report),
        collectives=_collective_tally(report, kernels),
        ranges=tally_ranges(ranges),
        gathered=gathered,
        doubtful=doubtful_names(kernels, ()),
        idle_notes=idle.notes,
    )


def _collective_tally(report: NsysReport, kernels: Frame) -> Tally:
    """Durations per (operation, who took part) of the communication kernels."""
    names = kernels.labels("name")
    own = kernels.take(is_communication(names))
    codes = own.labels("name").codes
    operations = Labels(codes, tuple(map(operation_of, names.values))).merged()
    groups = group_by(Frame({"operation": operations, "pid": own["pid"]}), ("operation", "pid"))
    where = str(report.path)
    keys = tuple((operation, f"{where}:{pid}") for operation, pid in groups.keys)
    return tally(groups.codes, ranking.durations(own), keys)


def _collectives(tallies: Sequence[Tally]) -> Table:
    members: dict[str, set[str]] = {}
    by_operation = []
    for part in tallies:
        for operation, member in part.keys:
            members.setdefault(str(operation), set()).add(str(member))
        keys = tuple((operation,) for operation, _ in part.keys)
        by_operation.append(merge([Tally(keys, part.bounds, part.values, part.counts)]))
    statistics = merge(by_operation).statistics()
    rows: list[tuple[Value, ...]] = [
        (
            str(key[0]),
            None,
            len(members[str(key[0])]),
            int(statistics.instances[group]),
            None,
            float(statistics.median[group]),
            int(statistics.total[group]),
        )
        for group, key in enumerate(statistics.keys)
    ]
    rows.sort(key=lambda row: (-int(row[6] or 0), str(row[0])))
    return Table("collectives", COLLECTIVE_FIELDS, tuple(rows))


def _memory(parts: Sequence[_Part]) -> Table:
    time, sizes = (merge([part.memory[which] for part in parts]).statistics() for which in (0, 1))
    fastest = max((part.fastest_memory for part in parts), default=0)
    return believable(ranking.rank_memory(time, sizes), fastest)


def _ranges(tallies: Sequence[Tally]) -> Table:
    statistics = merge(tallies).statistics()
    rows: list[tuple[Value, ...]] = [
        (*key, int(statistics.instances[g]), int(statistics.total[g]), float(statistics.median[g]))
        for g, key in enumerate(statistics.keys)
    ]
    rows.sort(key=lambda row: (-int(row[4] or 0), str(row[0]), str(row[1])))
    return Table("nvtx", NVTX_FIELDS, tuple(rows[:TOP_RANGES]))


def _ranks(parts: Sequence[tuple[str, _Part]]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for path, part in parts:
        for one in sorted(part.budgets, key=budget_order):
            source = "; ".join(part.info.rank_sources) or None
            rows.append((one.rank, path, part.info.host or None, one.device, source))
    rows.sort(key=lambda row: (row[0] is None, row[0] or 0, str(row[1]), row[3] or 0))
    return Table("ranks", RANK_FIELDS, tuple(rows))


def _header(infos: Sequence[ReportInfo]) -> dict[str, Value]:
    gpus = tuple(name for one in infos for name in one.gpus)
    durations = [one.duration_ns for one in infos if one.duration_ns is not None]
    starts = [one.start_utc for one in infos if one.start_utc is not None]
    versions = dict.fromkeys(one.tool_version for one in infos if one.tool_version)
    hosts = dict.fromkeys(one.host for one in infos if one.host)
    return {
        "reports": len(infos),
        "gpu": gpu_text(gpus) or None,
        "devices": sum(one.devices for one in infos),
        "processes": sum(len(one.pids) for one in infos),
        "ranks": sum(rank is not None for one in infos for rank in one.ranks),
        "hosts": ", ".join(hosts) or None,
        "tool_version": ", ".join(versions) or None,
        "start_utc": min(starts, default=None),
        "duration_ns": max(durations, default=None),
        "kernels": sum(one.kernels for one in infos),
    }


def _outside(request: Request, parts: Sequence[_Part]) -> int | None:
    """How much of a capture lies before the first and after the last GPU work, in ns.

    The least of all reports; None where the question is about a stretch of time, or where lengths
    are not known.
    """
    scope = request.scope
    if scope.from_ns is not None or scope.to_ns is not None or scope.nvtx is not None:
        return None
    lengths = [
        part.info.duration_ns - (part.extent.end_ns - part.extent.start_ns)
        for part in parts
        if part.info.duration_ns is not None
        and part.extent.start_ns is not None
        and part.extent.end_ns is not None
    ]
    return max(min(lengths), 0) if lengths else None


def _next_steps(
    found: Sequence[Finding], sections: dict[str, Table], facts: Facts
) -> tuple[tuple[str, str], ...]:
    """The commands to run next, of the first findings first; three at most."""
    steps = [(one.next_command, one.name) for one in found if one.next_command]
    if not any(len(table) for table in sections.values()):
        steps.append((facts.command("info"), "what the report holds"))
    elif len({row[0] for row in sections["ranks"] if row[0] is not None}) > 1:
        steps.insert(2, (facts.command("ranks"), "who waits for whom"))
    elif sections["kernels"]:
        steps.append((facts.command("kernels"), "all kernels, as nsys stats counts them"))
    unique = {command: (command, why) for command, why in reversed(steps)}
    ordered = sorted(unique.values(), key=steps.index)
    return tuple(ordered[:3])
