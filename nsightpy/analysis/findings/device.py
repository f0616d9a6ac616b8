"""Checks on how each device spent its time; each names the device that lost most."""

from __future__ import annotations

from collections.abc import Callable

from nsightpy.analysis.findings.facts import DeviceFacts, Facts
from nsightpy.results import Finding, Value
from nsightpy.units import format_bytes, format_count, format_time, significant

Check = Callable[[Facts], list[Finding]]

WARNING_SHARE = 0.03
UNBALANCED = 1.25


def host_busy(facts: Facts) -> list[Finding]:
    """The GPU has nothing to do while the host does something else: loading data, mostly."""

    def lost(one: DeviceFacts) -> int:
        return one.starvation.elsewhere_ns if one.starvation else 0

    def text(one: DeviceFacts) -> str:
        where = ""
        if one.starvation and one.starvation.range_name:
            share = _percent(one.starvation.range_share)
            where = f"; {share} of that inside NVTX range {one.starvation.range_name!r}"
        return (
            "nothing was launched while the host did something else (data loading, Python, other "
            f"work) for {{time}}, {{share}} of {{place}}{where}"
        )

    return worst(facts, "GPU starved: host busy elsewhere", lost, text, "nvtx")


def synchronisation(facts: Facts) -> list[Finding]:
    """Synchronising calls let the device run dry, since nothing can be launched ahead."""

    def lost(one: DeviceFacts) -> int:
        return one.starvation.after_sync_ns if one.starvation else 0

    def text(one: DeviceFacts) -> str:
        syncs = one.starvation.syncs if one.starvation else 0
        waited = one.starvation.waited_ns if one.starvation else 0
        return (
            "the GPU ran dry while the host was in a synchronising call, and had nothing to run "
            f"for {{time}}, {{share}} of {{place}} ({format_count(syncs)} gaps; the "
            f"calls themselves waited {format_time(waited)} on an idle GPU)"
        )

    return worst(facts, "GPU starved: synchronisation", lost, text, "api")


def launch_overhead(facts: Facts) -> list[Finding]:
    """Kernels in a row that run shorter than it takes to launch them."""

    def text(one: DeviceFacts) -> str:
        return (
            f"{format_count(one.launch_bound_kernels)} kernels ran shorter than their launching "
            "calls, many in a row; the GPU was idle between them for {time}, {share} of "
            "{place}: CUDA graphs or fused kernels would save launches"
        )

    return worst(
        facts, "GPU starved: launch overhead", lambda o: o.launch_bound_idle_ns, text, "launches"
    )


def idle_gpu(facts: Facts) -> list[Finding]:
    """Idle time where the capture does not tell why."""

    def lost(one: DeviceFacts) -> int:
        return one.budget.idle_ns if one.starvation is None else 0

    return worst(
        facts,
        "GPU idle",
        lost,
        lambda _: "nothing ran for {time}, {share} of {place}",
        "breakdown",
    )


def exposed_communication(facts: Facts) -> list[Finding]:
    """Communication with nothing beside it."""
    return worst(
        facts,
        "communication exposed",
        lambda one: one.budget.exposed_communication_ns,
        lambda _: "communication ran alone for {time}, {share} of {place}",
        "breakdown",
    )


def slow_communication(facts: Facts) -> list[Finding]:
    """Collectives far longer than others of their own size class."""

    def lost(one: DeviceFacts) -> int:
        return one.slow_collectives.lost_ns if one.slow_collectives else 0

    def text(one: DeviceFacts) -> str:
        slow = one.slow_collectives
        if slow is None:
            return ""
        kind, *rest = slow.worst_class
        size = rest[0] if rest else None
        kind = f"{kind} of {format_bytes(size)}" if isinstance(size, int) and size > 0 else kind
        return (
            f"{format_count(slow.instances)} collectives took {{time}} longer than the medians of "
            f"their own size classes, {{share}} of {{place}}, waiting for late ranks "
            f"included; worst {kind}: {significant(slow.worst_ratio, 2)} times its median of "
            f"{format_time(slow.worst_median_ns)}"
        )

    return worst(facts, "communication abnormally long", lost, text, "ranks")


def input_copies(facts: Facts) -> list[Finding]:
    """Host-to-device copies that nothing hides: the data loader's part of the critical path."""

    def lost(one: DeviceFacts) -> int:
        return one.input_copies.exposed_ns if one.input_copies else 0

    def text(one: DeviceFacts) -> str:
        size = one.input_copies.bytes if one.input_copies else 0
        return (
            f"host-to-device copies ({format_bytes(size)} in all) ran with no kernel beside them "
            "for {time}, {share} of {place}: prefetch on a stream of their own"
        )

    return worst(facts, "input copies not overlapped", lost, text, "memory --by memory")


