"""What ranks cost each other: who keeps the others waiting, and collectives that took too long."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.collectives.log import Mask
from nsightpy.analysis.findings.evidence import NONE, Evidence, Group, Place
from nsightpy.analysis.findings.thresholds import ALIKE, DOMINANT_SHARE
from nsightpy.analysis.intervals import measure_before
from nsightpy.analysis.ranks.arrivals import Arrivals, arrivals_of
from nsightpy.analysis.ranks.collective_groups import (
    Abnormal,
    GroupedCollective,
    grouped_collectives,
)
from nsightpy.analysis.ranks.links import SlowLink, slow_groups
from nsightpy.analysis.ranks.stragglers import late_once, straggler_of
from nsightpy.analysis.thresholds import MATERIAL
from nsightpy.commands.collectives import called, cause_of
from nsightpy.commands.findings.report_evidence import ReportEvidence
from nsightpy.query import SystemReport
from nsightpy.query.rank_alignment import CommonClock, UnitNames, align_parts, once
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.units import format_time, listed, share_text, significant

UNKNOWN_LINK = (
    "what the link of {} can carry is not known: its collectives were not compared with it; "
    "`--ceilings` of `nsightpy findings` takes what nccl-tests measured."
)
NOT_MEASURED = (
    "nccl-tests between these GPUs shows whether the link or the program is slow (--ceilings)"
)
# (report, process, device)
Device = tuple[str, int, int]


def with_waits(
    rank_set: RankSet,
    results: Sequence[tuple[SystemReport, ReportEvidence]],
    link_rates: Mapping[bool, float],
) -> tuple[dict[Device, Evidence], Alignment | None, tuple[str, ...]]:
    """The facts about all devices, with what their ranks lost in collectives; and notes on it.

    `link_rates` are those of nccl-tests in GB/s, by whether nodes are crossed.
    The alignment is there where several ranks, or their collectives, had to be put on one clock.
    """
    rows: dict[Device, Evidence] = {
        (str(report.path), *at): row for report, part in results for at, row in part.devices.items()
    }
    if not rank_set.one_job:
        # a device is that of a report, whatever its rank
        for at, row in rows.items():
            rows[at] = replace(row, label=f"{Path(at[0]).stem}, {row.name}")
        return rows, None, ()
    parts = once(rank_set, [(report, part.recorded.rank_part) for report, part in results])
    communicate = any(len(part.log) for _, part in parts)
    if len(rank_set) < 2 and not communicate:
        return rows, None, ()
    alignment = align_parts(parts)
    if len(rank_set) > 1:
        clock = CommonClock.of(alignment)
        for (path, pid, number), row in rows.items():
            begin = row.budget.start_ns
            ahead = clock.moment(path, pid, begin) - begin
            rows[path, pid, number] = replace(row, ahead_ns=ahead)
    if not communicate:
        return rows, alignment, ()
    units = [(alignment.clocks[unit.clock], unit) for unit in alignment.ledger.units]
    devices = [(clock.report, unit.pid, unit.device) for clock, unit in units]
    of_units = [rows.get(device) for device in devices]
    names, arrivals = UnitNames.of(alignment), arrivals_of(alignment)
    inside, kinds = _inside(alignment, of_units), grouped_collectives(alignment, arrivals)
    gpus = ["" if row is None else row.gpu.name for row in of_units]
    slow_links, unknown = slow_groups(kinds, [clock.host for clock, _ in units], gpus, link_rates)
    groups = (
        ("slow-collectives", _slow(alignment, kinds, inside, names)),
        ("slow-link", _links(slow_links, of_units, names)),
        _late(alignment, arrivals, inside),
    )
    for unit, device in enumerate(devices):
        if device in rows:
            lost = {name: by_unit[unit] for name, by_unit in groups if unit in by_unit}
            rows[device] = rows[device].having(lost)
    models = listed(sorted(model or "a GPU without a name" for model in unknown), most=3)
    return rows, alignment, (UNKNOWN_LINK.format(models),) * bool(unknown)


def _slow(
    alignment: Alignment, kinds: Sequence[GroupedCollective], inside: Mask, names: UnitNames
) -> dict[int, Group]:
    """By unit, the abnormal collectives in which it took part; `inside` masks rows to count."""
    ledger, durations = alignment.ledger, alignment.ends - alignment.starts
    cases: dict[int, list[tuple[int, Abnormal, int, GroupedCollective]]] = {}
    for kind in kinds:
        for bad in kind.abnormal:
            for row in bad.rows:
                lost = round(int(durations[row]) - bad.usual_ns)
                if inside[row] and lost > 0:
                    unit = int(ledger.unit[row])
                    cases.setdefault(unit, []).append((lost, bad, row, kind))
    groups = {}
    for unit, slow in cases.items():
        _, bad, row, kind = max(slow, key=lambda case: (case[0], -case[1].start_ns))
        lost = sum(case[0] for case in slow)
        late = bad.late_unit
        groups[unit] = Group(
            alone_ns=lost,
            count=len(slow),
            name=(
                f"{called(kind, names)} took {format_time(bad.duration_ns)}, "
                f"{significant(bad.ratio)} times its median; {cause_of(bad, names)}"
            ),
            worst=_seen(alignment, row),
            by_name={} if late is None else {f"waiting for rank {names.names[late]}": lost},
        )
    return groups


def _links(
    slow_links: Sequence[SlowLink], rows: Sequence[Evidence | None], names: UnitNames
) -> dict[int, Group]:
    """Of each unit the group that is slow for its link and loses most by that."""
    found: dict[int, Group] = {}
    for slow in slow_links:
        lost, link = round(slow.lost_ns), slow.link
        rate = significant(slow.collective.busbw_gb_per_s or 0.0)
        text = (
            f"{called(slow.collective, names)} reaches {rate} GB/s, where {link.name} "
            f"{'between nodes' if slow.across else 'within a node'} "
            f"{'reached' if link.measured else 'can carry'} {significant(link.gb_per_s)}"
        )
        for unit in slow.collective.units:
            row = rows[unit]
            group = Group(
                alone_ns=lost,
                name=text,
                also="" if link.measured else NOT_MEASURED,
                worst=None if row is None else row["exposed-communication"].worst,
                by_name={"exposed-communication": lost},
            )
            found.setdefault(unit, group)
    return found


def _late(alignment: Alignment, arrivals: Arrivals, inside: Mask) -> tuple[str, dict[int, Group]]:
    """What others waited for the unit that is late as a rule, or else a few times."""
    if (late := straggler_of(alignment, arrivals)) is not None:
        saved = np.where(inside[arrivals.rows], late.saved, 0)
        worst = _awaited(alignment, arrivals, int(np.argmax(saved)))
        lost = Group(alone_ns=int(saved.sum()), name=share_text(late.last_share, 1), worst=worst)
        return "straggler", {late.unit: lost}
    for few in late_once(alignment, arrivals, inside)[:1]:
        worst = _awaited(alignment, arrivals, few.worst)
        return "late", {few.unit: Group(alone_ns=few.cost_ns, count=few.times, worst=worst)}
    return "late", {}


def _inside(alignment: Alignment, devices: Sequence[Evidence | None]) -> Mask:
    """The rows of the ledger that touch the windows of their devices; none of unknown devices."""
    ledger = alignment.ledger
    keep = np.zeros(len(ledger), dtype=np.bool_)
    for unit, device in enumerate(devices):
        if device is None:
            continue
        rows = np.flatnonzero(ledger.unit == unit)
        ahead = alignment.ledger_ahead_ns(unit)
        window = device.budget.window
        before = measure_before(window, ledger.starts[rows] - ahead)
        keep[rows] = measure_before(window, ledger.ends[rows] - ahead) > before
    return keep


def _awaited(alignment: Alignment, arrivals: Arrivals, place: int) -> Place:
    """From the first arrival at an instance to the end of one of its rows, in that one's time."""
    row = int(arrivals.rows[place])
    others = arrivals.rows[arrivals.instance == arrivals.instance[place]]
    starts = alignment.starts
    return _seen(alignment, row, int(starts[row] - starts[others].min()))


