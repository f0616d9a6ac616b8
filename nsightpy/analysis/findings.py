"""Findings: small checks, each with its figures, what it could give back at most, what to do next.

Every bound is a ceiling on its own; ceilings of different findings overlap and are never added.
Nothing below 1 % of the window is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nsightpy.analysis.tally import Statistics
from nsightpy.analysis.time_budget import TimeBudget
from nsightpy.names import function_name
from nsightpy.results import Finding
from nsightpy.units import format_bytes, format_count, format_time

IDLE_SHARE = 0.10
EXPOSED_SHARE = 0.03
COPY_SHARE = 0.03
DOMINANT_SHARE = 0.30
OPAQUE_SHARE = 0.05
UNBALANCED = 1.25
TINY_NS = 5_000
TINY_LAUNCHES = 1_000
PAGEABLE_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """One device of one rank, and its budget."""

    rank: int | None
    device: int
    budget: TimeBudget

    @property
    def name(self) -> str:
        return f"device {self.device}" if self.rank is None else f"rank {self.rank}"


@dataclass(frozen=True)
class Facts:
    """What the checks look at; times in ns, sizes in bytes."""

    devices: Sequence[DeviceFacts]
    kernels: Statistics
    pageable_bytes: int = 0
    pageable_ns: int = 0
    report: str = "REPORT"
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def window_ns(self) -> int:
        return sum(one.budget.window_ns for one in self.devices)


def findings(facts: Facts) -> list[Finding]:
    """All findings, the largest possible gain first."""
    found = [finding for check in CHECKS for finding in check(facts)]
    return sorted(found, key=lambda one: (-(one.recoverable_ns or 0), one.name, one.rank or 0))


def idle_gpu(facts: Facts) -> list[Finding]:
    """The device with the most idle time."""
    return _worst(
        facts,
        IDLE_SHARE,
        "GPU idle",
        lambda b: b.idle_ns,
        "nothing ran for {time}, {share} of {place}'s window",
        "breakdown",
    )


def exposed_communication(facts: Facts) -> list[Finding]:
    """The device that waits longest in communication with nothing beside it."""
    return _worst(
        facts,
        EXPOSED_SHARE,
        "communication exposed",
        lambda b: b.exposed_communication_ns,
        "communication ran alone for {time}, {share} of {place}'s window",
        "breakdown",
    )


def exposed_copies(facts: Facts) -> list[Finding]:
    """The device that copies longest without a kernel beside it."""
    return _worst(
        facts,
        COPY_SHARE,
        "copies not overlapped",
        lambda b: b.copy_only_ns,
        "copies ran with no kernel beside them for {time}, {share} of {place}'s window",
        "memory",
    )


def dominating_kernel(facts: Facts) -> list[Finding]:
    """A kernel with a large part of all kernel time."""
    whole = int(facts.kernels.total.sum())
    if not whole:
        return []
    top = max(range(len(facts.kernels.keys)), key=lambda group: int(facts.kernels.total[group]))
    total = int(facts.kernels.total[top])
    if total < DOMINANT_SHARE * whole or len(facts.kernels.keys) == 1:
        return []
    name = str(facts.kernels.keys[top][-1])
    count = int(facts.kernels.instances[top])
    text = (
        f"one kernel has {_share(total, whole)} of the kernel time: {function_name(name)}, "
        f"{format_count(count)} x {format_time(float(facts.kernels.median[top]))} (median)"
    )
    return [
        Finding(
            "dominating kernel",
            "info",
            text,
            next_command=f"nsightpy kernels {facts.report} --by grid",
        )
    ]


def tiny_kernels(facts: Facts) -> list[Finding]:
    """Many kernels so short that launching them costs more than running them."""
    stats = facts.kernels
    short = [g for g in range(len(stats.keys)) if float(stats.median[g]) < TINY_NS]
    launches = sum(int(stats.instances[g]) for g in short)
    everything = int(stats.instances.sum())
    if launches < TINY_LAUNCHES or launches < everything / 2:
        return []
    text = (
        f"{format_count(launches)} of {format_count(everything)} kernels belong to kinds with a "
        f"median under {format_time(TINY_NS)}: launching costs about as much as running"
    )
    return [
        Finding("tiny kernels", "warning", text, next_command=f"nsightpy launches {facts.report}")
    ]


def pageable_copies(facts: Facts) -> list[Finding]:
    """Copies from or to pageable memory: slow, and never asynchronous."""
    if not facts.window_ns or facts.pageable_ns < PAGEABLE_SHARE * facts.window_ns:
        return []
    text = (
        f"{format_bytes(facts.pageable_bytes)} were copied from or to pageable memory in "
        f"{format_time(facts.pageable_ns)}; pinned memory copies faster and overlaps"
    )
    return [
        Finding(
            "pageable copies",
            "warning",
            text,
            recoverable_ns=facts.pageable_ns,
            recoverable_share=facts.pageable_ns / facts.window_ns,
            next_command=f"nsightpy memory {facts.report}",
        )
    ]


def opaque_graphs(facts: Facts) -> list[Finding]:
    """Graph launches whose kernels are not recorded."""
    opaque = sum(one.budget.opaque_graph_ns for one in facts.devices)
    if not facts.window_ns or opaque < OPAQUE_SHARE * facts.window_ns:
        return []
    text = (
        f"{format_time(opaque)}, {_share(opaque, facts.window_ns)} of the window, ran in CUDA "
        "graphs traced as a whole: their kernels are in no ranking"
    )
    return [
        Finding(
            "opaque CUDA graphs",
            "info",
            text,
            next_command="nsys profile --cuda-graph-trace=node ...",
        )
    ]


def unbalanced(facts: Facts) -> list[Finding]:
    """One device that computes much longer than the mean of all."""
    work = [one.budget.compute_ns for one in facts.devices]
    if len(work) < 2 or not sum(work):
        return []
    mean = sum(work) / len(work)
    place = max(range(len(work)), key=lambda index: work[index])
    if work[place] < UNBALANCED * mean:
        return []
    one = facts.devices[place]
    text = (
        f"{one.name} computes {format_time(work[place])}, {work[place] / mean:.2f} times the mean "
        f"of {len(work)} devices"
    )
    return [
        Finding(
            "unbalanced devices",
            "warning",
            text,
            rank=one.rank,
            device=one.device,
            recoverable_ns=int(work[place] - mean),
            recoverable_share=(work[place] - mean) / max(one.budget.window_ns, 1),
            next_command=f"nsightpy kernels {facts.report} --by rank",
        )
    ]


CHECKS: tuple[Callable[[Facts], list[Finding]], ...] = (
    idle_gpu,
    exposed_communication,
    exposed_copies,
    pageable_copies,
    unbalanced,
    opaque_graphs,
    tiny_kernels,
    dominating_kernel,
)


def _worst(
    facts: Facts,
    share: float,
    name: str,
    measure: Callable[[TimeBudget], int],
    text: str,
    command: str,
) -> list[Finding]:
    """The device on which a measure takes the largest part of the window, from `share` on."""
    candidates = [one for one in facts.devices if one.budget.window_ns]
    if not candidates:
        return []
    worst = max(candidates, key=lambda one: measure(one.budget) / one.budget.window_ns)
    lost, window = measure(worst.budget), worst.budget.window_ns
    if lost < share * window:
        return []
    return [
        Finding(
            name,
            "warning",
            text.format(time=format_time(lost), share=_share(lost, window), place=worst.name),
            rank=worst.rank,
            device=worst.device,
            recoverable_ns=lost,
            recoverable_share=lost / window,
            next_command=f"nsightpy {command} {facts.report}",
        )
    ]


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f}%"
