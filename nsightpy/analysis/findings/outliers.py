"""What abnormally long collectives cost each rank, in the part of the capture that is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.collectives.log import Mask
from nsightpy.analysis.ranks.abnormal import Abnormal
from nsightpy.analysis.ranks.collective_groups import GroupedCollective


@dataclass(frozen=True, slots=True)
class SlowInstances:
    """Abnormal instances in which one rank took part, and its time beyond their medians, in ns.

    `worst` is the instance that cost the rank most, `row` its place in the ledger as that rank saw
    it, `kind` what it is an instance of.
    """

    instances: int
    lost_ns: int
    worst: Abnormal
    row: int
    kind: GroupedCollective


def slow_by_unit(
    alignment: Alignment, kinds: Sequence[GroupedCollective], inside: Mask
) -> dict[int, SlowInstances]:
    """By unit, what abnormal instances cost it; `inside` masks the rows of the ledger to count."""
    durations = alignment.ends - alignment.starts
    slow: dict[int, list[tuple[int, Abnormal, int, GroupedCollective]]] = {}
    for kind in kinds:
        for bad in kind.abnormal:
            for row in bad.rows:
                lost = round(int(durations[row]) - bad.usual_ns)
                if inside[row] and lost > 0:
                    unit = int(alignment.ledger.unit[row])
                    slow.setdefault(unit, []).append((lost, bad, row, kind))
    result = {}
    for unit, cases in slow.items():
        worst = max(cases, key=lambda case: (case[0], -case[1].start_ns))
        result[unit] = SlowInstances(len(cases), sum(case[0] for case in cases), *worst[1:])
    return result