def exposed_copies(facts: Facts) -> list[Finding]:
    """Copies of any direction with no kernel beside them, but for input copies."""

    def lost(one: DeviceFacts) -> int:
        mine = one.input_copies.exposed_ns if one.input_copies else 0
        return max(one.budget.copy_only_ns - mine, 0)

    return worst(
        facts,
        "copies not overlapped",
        lost,
        lambda _: "other copies ran with no kernel beside them for {time}, {share} of {place}",
        "memory --by memory",
    )


def pageable_copies(facts: Facts) -> list[Finding]:
    """Copies from or to pageable memory: slow, and never asynchronous."""

    def lost(one: DeviceFacts) -> int:
        return one.pageable.busy_ns if one.pageable else 0

    def text(one: DeviceFacts) -> str:
        copies = one.pageable
        size = format_bytes(copies.bytes) if copies else ""
        rate = f" at {significant(copies.gb_per_s)} GB/s" if copies and copies.gb_per_s else ""
        return (
            f"{size} were copied from or to pageable memory in {{time}}{rate}, {{share}} of "
            "{place}; pinned memory copies faster and overlaps"
        )

    return worst(facts, "pageable copies", lost, text, "memory --by memory")


def unified_memory(facts: Facts) -> list[Finding]:
    """Pages of unified memory that migrate while kernels wait for them."""

    def lost(one: DeviceFacts) -> int:
        return one.unified.busy_ns if one.unified else 0

    def text(one: DeviceFacts) -> str:
        size = format_bytes(one.unified.bytes if one.unified else 0)
        return (
            f"{size} of unified memory migrated in {{time}}, {{share}} of {{place}}; "
            "prefetching avoids page faults"
        )

    return worst(facts, "unified memory migrates", lost, text, "memory --by memory")


def unbalanced(facts: Facts) -> list[Finding]:
    """One device that computes much longer than the mean of all."""
    work = [one.budget.compute_ns for one in facts.devices]
    if len(work) < 2 or not sum(work):
        return []
    mean = sum(work) / len(work)
    place = max(range(len(work)), key=lambda index: work[index])
    one = facts.devices[place]
    if work[place] < UNBALANCED * mean:
        return []
    ratio = significant(work[place] / mean)
    text = (
        f"{one.name} computes {format_time(work[place])}, {ratio} times the mean of {len(work)} "
        "devices"
    )
    lost = int(work[place] - mean)
    return [_finding("unbalanced devices", one, lost, text, f"kernels {facts.report} --by rank")]


DEVICE_CHECKS: tuple[Check, ...] = (
    host_busy,
    synchronisation,
    launch_overhead,
    idle_gpu,
    exposed_communication,
    slow_communication,
    input_copies,
    exposed_copies,
    pageable_copies,
    unified_memory,
    unbalanced,
)


def worst(
    facts: Facts,
    name: str,
    lost: Callable[[DeviceFacts], int],
    text: Callable[[DeviceFacts], str],
    command: str,
) -> list[Finding]:
    """The finding about the device that lost the largest share of its window; none for none."""
    devices = [one for one in facts.devices if one.budget.window_ns]
    if not devices:
        return []
    one = max(devices, key=lambda device: lost(device) / device.budget.window_ns)
    time = lost(one)
    if not time:
        return []
    share = _percent(time / one.budget.window_ns)
    told = text(one).replace("{time}", format_time(time)).replace("{share}", share)
    verb, _, options = command.partition(" ")
    line = " ".join(part for part in (verb, facts.report, options) if part)
    return [_finding(name, one, time, told.replace("{place}", one.span), line)]


def _finding(name: str, one: DeviceFacts, lost: int, text: str, command: str) -> Finding:
    count = one.iterations or 1
    share = lost / max(one.budget.window_ns, 1)
    evidence: dict[str, Value] = {"lost_ns": lost, "window_ns": one.budget.window_ns}
    if one.iterations:
        evidence["iterations"] = one.iterations
        text += f" ({format_time(lost / count)} per iteration)"
    return Finding(
        name,
        "warning" if share >= WARNING_SHARE else "info",
        text,
        rank=one.rank,
        device=one.device,
        recoverable_ns=round(lost / count),
        recoverable_share=share,
        next_command=f"nsightpy {command}",
        evidence=evidence,
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.1f} %"