def _seen(alignment: Alignment, row: int, before: int = 0) -> Place:
    """A row of the ledger, and so many ns before it, in the own time of its report."""
    ledger, ahead = alignment.ledger, alignment.ledger_ahead_ns(int(alignment.ledger.unit[row]))
    start, end = int(ledger.starts[row]) - before, int(ledger.ends[row])
    return Place(start - ahead, end - start)


def with_peers(rows: Sequence[Evidence]) -> list[Evidence]:
    """The rows of all devices, each with what it costs the others."""
    peers = []
    for row in rows:
        costs = {late: _late_cost(row, row[late], rows) for late in ("straggler", "late")}
        peers.append(row.having({**costs, "uneven": _uneven(row, rows)}))
    return peers


def _late_cost(row: Evidence, late: Group, rows: Sequence[Evidence]) -> Group:
    """What a late rank costs, and whether longer compute makes it late."""
    others = [other for other in rows if other is not row]
    # who waits for it communicates, and only what nothing else hides costs time
    most = max((other.budget.exposed_communication_ns for other in others), default=0)
    lost = min(late.alone_ns, most)
    late = replace(late, alone_ns=lost, by_name={f"waiting for {row.name}": lost})
    times = _comparable([row, *others])
    usual = median(times[1:]) if len(times) > 1 else 0.0
    more = (times[0] - usual) * (row.iterations or 1) if usual else 0.0
    if not usual or more < DOMINANT_SHARE * lost:
        return late
    ratio = f"{significant(times[0] / usual)} times the others' median"
    return replace(late, also=f"its kernels take {format_time(round(more))} longer, {ratio}")


def _uneven(row: Evidence, rows: Sequence[Evidence]) -> Group:
    """What a device computes beyond the mean of all, where it is the one that computes longest."""
    least = MATERIAL * max(other.budget.busy_ns for other in rows)
    used = [other for other in rows if other.window_ns and other.budget.busy_ns > least]
    work = _comparable(used)
    mean = sum(work) / max(len(work), 1)
    if not mean or max(work) < ALIKE * mean or row is not used[work.index(max(work))]:
        return NONE
    # devices that are busy with something else wait for nobody
    longest = max(other.window_ns for other in used)
    free = max(
        longest - other.budget.busy_ns + other.budget.exposed_communication_ns
        for other in used
        if other is not row
    )
    beyond = min(int((max(work) - mean) * (row.iterations or 1)), free)
    computes = f"{format_time(row.budget.compute_ns)}{row.per_iteration(row.budget.compute_ns)}"
    times = f"{significant(max(work) / mean)} times the mean of {len(work)} devices"
    return Group(alone_ns=beyond, name=f"{computes}, {times}")


def _comparable(rows: Sequence[Evidence]) -> list[float]:
    """The compute time of each device per iteration, or of whole windows, in ns.

    Nothing where some windows hold iterations and others are whole captures.
    """
    counted = [bool(row.iterations) for row in rows]
    if any(counted) and not all(counted):
        return []
    return [row.budget.compute_ns / (row.iterations or 1) for row in rows]
