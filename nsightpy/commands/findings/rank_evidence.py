"""What ranks cost each other: who keeps the others waiting, and collectives that took too long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.collectives.log import Mask
from nsightpy.analysis.findings.evidence import Evidence, Group, Place
from nsightpy.analysis.findings.rule import percent_text
from nsightpy.analysis.intervals import measure_before
from nsightpy.analysis.ranks.abnormal import Abnormal
from nsightpy.analysis.ranks.arrivals import Arrivals, arrivals_of
from nsightpy.analysis.ranks.collective_groups import GroupedCollective, grouped_collectives
from nsightpy.analysis.ranks.links import SlowLink, slow_groups
from nsightpy.analysis.ranks.stragglers import late_once, straggler_of
from nsightpy.commands.collectives.command import called, cause_of
from nsightpy.commands.findings.report_evidence import ReportEvidence
from nsightpy.query import SystemReport
from nsightpy.query.rank_alignment import CommonClock, UnitNames, align_parts, once
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.units import format_time, listed, significant

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
    facts: dict[Device, Evidence] = {
        (str(report.path), *place): device
        for report, known in results
        for place, device in known.devices.items()
    }
    if not rank_set.one_job:
        # a device is that of a report, whatever its rank
        named = (
            (p, replace(row, label=f"{Path(p[0]).stem}, {row.name}")) for p, row in facts.items()
        )
        return dict(named), None, ()
    parts = once(rank_set, [(report, known.recorded.rank_part) for report, known in results])
    communicate = any(len(part.log) for _, part in parts)
    if len(rank_set) < 2 and not communicate:
        return facts, None, ()
    alignment = align_parts(parts)
    if len(rank_set) > 1:
        clock = CommonClock.of(alignment)
        for (path, pid, device), row in facts.items():
            begin = row.budget.start_ns
            ahead = clock.moment(path, pid, begin) - begin
            facts[path, pid, device] = replace(row, ahead_ns=ahead)
    if not communicate:
        return facts, alignment, ()
    names, arrivals = UnitNames.of(alignment), arrivals_of(alignment)
    units = [(alignment.clocks[unit.clock], unit) for unit in alignment.ledger.units]
    places = [(clock.report, unit.pid, unit.device) for clock, unit in units]
    rows = [facts.get(place) for place in places]
    inside, kinds = _inside(alignment, rows), grouped_collectives(alignment, arrivals)
    hosts = [clock.host for clock, _ in units]
    gpus = ["" if row is None else row.gpu.name for row in rows]
    slow_links, unknown = slow_groups(kinds, hosts, gpus, link_rates)
    for name, groups in (
        ("slow-collectives", _slow(alignment, kinds, inside, names)),
        ("slow-link", _links(slow_links, rows, names)),
        _late(alignment, arrivals, inside),
    ):
        for unit, group in groups.items():
            if (place := places[unit]) in facts:
                facts[place] = facts[place].having({name: group})
    models = listed(sorted(model or "a GPU without a name" for model in unknown), most=3)
    return facts, alignment, (UNKNOWN_LINK.format(models),) if unknown else ()


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
    late = straggler_of(alignment, arrivals)
    if late is None:
        once = late_once(alignment, arrivals, pairs=False, inside=inside)[:1]
        return "late", {
            one.unit: Group(
                alone_ns=one.cost_ns,
                count=one.times,
                worst=_awaited(alignment, arrivals, one.worst),
            )
            for one in once
        }
    saved = np.where(inside[arrivals.rows], late.saved, 0)
    group = Group(
        alone_ns=int(saved.sum()),
        name=percent_text(late.last_share),
        worst=_awaited(alignment, arrivals, int(np.argmax(saved))),
    )
    return "straggler", {late.unit: group}


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
    ledger = alignment.ledger
    start = int(ledger.starts[row]) - alignment.ledger_ahead_ns(int(ledger.unit[row]))
    return Place(start - before, int(ledger.ends[row] - ledger.starts[row]) + before)
