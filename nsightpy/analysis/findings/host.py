"""Checks on why a device had nothing to do: what its launching threads did instead."""

from __future__ import annotations

from collections.abc import Callable

from nsightpy.analysis.findings.facts import DeviceFacts, Facts, IdleFacts, Place
from nsightpy.analysis.findings.worst import WARNING_SHARE, Loss, placed, worst
from nsightpy.analysis.idle.host_activity import ON_CPU
from nsightpy.analysis.work_graph.thresholds import HOST_GAP_NS
from nsightpy.results import Finding
from nsightpy.units import format_count, format_time

NO_RANGES = (
    "; ranges in the code (NVTX, record_function) or CPU sampling of Nsight Systems (`nsys profile "
    "-t cuda,nvtx,osrt -s cpu`) would say what"
)


def sync_drain(facts: Facts) -> list[Finding]:
    """Blocking calls after which nothing is queued, and what then comes one by one."""

    def drained(device: DeviceFacts) -> int:
        return device.caused_ns("sync-drain") + device.idle.run_ahead_lost_ns

    put_off = _beside(facts, drained, lambda idle: idle.put_off_ns)

    def text(device: DeviceFacts, loss: Loss) -> str:
        direct, ahead = device.caused_ns("sync-drain"), device.idle.run_ahead_lost_ns
        after = ""
        if time := put_off(device):
            after = (
                f"; {format_time(time)} of it are work outside CUDA that could be done beside what "
                "those calls wait for (also counted as host-gap)"
            )
        elif ahead > direct / 10:
            after = (
                f"; {format_time(direct)} of it until the next launch, {format_time(ahead)} in "
                "launches that come one by one afterwards (also counted as launch-bound)"
            )
        return (
            f"the host waited for the GPU {_times(device.idle.drained)}"
            f"{_call(device, 'sync-drain')}, with nothing queued behind: up to {loss}, "
            f"idle until the queue had filled again{after}"
        )

    return _idle(
        facts,
        "sync-drain",
        "GPU idle: blocking calls drain the queue",
        lambda device: drained(device) + put_off(device),
        text,
        lambda device: "info" if put_off(device) else "warning",
    )


def _beside(
    facts: Facts, own: Callable[[DeviceFacts], int], other: Callable[[IdleFacts], int]
) -> Callable[[DeviceFacts], int]:
    """What of host-gap a cause may have brought about, where that is all there is of it.

    0 where some device lost much to the cause itself.
    """

    def matters(device: DeviceFacts, time: int) -> bool:
        return time >= WARNING_SHARE * device.budget.window_ns

    alone = any(matters(device, own(device)) for device in facts.used)

    def beside(device: DeviceFacts) -> int:
        time = 0 if alone or device.idle.beside else other(device.idle)
        return time if matters(device, time) else 0

    return beside


def launch_bound(facts: Facts) -> list[Finding]:
    """The host issues work continuously, and still slower than the GPU does it."""

    def text(device: DeviceFacts, loss: Loss) -> str:
        usual = ""
        if device.kernels.launches:
            mean = device.kernels.work_ns / device.kernels.launches
            usual = f" (kernels take {format_time(mean)} on average)"
        return (
            f"the GPU waited for launches, in gaps below 1 ms between kernels{usual}: {loss}; "
            "CUDA graphs, torch.compile or fused kernels save launches"
        )

    return _cause(facts, "launch-bound", "GPU idle: launch-bound", text)


def host_gap(facts: Facts) -> list[Finding]:
    """Longer stretches in which the launching thread is outside CUDA."""

    def text(device: DeviceFacts, loss: Loss) -> str:
        idle = device.idle
        host = f": {idle.host}" if idle.host else ""
        after = ""
        if idle.blocked_by:
            after = f", after a blocking call ({idle.blocked_by}) that let the queue run empty"
        where = idle.calls.get("host-gap")
        where = f"in calls of {where}" if where else "outside CUDA"
        long = idle.worst["host-gap"].duration_ns >= HOST_GAP_NS
        least = "for 1 ms or more at a time" if long else "for 100 us or more at a time"
        known = facts.has_ranges or (idle.host and not idle.host.startswith(ON_CPU))
        unknown = NO_RANGES if where == "outside CUDA" and not known else ""
        return (
            f"nothing was launched while the launching thread was {where} {least}"
            f"{after}: {loss}{host}{unknown}"
        )

    def most(device: DeviceFacts) -> str:
        return "info" if device.idle.beside else "warning"

    return _cause(facts, "host-gap", "GPU idle: host busy elsewhere", text, most)


