"""Checks on why a device had nothing to do: the host loads data, waits, or launches too slowly."""

from __future__ import annotations

from nsightpy.analysis.findings.facts import DeviceFacts, Facts
from nsightpy.analysis.findings.worst import percent_text, worst
from nsightpy.results import Finding
from nsightpy.units import format_count, format_time


def host_busy(facts: Facts) -> list[Finding]:
    """The GPU has nothing to do while the host does something else: loading data, mostly."""

    def lost(one: DeviceFacts) -> int:
        return one.starvation.elsewhere_ns if one.starvation else 0

    def text(one: DeviceFacts) -> str:
        where = ""
        if one.starvation and one.starvation.range_name:
            share = percent_text(one.starvation.range_share)
            where = f"; {share} of that inside NVTX range {one.starvation.range_name!r}"
        elif not facts.has_ranges:
            where = "; NVTX ranges in the program would tell what it did"
        return (
            "nothing was launched while the host did something else (data loading, Python, other "
            f"work) for {{time}}, {{share}} of {{place}}{where}"
        )

    verb = "nvtx" if facts.has_ranges else "breakdown"
    return worst(facts, "GPU starved: host busy elsewhere", lost, text, verb)


def synchronisation(facts: Facts) -> list[Finding]:
    """Synchronising calls let the device run dry, since nothing can be launched ahead."""

    def lost(one: DeviceFacts) -> int:
        return one.starvation.after_sync_ns if one.starvation else 0

    def text(one: DeviceFacts) -> str:
        starved = one.starvation
        if starved is None:
            return ""
        call = f", mostly {starved.sync_call}" if starved.sync_call else ""
        return (
            f"the host waited in synchronising calls{call}, so nothing was launched ahead and the "
            f"GPU ran dry {_times(starved.syncs)}: without them up to {{time}} less idle, "
            "{share} of {place}"
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


def slow_launches(facts: Facts) -> list[Finding]:
    """Single launching calls that take long: the first launch of a kernel loads its code."""

    def lost(one: DeviceFacts) -> int:
        return one.long_launches.lost_ns if one.long_launches else 0

    def text(one: DeviceFacts) -> str:
        long = one.long_launches
        if long is None:
            return ""
        calls = "one launching call" if long.calls == 1 else f"{long.calls:,} launching calls"
        why = ""
        if long.first:
            which = f"{long.first:,} of them" if long.first < long.calls else "all of them"
            which = "it" if long.calls == 1 else which
            why = (
                f"; {which} launched a kernel for the first time, when its code is loaded "
                "(CUDA_MODULE_LOADING=EAGER loads it at the start)"
            )
        return (
            f"the GPU did nothing for {{time}}, {{share}} of {{place}}, inside {calls}; the worst "
            f"took {format_time(long.worst_ns)}{why}"
        )

    return worst(facts, "GPU starved: long launch calls", lost, text, "api")


def idle_gpu(facts: Facts) -> list[Finding]:
    """Idle time where the capture does not tell why."""

    def lost(one: DeviceFacts) -> int:
        return one.budget.idle_ns if one.starvation is None else 0

    def text(_: DeviceFacts) -> str:
        return "nothing ran for {time}, {share} of {place}; the capture does not tell why"

    return worst(facts, "GPU idle", lost, text, "breakdown")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{format_count(count)} times"


HOST_CHECKS = (host_busy, synchronisation, launch_overhead, slow_launches, idle_gpu)
