"""Rules on communication and on what ranks and devices cost each other."""

from __future__ import annotations

from nsightpy.analysis.findings import gains
from nsightpy.analysis.findings.evidence import Evidence, JobEvidence
from nsightpy.analysis.findings.groups import Place
from nsightpy.analysis.findings.rule import INFO, WARNING, Rule
from nsightpy.analysis.findings.thresholds import (
    LEAST_IMBALANCE,
    LEAST_SHARE,
    MANY_COLLECTIVES,
    SHORT_COLLECTIVE_NS,
)


def _in_mpi(row: Evidence) -> bool:
    return row.caused("exposed-communication") > row.budget.exposed_communication_ns


def _exposed_place(row: Evidence) -> Place | None:
    places = (row["exposed"].worst, row.idle.worst.get("exposed-communication"))
    return max(filter(None, places), key=lambda place: place.duration_ns, default=None)


def _shown_by(_: Evidence, job: JobEvidence) -> str:
    in_mpi = any(row.caused("exposed-communication") for row in job.used)
    return "collectives" if job.has_collectives else "gaps" if in_mpi else "breakdown"


def _unbucketed(row: Evidence) -> bool:
    """Whether a collective of next to nothing is made for each of many tensors."""
    calls = row["collectives"]
    many = calls.count >= MANY_COLLECTIVES * (row.iterations or 1)
    return many and calls.work_ns < SHORT_COLLECTIVE_NS * calls.count


def _slow(row: Evidence) -> int:
    # what compute hides costs nothing
    hidden = row.budget.exposed_communication_ns < LEAST_SHARE * row.window_ns
    return 0 if hidden or row.slow is None else row.slow.lost_ns


def _awaited(row: Evidence, *, once: bool) -> int:
    """What the other ranks waited for this one, which is late as a rule, or was `once`."""
    late = row.straggler
    return late.caused_ns if late and bool(late.times) == once else 0


def _uneven(row: Evidence) -> int:
    return row.imbalance.beyond_ns if row.imbalance else 0


def _severity(row: Evidence) -> str:
    lost = _uneven(row) or row.caused("imbalance")
    return WARNING if lost >= LEAST_IMBALANCE * row.window_ns else INFO


_LATE = (
    "up to {loss}<straggler.slower_ns|; its kernels take {straggler.slower_ns:time} longer, "
    "{straggler.ratio:number} times the others' median>"
)
RANK_RULES = (
    Rule(
        "straggler",
        "straggler",
        ns=lambda row: _awaited(row, once=False),
        text=(
            "the other ranks wait for {name}, which comes last to {straggler.last_share:share} of "
            f"the collectives in which ranks wait: {_LATE}"
        ),
        next="ranks",
        passed="no rank keeps the others waiting",
        place=lambda row: row.straggler.worst if row.straggler else None,
        time=lambda row: {f"waiting for {row.name}": _awaited(row, once=False)},
        edit=gains.straggler,
        alone=False,
    ),
    Rule(
        "straggler",
        "late rank",
        ns=lambda row: _awaited(row, once=True),
        text=(
            "the other ranks wait for {name}, which came late {straggler.times:times}, not as a "
            f"rule: {_LATE}"
        ),
        next="ranks",
        place=lambda row: row.straggler.worst if row.straggler else None,
        time=lambda row: {f"waiting for {row.name}": _awaited(row, once=True)},
        alone=False,
        variant=True,
    ),
    Rule(
        "imbalance",
        "unbalanced devices",
        ns=_uneven,
        text=(
            "{name} computes {budget.compute_ns:time}{each_compute}, {imbalance.ratio:number} "
            "times the mean of {imbalance.devices} devices"
        ),
        next="breakdown",
        passed="devices compute about as long",
        place=lambda row: row.imbalance.worst if row.imbalance else None,
        most=_severity,
        alone=False,
    ),
    Rule(
        "imbalance",
        "devices wait for each other",
        ns=lambda row: row.caused("imbalance"),
        text=(
            "device {device} had nothing to do while its process waited for other devices of it: "
            "{loss}; they run at once where work is launched on all before one is waited for, and "
            "handed on in smaller parts"
        ),
        next="breakdown",
        most=_severity,
        alone=False,
        variant=True,
    ),
)
COLLECTIVE_RULES = (
    Rule(
        "slow-link",
        "communication slow for its link",
        ns=lambda row: (
            min(row.link.lost_ns, row.budget.exposed_communication_ns) if row.link else 0
        ),
        text=(
            "{link.called} reaches {link.gb_per_s:number} GB/s, where {link.link} "
            "<link.measured|reached|can carry> {link.link_gb_per_s:number}: up to {loss}"
            "<link.measured||; nccl-tests between these GPUs shows whether the link or the "
            "program is slow (--ceilings)>"
        ),
        next="collectives",
        place=_exposed_place,
        time=lambda row: {"exposed-communication": row.link.lost_ns} if row.link else {},
        edit=gains.transfers,
        alone=False,
    ),
    Rule(
        "exposed-communication",
        "communication exposed",
        ns=lambda row: row.budget.exposed_communication_ns + row.caused("exposed-communication"),
        text=(
            "<mpi|the launching thread waited in MPI calls with nothing on the GPU|communication "
            "ran alone> for {loss}<unbucketed|; {groups[collectives].count:collectives} of "
            "{mean_collective_ns:time} on average: one for many tensors (a bucket) costs less than "
            "one for each>"
        ),
        next=_shown_by,
        passed="communication is hidden",
        when={"mpi": _in_mpi, "unbucketed": _unbucketed},
        place=_exposed_place,
        edit=gains.transfers,
        alone=False,
    ),
    Rule(
        "overlap-slowdown",
        "kernels slower beside communication",
        ns=lambda row: row["slowed"].work_ns,
        text=(
            "kernels take longer beside communication than alone: {loss} in "
            "{group.count:launches}; most of it {overlap.name:kernel}, "
            "{overlap.beside_med_ns:time} for {overlap.alone_med_ns:time} alone; fewer channels "
            "(NCCL_MAX_NCHANNELS) leave kernels more of the GPU"
        ),
        next="breakdown",
        of="slowed",
        time=lambda row: {"slowed": row["slowed"].work_ns},
    ),
    Rule(
        "slow-collectives",
        "communication abnormally long",
        ns=_slow,
        text=(
            "{slow.count:collectives} took {loss_ns:time} longer than the median of their kind, "
            "{of_window}, waiting for late ranks included; worst: {slow.called} took "
            "{slow.duration_ns:time}, {slow.ratio:number} times its median; {slow.cause}"
        ),
        next="collectives",
        passed="no collective takes far longer than its kind",
        place=lambda row: row.slow.worst if row.slow else None,
        time=lambda row: {f"waiting for {row.slow.late}": _slow(row)} if row.slow else {},
        alone=False,
    ),
)
