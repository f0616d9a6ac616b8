"""What ranks cost each other: who keeps the others waiting, and collectives that took too long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.collectives.log import Mask
from nsightpy.analysis.findings.evidence import Evidence, SlowCollectives, SlowLink, Straggler
from nsightpy.analysis.findings.groups import Place
from nsightpy.analysis.findings.outliers import SlowInstances, slow_by_unit
from nsightpy.analysis.findings.thresholds import MOST_COLLECTIVES
from nsightpy.analysis.intervals import measure_before
from nsightpy.analysis.ranks.arrivals import Arrivals, arrivals_of
from nsightpy.analysis.ranks.collective_groups import GroupedCollective, grouped_collectives
from nsightpy.analysis.ranks.links import slow_groups
from nsightpy.analysis.ranks.stragglers import late_once, straggler_of
from nsightpy.commands.collectives.notes import called, cause_of
from nsightpy.commands.findings.report_evidence import ReportEvidence
from nsightpy.query.rank_alignment import CommonClock, UnitNames, aligned_sample, once
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.reports.system import SystemReport
from nsightpy.units import listed

SAMPLED = (
    "{:,} collectives in a report: stragglers and abnormally long collectives were looked for in "
    "{:.0%} of the time, evenly spread; what a straggler costs is taken to be the same in the "
    "rest. `nsightpy ranks` and `nsightpy collectives` look at all."
)
UNKNOWN_LINK = (
    "what the link of {} can carry is not known: its collectives were not compared with it; "
    "`--ceilings` of `nsightpy findings` takes what nccl-tests measured."
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
        return _named_by_report(facts), None, ()
    parts = once(rank_set, [(report, known.recorded.rank_part) for report, known in results])
    communicate = any(len(part.log) for _, part in parts)
    if len(rank_set) < 2 and not communicate:
        return facts, None, ()
    alignment, sample = aligned_sample(parts, MOST_COLLECTIVES)
    if len(rank_set) > 1:
        facts = _on_common_clock(facts, CommonClock.of(alignment))
    if not communicate:
        return facts, alignment, ()
    arrivals = arrivals_of(alignment)
    places = [_device(alignment, unit) for unit in range(len(alignment.ledger.units))]
    inside = _inside(alignment, [facts.get(place) for place in places])
    names = UnitNames.of(alignment)
    groups = grouped_collectives(alignment, arrivals)
    slow_units = slow_by_unit(alignment, groups, inside)
    for unit, slow in slow_units.items():
        if places[unit] in facts:
            named = _named(slow, names, _seen(alignment, slow.row))
            facts[places[unit]] = replace(facts[places[unit]], slow=named)
    links, unknown = _links(alignment, groups, facts, names, link_rates)
    for unit, link in links.items():
        if places[unit] in facts:
            lost = round(link.lost_ns / sample.share)
            facts[places[unit]] = replace(facts[places[unit]], link=replace(link, lost_ns=lost))
    for unit, straggler in _straggler(alignment, arrivals, inside, sample.share):
        if places[unit] in facts:
            facts[places[unit]] = replace(facts[places[unit]], straggler=straggler)
    sampled = (SAMPLED.format(sample.most, sample.share),) if sample.share < 1.0 else ()
    unjudged = (UNKNOWN_LINK.format(listed(sorted(unknown), most=3)),) if unknown else ()
    return facts, alignment, (*sampled, *unjudged)


def _named_by_report(facts: Mapping[Device, Evidence]) -> dict[Device, Evidence]:
    """The facts of captures of several jobs: a device is that of a report, whatever its rank."""
    alone = Counter(path for path, _, _ in facts)
    return {
        place: replace(
            device,
            label=f"{Path(place[0]).stem}{'' if alone[place[0]] == 1 else f', {device.name}'}",
        )
        for place, device in facts.items()
    }


def _on_common_clock(
    facts: Mapping[Device, Evidence], clock: CommonClock
) -> dict[Device, Evidence]:
    """The facts with how far each device's own time is from the clock of all ranks."""
    return {
        (path, pid, device): replace(
            device_facts,
            ahead_ns=clock.moment(path, pid, device_facts.budget.start_ns)
            - device_facts.budget.start_ns,
        )
        for (path, pid, device), device_facts in facts.items()
    }


def _links(
    alignment: Alignment,
    groups: Sequence[GroupedCollective],
    facts: Mapping[Device, Evidence],
    names: UnitNames,
    rates: Mapping[bool, float],
) -> tuple[dict[int, SlowLink], set[str]]:
    """The group of each unit that is slow for its link and loses most, and GPUs of unknown link."""
    units = range(len(alignment.ledger.units))
    hosts = [alignment.clocks[unit.clock].host for unit in alignment.ledger.units]
    rows = [facts.get(_device(alignment, unit)) for unit in units]
    gpus = ["" if row is None else row.gpu.name for row in rows]
    found: dict[int, SlowLink] = {}
    slow_ones, unknown = slow_groups(groups, hosts, gpus, rates)
    for slow in slow_ones:
        link = SlowLink(
            called(slow.collective, names),
            slow.collective.busbw_gb_per_s or 0.0,
            f"{slow.link.name} {'between nodes' if slow.across else 'within a node'}",
            slow.link.gb_per_s,
            round(slow.lost_ns),
            slow.link.measured,
        )
        for unit in slow.collective.units:
            found.setdefault(unit, link)
    return found, {model or "a GPU without a name" for model in unknown}


def _straggler(
    alignment: Alignment, arrivals: Arrivals, inside: Mask, share: float
) -> list[tuple[int, Straggler]]:
    """The unit that the others wait for as a rule, else once; `share`: of the time looked at."""
    late = straggler_of(alignment, arrivals)
    if late is not None:
        saved = np.where(inside[arrivals.rows], late.saved, 0)
        worst = _awaited(alignment, arrivals, int(np.argmax(saved)))
        return [(late.unit, Straggler(late.last_share, round(saved.sum() / share), worst=worst))]
    return [
        (
            came.unit,
            Straggler(0.0, came.cost_ns, came.times, _awaited(alignment, arrivals, came.worst)),
        )
        for came in late_once(alignment, arrivals, pairs=False, inside=inside)[:1]
    ]


def _device(alignment: Alignment, unit: int) -> Device:
    participant = alignment.ledger.units[unit]
    return alignment.clocks[participant.clock].report, participant.pid, participant.device


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


def _named(slow: SlowInstances, names: UnitNames, place: Place) -> SlowCollectives:
    worst = slow.worst
    return SlowCollectives(
        slow.instances,
        slow.lost_ns,
        called(slow.kind, names),
        worst.duration_ns,
        worst.ratio,
        cause_of(worst, names),
        place,
        "" if worst.late_unit is None else f"rank {names.names[worst.late_unit]}",
    )
