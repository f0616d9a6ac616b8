"""Checks on why a device had nothing to do: the host loads data, waits, or launches too slowly."""

from __future__ import annotations

import shlex
from dataclasses import replace

from nsightpy.analysis.findings.facts import DeviceFacts, Facts
from nsightpy.analysis.findings.worst import percent_text, worst
from nsightpy.results import Finding
from nsightpy.units import format_count, format_time

# From this part of a time on it is said what the host did in it.
TELLING = 0.25


def host_busy(facts: Facts) -> list[Finding]:
    """The GPU has nothing to do while the host does something else: loading data, mostly."""

    def lost(one: DeviceFacts) -> int:
        return one.starvation.elsewhere_ns if one.starvation else 0

    def text(one: DeviceFacts) -> str:
        return (
            "nothing was launched while the host did something else (data loading, Python, other "
            f"work) for {{time}}, {{share}} of {{place}}{_where(facts, one)}"
        )

    # which command tells more depends on the device that is named
    found = worst(facts, "GPU starved: host busy elsewhere", lost, text, "breakdown")
    return [
        replace(one, next_command=_about_host(facts, told))
        for one in found
        for told in facts.devices
        if (told.rank, told.device) == (one.rank, one.device)
    ][:1]


def _where(facts: Facts, one: DeviceFacts) -> str:
    """Where the host was meanwhile, as far as it is known."""
    starved, parts = one.starvation, []
    if starved is None:
        return ""
    if starved.call_share >= TELLING:
        share = percent_text(starved.call_share)
        parts.append(f"{share} of that time in long CUDA calls, mostly {starved.call_name}")
    if starved.range_name:
        share = percent_text(starved.range_share)
        parts.append(f"{share} of that time inside NVTX range {starved.range_name!r}")
    if not parts and not facts.has_ranges:
        parts.append("NVTX ranges in the program would tell what it did")
    return "".join(f"; {part}" for part in parts)


def _about_host(facts: Facts, one: DeviceFacts) -> str:
    """The command that shows best where the host was."""
    starved = one.starvation
    if starved is not None and starved.range_name:
        name = starved.range_name
        usable = name.isprintable() and "@" not in name and "--nvtx" not in facts.options
        return facts.command("nvtx", one, more=f"--nvtx {shlex.quote(name)}" if usable else "")
    if starved is not None and starved.call_share >= TELLING:
        return facts.command("api", one)
    return facts.command("nvtx" if facts.has_ranges else "breakdown", one)


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
            f"{{share}} of {{place}}; it was idle for {format_time(starved.waited_ns)} in the "
            "calls themselves"
        )

    return worst(facts, "GPU starved: synchronisation", lost, text, "sync-waits")


def launch_overhead(facts: Facts) -> list[Finding]:
    """Kernels in a row that run shorter than it takes to launch them."""

    def text(one: DeviceFacts) -> str:
        return (
            f"{format_count(one.launch_bound_kernels)} kernels ran shorter than their launching "
            "calls, many in a row; the GPU was idle between them for {time}, {share} of "
            "{place}: CUDA graphs or fused kernels would save launches"
        )

    return worst(
        facts,
        "GPU starved: launch overhead",
        lambda one: one.launch_bound_idle_ns,
        text,
        "launch-queues",
    )


def slow_launches(facts: Facts) -> list[Finding]:
    """Single launching calls that take long: the first launch of a kernel loads its code."""

    def lost(one: DeviceFacts) -> int:
        return one.long_launches.lost_ns if one.long_launches else 0

    def text(one: DeviceFacts) -> str:
        long = one.long_launches
        if long is None:
            return ""
        if long.calls == 1:
            inside = f"one launching call of {format_time(long.worst_ns)}, of {long.kernel}"
            all_first = "it was the first launch of that kernel"
        else:
            inside = (
                f"{long.calls:,} launching calls; the worst, of {long.kernel}, took "
                f"{format_time(long.worst_ns)}"
            )
            which = (
                "each of them was" if long.first == long.calls else f"{long.first:,} of them were"
            )
            all_first = f"{which} the first launch of a kernel"
        why = (
            f"; {all_first}, which loads its code (CUDA_MODULE_LOADING=EAGER does so at the start)"
        )
        return (
            f"the GPU did nothing for {{time}}, {{share}} of {{place}}, inside {inside}"
            f"{why if long.first else ''}"
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
