"""Rules on the captures themselves: what they do not say, and whether figures may be quoted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nsightpy.analysis.findings.evidence import JobEvidence
from nsightpy.analysis.findings.rule import ERROR, INFO, WARNING, next_command, percent_text
from nsightpy.analysis.findings.thresholds import HEALTHY_SHARE, LEAST_SHARE, NEAR_CAPACITY
from nsightpy.results import Finding, notes
from nsightpy.units import format_bytes, listed

# What makes figures wrong, and what is missing.
LOST = (notes.LOST, notes.LOST_RANGES, notes.FAILED)
MISSING = (notes.LEFT_OUT, notes.REPEATED, notes.CLAIMED, notes.OTHER_PROGRAMS, notes.MISSING_RANKS)
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
            share=None if wrong else LEAST_SHARE,
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
    if fullest is None or fullest.peak_bytes < NEAR_CAPACITY * fullest.memory_bytes:
        return ""
    share = percent_text(fullest.peak_bytes / fullest.memory_bytes)
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
    if share < HEALTHY_SHARE or any(
        row.short
        or row.late_ns > row.window_ns / 2
        or row.budget.copy_only_ns > (1 - HEALTHY_SHARE) * row.window_ns
        for row in job.used
    ):
        return []
    text = (
        f"the GPU is busy for {percent_text(share)} of {least.span}: only the kernels themselves "
        "can become faster"
    )
    kernels = any(row["kernels"].count for row in job.used)
    command = "select" if least.gpu.ncu and kernels else "kernels"
    return [Finding("GPU busy", INFO, text, next_command=next_command(job, command), id="healthy")]
