"""Rules on the captures themselves: what they do not say, and whether figures may be quoted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nsightpy.analysis.findings.evidence import Evidence, JobEvidence
from nsightpy.analysis.findings.next_command import next_command
from nsightpy.analysis.findings.rule import ERROR, INFO, WARNING, percent_text
from nsightpy.analysis.findings.thresholds import (
    COPIES_SHARE,
    HEALTHY_SHARE,
    LEAST_SHARE,
    MOST_NAMED,
    NEAR_CAPACITY,
    WARNING_SHARE,
)
from nsightpy.results import Finding, notes
from nsightpy.units import format_bytes, format_count, format_time

# What makes figures wrong; calls of CUDA explain idle time only.
LOST = (notes.LOST, notes.LOST_RANGES, notes.FAILED)
LOSSES = (
    *(*LOST, notes.LEFT_OUT),
    *(notes.REPEATED, notes.CLAIMED, notes.OTHER_PROGRAMS, notes.MISSING_RANKS),
)
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
    place: Callable[[JobEvidence], Evidence | None] = lambda _: None

    def true(self, job: JobEvidence) -> bool:
        """Whether it is to be said."""
        return bool(self.text(job))

    def finding(self, job: JobEvidence) -> Finding:
        """What is said of these captures."""
        row = self.place(job)
        worst = None if row is None else row.idle.worst.get("unknown")
        return Finding(
            self.name,
            self.severity,
            self.text(job),
            rank=None if worst is None or row is None else row.rank,
            device=None if worst is None or row is None else row.device,
            next_command=next_command(job, self.next(job)),
            id=self.id,
            start_ns=None if worst is None or row is None else worst.start_ns + row.ahead_ns,
            duration_ns=None if worst is None else worst.duration_ns,
            share=None if job.texts(*LOST) else self.share(job),
        )

    def share(self, job: JobEvidence) -> float | None:
        """The share of a window that it is about; None where it bears on everything."""
        if self.severity != WARNING:
            return None
        row = self.place(job)
        return LEAST_SHARE if row is None else row.unexplained_ns / row.window_ns


def _several_jobs(job: JobEvidence) -> str:
    why = job.texts(notes.OTHER_JOBS)
    return f"{why[0]}: sums over them mean little; ask about one at a time" if why else ""


def _no_work(job: JobEvidence) -> str:
    """That there is no GPU work, and the error of the profiler that explains it."""
    why = job.texts(notes.NO_WORK)
    kinds = (notes.FAILED, notes.LOST, notes.UNSUPPORTED, notes.PARTIAL)
    said = [text for kind in kinds for text in job.texts(kind)]
    return "; ".join([*why[:1], *said[: MOST_NAMED - 1]]) if why else ""


def _unexplained(job: JobEvidence) -> Evidence | None:
    """The device with the most idle time that no recorded call explains; None without any."""
    rows = [row for row in job.used if row.unexplained_ns >= WARNING_SHARE * row.window_ns]
    return max(rows, key=lambda row: row.unexplained_ns / row.window_ns, default=None)


def _incomplete(job: JobEvidence) -> str:
    """Losses that change a conclusion; where there is no GPU work, its finding says them."""
    if job.texts(notes.NO_WORK):
        return ""
    row = _unexplained(job)
    problems = job.texts(*LOSSES, *([notes.NO_CALLS] if row else []))
    if row:
        share = percent_text(row.unexplained_ns / row.window_ns)
        why = f"{format_count(job.unlaunched)} of {format_count(job.kernels)} kernels have no"
        problems.append(
            f"why {row.name} was idle for {format_time(row.unexplained_ns)}, {share} of its "
            f"window, is not known{f': {why} recorded launch' if job.unlaunched else ''}"
        )
    more = len(problems) - MOST_NAMED
    return "; ".join(problems[:MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")


def _no_steady_state(job: JobEvidence) -> str:
    if job.is_part or not job.used or any(row.iterations is not None for row in job.used):
        return ""
    return "fewer than three steps that repeat were found, so no step time may be quoted"


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
    CaptureRule("capture-incomplete", "captures of several jobs", ERROR, _several_jobs),
    CaptureRule("no-gpu-work", "no GPU work", ERROR, _no_work),
    CaptureRule(
        "host-gap",
        "CPU busy, GPU not used",
        INFO,
        lambda job: (
            f"the CPU worked meanwhile, in {job.host}"
            if job.host and job.texts(notes.NO_WORK)
            else ""
        ),
    ),
    CaptureRule(
        "capture-incomplete",
        "incomplete capture",
        WARNING,
        _incomplete,
        passed="nothing is lost that changes a conclusion",
        place=_unexplained,
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
        _no_steady_state,
        passed="steps repeat, or a part of the time was asked for",
        next=lambda job: "nvtx" if job.has_ranges else "kernels",
    ),
)


def healthy(job: JobEvidence, findings: Sequence[Finding]) -> list[Finding]:
    """The GPU is busy, and nothing at this level stands against it: go on with ncu."""
    against = [finding for finding in findings if finding.severity != INFO]
    if not job.used or any(finding.id not in _AGREES_WITH_HEALTH for finding in against):
        return []
    least = min(job.used, key=lambda row: row.budget.busy_ns / row.window_ns)
    share = least.budget.busy_ns / least.window_ns
    if share < HEALTHY_SHARE or any(
        row.short or row.late_ns > row.window_ns / 2 for row in job.used
    ):
        return []
    if any(row.budget.copy_only_ns > COPIES_SHARE * row.window_ns for row in job.used):
        return []  # busy with copies and memory sets
    others = ", the least of all" if len(job.used) > 1 else ""
    text = (
        f"the GPU is busy for {percent_text(share)} of {least.span}{others}: only the kernels "
        "themselves can become faster"
    )
    if any(finding.id == "opaque-graphs" for finding in findings):
        text += "; what runs inside the CUDA graphs is not known"
    kernels = any(row["kernels"].count for row in job.used)
    command = "select" if least.gpu.ncu and kernels else "kernels"
    return [Finding("GPU busy", INFO, text, next_command=next_command(job, command), id="healthy")]
