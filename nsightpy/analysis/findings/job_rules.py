"""Rules on ranks and devices that cost each other time, and on what the captures do not say."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nsightpy.analysis.findings import thresholds as limits
from nsightpy.analysis.findings.evidence import Evidence, JobEvidence
from nsightpy.analysis.findings.gains import straggler
from nsightpy.analysis.findings.rule import ERROR, INFO, WARNING, Rule, next_command
from nsightpy.analysis.thresholds import MATERIAL
from nsightpy.analysis.work_graph import replay
from nsightpy.results import Finding, notes
from nsightpy.units import format_bytes, listed, share_text


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
        edit=straggler,
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
        least=limits.MUST_SHARE,
    ),
    Rule(
        "imbalance",
        "devices wait for each other",
        text=(
            "device {device} had nothing to do while its process waited for other devices of it: "
            "{loss}; launch work on all of them before waiting for one"
        ),
        next="breakdown",
        least=limits.MUST_SHARE,
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
        edit=lambda _, work: replay.network(work.graph),
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
                row["collectives"].count >= limits.MANY * (row.iterations or 1)
                and row["collectives"].mean_ns < limits.SHORT_COLLECTIVE_NS
            ),
        },
        edit=lambda _, work: replay.network(work.graph),
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
        matters=lambda row: row.budget.exposed_communication_ns >= MATERIAL * row.window_ns,
    ),
)


# What makes figures wrong, and what is missing.
LOST = (notes.LOST, notes.LOST_RANGES, notes.FAILED)
MISSING = (notes.LEFT_OUT, notes.REPEATED, notes.CLAIMED, notes.MISSING_RANKS)
_AGREES_WITH_HEALTH = {"dominating-kernel", "fp32-gemm", "unfused-elementwise", "opaque-graphs"}


@dataclass(frozen=True)
class CaptureRule:
    """One conclusion about all captures of a question: `text` says it, and is empty without."""

    id: str
    name: str
    severity: str
    text: Callable[[JobEvidence], str]
    passed: str = ""
    next: Callable[[JobEvidence], str] = lambda _: "info"

    def finding(self, job: JobEvidence) -> Finding:
        """What is said of these captures."""
        # what makes figures wrong comes first, what is missing after what matters more
        wrong = self.severity != WARNING or job.texts(*LOST)
        return Finding(
            *(self.name, self.severity, self.text(job)),
            next_command=next_command(job, self.next(job)),
            id=self.id,
            share=None if wrong else MATERIAL,
        )


def _no_work(job: JobEvidence) -> str:
    """That there is no GPU work, and the error of the profiler that explains it."""
    why = job.texts(notes.NO_WORK)
    kinds = (notes.FAILED, notes.LOST, notes.UNSUPPORTED, notes.PARTIAL)
    errors = [text for kind in kinds for text in job.texts(kind)]
    return "; ".join([*why[:1], *errors[:2]]) if why else ""


def _near_capacity(job: JobEvidence) -> str:
    """The device whose memory was nearest to full, where allocations were recorded."""
    rows = [row for row in job.devices if row.peak_bytes and row.memory_bytes]
    fullest = max(rows, key=lambda row: row.peak_bytes / row.memory_bytes, default=None)
    if fullest is None or fullest.peak_bytes < limits.NEAR_CAPACITY * fullest.memory_bytes:
        return ""
    share = share_text(fullest.peak_bytes, fullest.memory_bytes)
    return (
        f"{format_bytes(fullest.peak_bytes)} were allocated on {fullest.name} at the peak, {share} "
        f"of its {format_bytes(fullest.memory_bytes)}: a little more work does not fit"
    )


CAPTURE_RULES = (
    CaptureRule(
        "capture-incomplete",
        "captures of several jobs",
        ERROR,
        lambda job: "".join(
            f"{why}: sums over them mean little; ask about one at a time"
            for why in job.texts(notes.OTHER_JOBS)[:1]
        ),
    ),
    CaptureRule("no-gpu-work", "no GPU work", ERROR, _no_work),
    CaptureRule(
        "host-gap",
        "CPU busy, GPU not used",
        INFO,
        lambda job: (
            f"the CPU worked meanwhile, in {job.host}" * bool(job.host and job.texts(notes.NO_WORK))
        ),
    ),
    CaptureRule(
        "capture-incomplete",
        "incomplete capture",
        WARNING,
        # where there is no GPU work, its finding says them
        lambda job: "" if job.texts(notes.NO_WORK) else listed(job.texts(*LOST, *MISSING), 3, "; "),
        passed="nothing is lost that changes a conclusion",
    ),
    CaptureRule(
        "near-capacity",
        "memory nearly full",
        INFO,
        _near_capacity,
        next=lambda _: "memory-usage",
    ),
    CaptureRule(
        "no-steady-state",
        "no steady state",
        INFO,
        lambda job: (
            ""
            if job.is_part or not job.used or any(row.window == "steady" for row in job.used)
            else "fewer than three steps that repeat were found, so no step time may be quoted"
        ),
        passed="steps repeat, or a part of the time was asked for",
        next=lambda job: "nvtx" if any(row.has_ranges for row in job.devices) else "kernels",
    ),
)


def healthy(job: JobEvidence, findings: Sequence[Finding]) -> list[Finding]:
    """The GPU is busy, and nothing at this level stands against it: go on with ncu."""
    against = [finding for finding in findings if finding.severity != INFO]
    if not job.used or any(finding.id not in _AGREES_WITH_HEALTH for finding in against):
        return []
    least = min(job.used, key=lambda row: row.budget.busy_ns / row.window_ns)
    share = least.budget.busy_ns / least.window_ns
    # busy with copies and memory sets is not healthy, nor what worked for a moment
    if share < limits.HEALTHY_SHARE or any(
        row.short
        or row.late_ns > row.window_ns / 2
        or row.budget.copy_only_ns > (1 - limits.HEALTHY_SHARE) * row.window_ns
        for row in job.used
    ):
        return []
    text = (
        f"the GPU is busy for {share_text(share, 1)} of {least.span}: only the kernels themselves "
        "can become faster"
    )
    kernels = any(row["kernels"].count for row in job.used)
    command = "select" if least.gpu.ncu and kernels else "kernels"
    return [Finding("GPU busy", INFO, text, next_command=next_command(job, command), id="healthy")]
