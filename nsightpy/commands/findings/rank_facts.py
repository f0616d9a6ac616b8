"""What ranks cost each other: who keeps the others waiting, and collectives that took too long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.collectives.log import Mask
from nsightpy.analysis.findings.facts import DeviceFacts, SlowCollectives, StragglerFact
from nsightpy.analysis.findings.outliers import SlowInstances, slow_by_unit
from nsightpy.analysis.intervals import measure_before
from nsightpy.analysis.ranks.arrivals import arrivals_of
from nsightpy.analysis.ranks.collective_groups import grouped_collectives
from nsightpy.analysis.ranks.stragglers import late_once, straggler_of
from nsightpy.commands.collectives.notes import called, cause_of
from nsightpy.query.common_clock import CommonClock
from nsightpy.query.rank_alignment import RankPart, UnitNames, aligned_sample, once
from nsightpy.rank_set import RankSet
from nsightpy.reports.system import SystemReport

# Of more collectives in a report some stretches of the capture are enough.
ENOUGH = 20_000
SAMPLED = (
    "{:,} collectives in a report: stragglers and abnormally long collectives were looked for in "
    "{:.0%} of the time, evenly spread; what a straggler costs is taken to be the same in the "
    "rest. `nsightpy ranks` and `nsightpy collectives` look at all."
)
# (report, process, device)
Place = tuple[str, int, int]


@dataclass(frozen=True)
class RankEvidence:
    """What one report says about its collectives, and the facts about its devices by place."""

    part: RankPart
    devices: Mapping[tuple[int, int], DeviceFacts]


def with_waits(
    rank_set: RankSet, results: Sequence[tuple[SystemReport, RankEvidence]]
) -> tuple[dict[Place, DeviceFacts], tuple[str, ...]]:
    """The facts about all devices, with what their ranks lost in collectives; and notes on it."""
    facts: dict[Place, DeviceFacts] = {
        (str(report.path), *place): device
        for report, evidence in results
        for place, device in evidence.devices.items()
    }
    if not rank_set.one_job:
        return _named_by_report(facts), ()
    parts = once(rank_set, [(report, evidence.part) for report, evidence in results])
    communicate = any(len(part.log) for _, part in parts)
    if len(rank_set) < 2 and not communicate:
        return facts, ()
    alignment, sample = aligned_sample(parts, ENOUGH)
    if len(rank_set) > 1:
        facts = _on_common_clock(facts, CommonClock.of(alignment))
    if not communicate:
        return facts, ()
    arrivals = arrivals_of(alignment)
    places = [_place(alignment, unit) for unit in range(len(alignment.ledger.units))]
    inside = _inside(alignment, [facts.get(place) for place in places])
    names = UnitNames.of(alignment)
    slow_units = slow_by_unit(alignment, grouped_collectives(alignment, arrivals), inside)
    for unit, slow in slow_units.items():
        if places[unit] in facts:
            named = _named(slow, names)
            facts[places[unit]] = replace(facts[places[unit]], slow_collectives=named)
    late = straggler_of(alignment, arrivals)
    if late is not None and (place := places[late.unit]) in facts:
        saved = round(late.saved[inside[arrivals.rows]].sum() / sample.share)
        waited_for = StragglerFact(late.last_share, saved)
        facts[place] = replace(facts[place], straggler=waited_for)
    if late is None:
        for once_late in late_once(alignment, arrivals, pairs=False)[:1]:
            if (place := places[once_late.unit]) in facts:
                came = StragglerFact(0.0, once_late.cost_ns, once_late.times)
                facts[place] = replace(facts[place], straggler=came)
    return facts, (SAMPLED.format(sample.most, sample.share),) if sample.share < 1.0 else ()


def _named_by_report(facts: Mapping[Place, DeviceFacts]) -> dict[Place, DeviceFacts]:
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
    facts: Mapping[Place, DeviceFacts], clock: CommonClock
) -> dict[Place, DeviceFacts]:
    """The facts with how far each device's own time is from the clock of all ranks."""
    return {
        (path, pid, device): replace(
            device_facts,
            ahead_ns=clock.moment(path, pid, device_facts.budget.start_ns)
            - device_facts.budget.start_ns,
        )
        for (path, pid, device), device_facts in facts.items()
    }


def _place(alignment: Alignment, unit: int) -> Place:
    participant = alignment.ledger.units[unit]
    return alignment.clocks[participant.clock].report, participant.pid, participant.device


def _inside(alignment: Alignment, devices: Sequence[DeviceFacts | None]) -> Mask:
    """The rows of the ledger that touch the windows of their devices; none of unknown devices."""
    ledger = alignment.ledger
    keep = np.zeros(len(ledger), dtype=np.bool_)
    for unit, device in enumerate(devices):
        if device is None:
            continue
        fit = alignment.fits[ledger.units[unit].clock]
        rows = np.flatnonzero(ledger.unit == unit)
        # the ledger's times are the report's own plus a constant
        shift = fit.epoch_ns - alignment.base_ns
        window = device.budget.window
        before = measure_before(window, ledger.starts[rows] - shift)
        keep[rows] = measure_before(window, ledger.ends[rows] - shift) > before
    return keep


def _named(slow: SlowInstances, names: UnitNames) -> SlowCollectives:
    worst = slow.worst
    return SlowCollectives(
        slow.instances,
        slow.lost_ns,
        called(slow.kind, names),
        worst.duration_ns,
        worst.ratio,
        cause_of(worst, names),
    )
