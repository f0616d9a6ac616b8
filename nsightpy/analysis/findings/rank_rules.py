"""Rules on communication and on what ranks and devices cost each other."""

from __future__ import annotations

from nsightpy.analysis.findings import gains
from nsightpy.analysis.findings.evidence import Evidence, JobEvidence
from nsightpy.analysis.findings.rule import Rule
from nsightpy.analysis.findings.thresholds import (
    LEAST_SHARE,
    MANY,
    MUST_SHARE,
    SHORT_COLLECTIVE_NS,
)


def _shown_by(_: Evidence, job: JobEvidence) -> str:
    in_mpi = any(row.caused("exposed-communication") for row in job.used)
    collectives = any(row["collectives"].count for row in job.used)
    return "collectives" if collectives else "gaps" if in_mpi else "breakdown"


RANK_RULES = (
    Rule(
        "straggler",
        "straggler",
        text=(
            "the other ranks wait for {name}, which comes last to {group.name} of the collectives "
            "in which ranks wait: up to {loss}<group.also|; {group.also}>"
        ),
        next="ranks",
        passed="no rank keeps the others waiting",
        edit=gains.straggler,
    ),
    Rule(
        "straggler",
        "late rank",
        text=(
            "the other ranks wait for {name}, which came late {group.count:times}, not as a rule: "
            "up to {loss}<group.also|; {group.also}>"
        ),
        next="ranks",
        of="late",
        variant=True,
    ),
    Rule(
        "imbalance",
        "unbalanced devices",
        text="{name} computes {group.name}",
        next="breakdown",
        passed="devices compute about as long",
        of="uneven",
        least=MUST_SHARE,
    ),
    Rule(
        "imbalance",
        "devices wait for each other",
        text=(
            "device {device} had nothing to do while its process waited for other devices of it: "
            "{loss}; they run at once where work is launched on all before one is waited for, and "
            "handed on in smaller parts"
        ),
        next="breakdown",
        least=MUST_SHARE,
        variant=True,
    ),
)
COLLECTIVE_RULES = (
    Rule(
        "slow-link",
        "communication slow for its link",
        text="{group.name}: up to {loss}<group.also|; {group.also}>",
        next="collectives",
        ns=lambda row: min(row["slow-link"].alone_ns, row.budget.exposed_communication_ns),
        edit=lambda _, work: gains.network(work.graph),
    ),
    Rule(
        "exposed-communication",
        "communication exposed",
        text=(
            "<mpi|the launching thread waited in MPI calls with nothing on the GPU|communication "
            "ran alone> for {loss}<unbucketed|; {groups[collectives].count:collectives} of "
            "{groups[collectives].mean_ns:time} on average: one for many tensors (a bucket) costs "
            "less than one for each>"
        ),
        next=_shown_by,
        passed="communication is hidden",
        when={
            "mpi": lambda row: (
                row.caused("exposed-communication") > row.budget.exposed_communication_ns
            ),
            # a collective of next to nothing for each of many tensors
            "unbucketed": lambda row: (
                row["collectives"].count >= MANY * (row.iterations or 1)
                and row["collectives"].mean_ns < SHORT_COLLECTIVE_NS
            ),
        },
        edit=lambda _, work: gains.network(work.graph),
    ),
    Rule(
        "overlap-slowdown",
        "kernels slower beside communication",
        text=(
            "kernels take longer beside communication than alone: {loss} in "
            "{group.count:launches}; most of it {group.name:kernel}, {group.also}; fewer channels "
            "(NCCL_MAX_NCHANNELS) leave kernels more of the GPU"
        ),
        next="breakdown",
        of="slowed",
    ),
    Rule(
        "slow-collectives",
        "communication abnormally long",
        text=(
            "{group.count:collectives} took {loss_ns:time} longer than the median of their kind, "
            "{of_window}, waiting for late ranks included; worst: {group.name}"
        ),
        next="collectives",
        passed="no collective takes far longer than its kind",
        # what compute hides costs nothing
        matters=lambda row: row.budget.exposed_communication_ns >= LEAST_SHARE * row.window_ns,
    ),
)