def not_begun(facts: Facts) -> list[Finding]:
    """Work that was launched long before it began, for a reason that is not recorded."""

    def text(_: DeviceFacts, loss: Loss) -> str:
        return (
            "work had been launched for 1 ms or more and did not begin, with nothing else on the "
            f"GPU: {loss}; what it waited for is not in the capture: an event, "
            "work from before the capture, or another process on this GPU"
        )

    return _idle(
        facts,
        "capture-incomplete",
        "GPU idle: launched, not begun",
        lambda device: device.idle.overdue_ns,
        text,
        lambda _: "info",
        "queued",
    )


def first_launch(facts: Facts) -> list[Finding]:
    """Loading of modules, compilation, and first launches that do it inside the call."""

    def loaded(device: DeviceFacts) -> int:
        return device.caused_ns("first-launch")

    before = _beside(facts, loaded, lambda idle: idle.before_loading_ns)

    def text(device: DeviceFacts, loss: Loss) -> str:
        likely = ""
        if time := before(device):
            likely = (
                f"; {format_time(time)} of it are time outside CUDA just before, in which a "
                "just-in-time compiler works (also counted as host-gap)"
            )
        return (
            "code was loaded or compiled while the GPU had nothing to do"
            f"{_call(device, 'first-launch')}: {loss}{likely}; a warm-up "
            "keeps it out of what is measured"
        )

    findings = _idle(
        facts,
        "first-launch",
        "GPU idle: first launches",
        lambda device: loaded(device) + before(device),
        text,
        lambda device: "info" if before(device) else "warning",
    )
    return findings or _loaded_first(facts)


def _loaded_first(facts: Facts) -> list[Finding]:
    """Code that was loaded before what counts of a device, where that is a moment only."""
    short = [
        device
        for device in facts.used
        if device.repetition.loading_ns
        if device.short or not (device.iterations is None or device.mostly_steady)
    ]
    if not short:
        return []
    device = max(short, key=lambda device: device.repetition.loading_ns)
    took = format_time(device.repetition.loading_ns)
    began = "to work" if device.iterations is None else "its steady iterations"
    text = (
        f"{device.name} began {began} {took} after {device.repetition.loading_call} first made the "
        "context or loaded code: that, compilation and first use come before"
    )
    command = facts.command("api", device, whole=True)
    name = "start-up: first launches"
    finding = Finding(name, "info", text, next_command=command, id="first-launch")
    steady = device.iterations is not None
    begin = device.budget.start_ns if steady else device.repetition.first_ns
    lasted = device.repetition.loading_ns
    return [placed(finding, device, Place(begin - lasted, lasted))]


def allocation(facts: Facts) -> list[Finding]:
    """Allocations and frees on the critical path."""

    def text(device: DeviceFacts, loss: Loss) -> str:
        advice = "from a pool"
        if "Async" in device.idle.calls.get("allocation", ""):
            advice = "let the pool keep what is freed (its release threshold)"
        return (
            "memory was allocated or freed while the GPU had nothing to do"
            f"{_call(device, 'allocation')}: {loss}; allocate once, or {advice}"
        )

    return _cause(facts, "allocation", "GPU idle: allocation", text)


def _cause(
    facts: Facts,
    cause: str,
    name: str,
    text: Callable[[DeviceFacts, Loss], str],
    most: Callable[[DeviceFacts], str] = lambda _: "warning",
) -> list[Finding]:
    return _idle(facts, cause, name, lambda device: device.caused_ns(cause), text, most)


def _idle(
    facts: Facts,
    identifier: str,
    name: str,
    lost: Callable[[DeviceFacts], int],
    text: Callable[[DeviceFacts, Loss], str],
    most: Callable[[DeviceFacts], str] = lambda _: "warning",
    cause: str = "",
) -> list[Finding]:
    def place(device: DeviceFacts) -> Place | None:
        return device.idle.worst.get(cause or identifier)

    return worst(facts, identifier, name, lost, text, "gaps", place=place, most=most)


def _call(device: DeviceFacts, cause: str) -> str:
    """The call that most of a cause was spent in, where it is known."""
    name = device.idle.calls.get(cause)
    return f", mostly in {name}" if name else ""


def _times(count: int) -> str:
    return "once" if count == 1 else f"{format_count(count)} times"


HOST_CHECKS = (first_launch, sync_drain, host_gap, allocation, launch_bound, not_begun)
