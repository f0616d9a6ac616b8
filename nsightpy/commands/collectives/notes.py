"""What must be said of collectives: what was slow and why, what is missing, what is not known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.ranks.abnormal import Abnormal
from nsightpy.analysis.ranks.collective_groups import GroupedCollective
from nsightpy.query.rank_alignment import UnitNames
from nsightpy.results import Note, Said
from nsightpy.units import format_bytes, format_time, listed, significant

# The same operation and size in another group is called slower from this ratio on.
SLOWER_GROUP = 3.0
MOST_NOTES = 3


def notes_on(
    seen: Sequence[GroupedCollective], alignment: Alignment, names: UnitNames
) -> list[Said]:
    """Everything that must be said of these collectives."""
    return [
        *_abnormal_notes(seen, names),
        *_slower_groups(seen, names),
        *_size_notes(seen),
        *_missing_notes(seen, names),
        *doubtful_note(alignment, names),
        *unmatched_note(alignment),
    ]


def called(collective: GroupedCollective, names: UnitNames) -> str:
    """A collective as notes call it: operation, size and group."""
    size = "" if collective.bytes is None else f" of {format_bytes(collective.bytes)}"
    group = names.group(collective.units, collective.size)
    return f"{collective.signature.operation}{size} in {group}"


def _abnormal_notes(seen: Sequence[GroupedCollective], names: UnitNames) -> list[str]:
    """The worst instances, each with its ratio and whether somebody was waited for."""
    worst = sorted(
        (
            (-bad.ratio, place, bad)
            for place, collective in enumerate(seen)
            for bad in collective.abnormal
        ),
        key=lambda case: (case[0], case[1], case[2].start_ns),
    )
    return [
        f"abnormal: {called(seen[place], names)} once took {format_time(bad.duration_ns)}, "
        f"{significant(bad.ratio)} times its median; {cause_of(bad, names)}."
        for _, place, bad in worst[:MOST_NOTES]
    ]


def cause_of(bad: Abnormal, names: UnitNames) -> str:
    """Why an instance was slow, as far as it is known."""
    if bad.late_unit is not None:
        return f"it waited for rank {names.names[bad.late_unit]}"
    if not bad.whole:
        return "whether it waited is not known, since no other rank was captured"
    return "the transfer itself was slow"


def _slower_groups(seen: Sequence[GroupedCollective], names: UnitNames) -> list[str]:
    """Groups in which the same operation of the same size takes much longer than in others."""
    alike: dict[tuple[object, int], list[GroupedCollective]] = {}
    for collective in seen:
        if collective.transfer_med_ns and collective.signature.bytes >= 0:
            alike.setdefault((collective.signature, collective.ranks), []).append(collective)
    notes = []
    for groups in alike.values():
        usual = float(np.median([group.transfer_med_ns or 0.0 for group in groups]))
        fastest = min(group.transfer_med_ns or 0.0 for group in groups)
        base = usual if len(groups) > 2 else fastest
        slow = max(groups, key=lambda group: group.transfer_med_ns or 0.0)
        if (slow.transfer_med_ns or 0.0) >= SLOWER_GROUP * base:
            notes.append(
                f"{called(slow, names)} takes {(slow.transfer_med_ns or 0.0) / base:.3g} times as "
                f"long as in other groups of {slow.ranks}."
            )
    return notes[:MOST_NOTES]


def _size_notes(seen: Sequence[GroupedCollective]) -> list[Said]:
    if not any(collective.signature.bytes < 0 for collective in seen):
        return []
    return [
        Note(
            "No bandwidth where bytes is empty: the captures lack these sizes (kernels of other "
            "libraries than NCCL never have them).",
            "They are in NCCL's NVTX payload: NCCL 2.16 and `nsys profile -t cuda,nvtx`, and an "
            "export with `--include-json true` (nsys 2025 on).",
            "They are arguments of NCCL's kernels, which PyTorch 2.3 and later write.",
        )
    ]


def _missing_notes(seen: Sequence[GroupedCollective], names: UnitNames) -> list[Said]:
    torn = {
        names.group(collective.units, collective.size): collective.size - len(collective.units)
        for collective in seen
        if collective.size > len(collective.units)
    }
    if not torn:
        return []
    parts = (f"{group}: {missing} missing" for group, missing in torn.items())
    shown = listed(parts, MOST_NOTES, "; ")
    reason = f"Not all ranks of every group were captured ({shown}): their arrivals are unknown."
    return [Note(reason, "Profile every rank of the job and give all reports.")]


def doubtful_note(alignment: Alignment, names: UnitNames) -> list[Said]:
    """Which groups are not known."""
    ledger = alignment.ledger
    shown = np.unique(ledger.communicator[ledger.shown & alignment.instances.matched]).tolist()
    seen = [ledger.communicators[place] for place in shown]
    several = dict.fromkeys(names.group(each.ranks, 0) for each in seen if each.doubtful)
    if not several:
        return []
    reason = (
        f"Groups are not known in {listed(several, MOST_NOTES, '; ')}: their collectives end as "
        "those of one group and of several would, and are shown as one group's."
    )
    return [
        Note(
            reason,
            "NCCL's NVTX payload names the groups.",
            "PyTorch 2.3 and later write the groups as arguments of NCCL's kernels.",
        )
    ]


def unmatched_note(alignment: Alignment) -> list[str]:
    """How many collectives are in no figure of several ranks."""
    matched = alignment.instances.matched[alignment.ledger.shown]
    alone = int(np.count_nonzero(~matched))
    if not alone:
        return []
    return [f"{alone:,} of {len(matched):,} collectives have no counterpart in another rank."]
