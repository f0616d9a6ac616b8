"""The checks that found nothing, as far as the reports hold what they look at."""

from __future__ import annotations

from collections.abc import Iterator

from nsightpy.results import Summary

# What a check looks at: without it, nothing is said of the check.
CALLS, COPIES, KERNELS = "calls", "copies", "kernels"
COLLECTIVES, RANKS, WORK = "collectives", "ranks", "work"
# By id of docs/findings.md: what it looks at, and what is true where it finds nothing.
CHECKS: tuple[tuple[str, str, str], ...] = (
    ("launch-bound", CALLS, "the host launches work in time"),
    ("host-gap", CALLS, "the launching thread is never outside CUDA for long with an idle GPU"),
    ("sync-drain", CALLS, "no blocking call lets the queue run empty"),
    ("first-launch", CALLS, "no time goes to loading, compiling or tuning code"),
    ("allocation", CALLS, "no device waits for memory to be allocated or freed"),
    ("exposed-h2d", COPIES, "copies from host to device are hidden by kernels"),
    ("exposed-d2h", COPIES, "copies from device to host are hidden by kernels"),
    ("exposed-d2d", COPIES, "copies on the device are hidden by kernels"),
    ("pageable-copies", COPIES, "copies do not wait for pageable memory"),
    ("many-small-copies", COPIES, "small copies cost no material time"),
    ("unified-memory", COPIES, "no pages migrate for a material time"),
    ("small-kernels", KERNELS, "kernels are long enough"),
    ("small-grid", KERNELS, "grids fill the GPU"),
    ("tiny-blocks", KERNELS, "blocks are larger than a warp"),
    ("fp32-gemm", KERNELS, "no matrix product runs in FP32 without tensor cores"),
    ("unfused-elementwise", KERNELS, "elementwise kernels take little of the time"),
    ("dominating-kernel", KERNELS, "no single kernel dominates"),
    ("serialised-streams", KERNELS, "streams are not in each other's way"),
    ("exposed-communication", COLLECTIVES, "communication is hidden by compute"),
    ("slow-collectives", COLLECTIVES, "no collective is far longer than its median"),
    ("straggler", RANKS, "no rank makes the others wait"),
    ("imbalance", RANKS, "compute is even between devices"),
    ("opaque-graphs", WORK, "no CUDA graph hides its kernels"),
    ("capture-incomplete", WORK, "the capture is complete"),
    ("startup-dominates", WORK, "the capture is not mostly start-up"),
    ("no-steady-state", WORK, "the run repeats: step times can be quoted"),
)


def passed_checks(summary: Summary) -> tuple[tuple[str, str], ...]:
    """The ids that found nothing, each with what that means."""
    there = set(_looked_at(summary))
    reported = {finding.id for finding in summary.findings}
    return tuple(
        (name, says) for name, what, says in CHECKS if what in there and name not in reported
    )


def _looked_at(summary: Summary) -> Iterator[str]:
    sections = summary.sections
    if sections["breakdown"].rows:
        yield WORK
    if sections["idle"].rows:
        yield CALLS
    if sections["memory"].rows:
        yield COPIES
    if sections["kernels"].rows:
        yield KERNELS
    if sections["collectives"].rows:
        yield COLLECTIVES
    if len({row[0] for row in sections["ranks"].rows}) > 1:
        yield RANKS
