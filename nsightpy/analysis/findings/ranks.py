"""Checks on communication and on what ranks cost each other."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from nsightpy.analysis.findings.facts import LEAST_SHARE, DeviceFacts, Facts, Place
from nsightpy.analysis.findings.worst import Loss, finding_of, percent_text, worst
from nsightpy.results import Finding
from nsightpy.units import format_time, significant

UNBALANCED = 1.25
# Devices of one job may have different work to do: only much of it is a warning.
LEAST_IMBALANCE = 0.10
# Longer compute explains a straggler from this part of what it costs on.
EXPLAINS = 0.3


def straggler(facts: Facts) -> list[Finding]:
    """The rank that the others wait for."""
    for device in facts.devices:
        if device.straggler is None or not device.budget.window_ns:
            continue
        others = [other for other in facts.devices if other is not device]
        # who waits for it communicates, and only what nothing else hides costs time
        most = max((other.budget.exposed_communication_ns for other in others), default=0)
        lost = min(device.straggler.caused_ns, most)
        if lost <= 0:
            continue
        loss = Loss(device, lost)
        times = device.straggler.times
        how = (
            f"came late {times:,} time{'s' if times > 1 else ''}, not as a rule"
            if times
            else f"comes last to {percent_text(device.straggler.last_share)} of the collectives in "
            "which ranks wait"
        )
        text = (
            f"the other ranks wait for {device.name}, which {how}: up to {loss}"
            f"{_slower(device, others, lost)}"
        )
        name = "late rank" if times else "straggler"
        place = device.straggler.worst
        command = facts.command("ranks")
        return [finding_of("straggler", name, loss, text, command, place=place)]
    return []


def _slower(device: DeviceFacts, others: Sequence[DeviceFacts], lost: int) -> str:
    """Whether it is longer compute that makes a rank late."""
    times = _comparable_compute([device, *others])
    if not times:
        return ""
    usual = median(times[1:])
    more = (times[0] - usual) * (device.iterations or 1)
    if more < EXPLAINS * lost:
        return ""
    ratio = significant(times[0] / usual) if usual else "many"
    return f"; its kernels take {format_time(more)} longer, {ratio} times the others' median"


def _comparable_compute(devices: Sequence[DeviceFacts]) -> list[float]:
    """The compute time of each device per iteration, or of whole windows, in ns.

    Nothing where some windows hold iterations and others are whole captures.
    """
    counted = [bool(device.iterations) for device in devices]
    if any(counted) and not all(counted):
        return []
    return [device.budget.compute_ns / (device.iterations or 1) for device in devices]


def exposed_communication(facts: Facts) -> list[Finding]:
    """Communication with nothing beside it."""

    def in_mpi(device: DeviceFacts) -> int:
        return device.caused_ns("exposed-communication")

    def text(device: DeviceFacts, loss: Loss) -> str:
        if in_mpi(device) > device.budget.exposed_communication_ns:
            return f"the launching thread waited in MPI calls with nothing on the GPU for {loss}"
        return f"communication ran alone for {loss}"

    def place(device: DeviceFacts) -> Place | None:
        waited = device.idle.worst.get("exposed-communication")
        return max(
            filter(None, (device.exposed, waited)), key=lambda at: at.duration_ns, default=None
        )

    in_mpi_anywhere = any(in_mpi(device) for device in facts.used)
    return worst(
        facts,
        "exposed-communication",
        "communication exposed",
        lambda device: device.budget.exposed_communication_ns + in_mpi(device),
        text,
        "collectives" if facts.has_collectives else "gaps" if in_mpi_anywhere else "breakdown",
        alone=False,
        place=place,
    )


def slow_communication(facts: Facts) -> list[Finding]:
    """Collectives far longer than others of their own operation, size and group."""

    def lost(device: DeviceFacts) -> int:
        # what compute hides costs nothing
        hidden = device.budget.exposed_communication_ns < LEAST_SHARE * device.budget.window_ns
        return 0 if hidden or device.slow_collectives is None else device.slow_collectives.lost_ns

    def text(device: DeviceFacts, loss: Loss) -> str:
        slow = device.slow_collectives
        if slow is None:
            return ""
        calls = "1 collective" if slow.instances == 1 else f"{slow.instances:,} collectives"
        return (
            f"{calls} took {format_time(loss.time_ns)} longer than the median of their kind, "
            f"{loss.of_window}, waiting for late ranks included; worst: {slow.called} took "
            f"{format_time(slow.duration_ns)}, {significant(slow.ratio)} times its median; "
            f"{slow.cause}"
        )

    return worst(
        facts,
        "slow-collectives",
        "communication abnormally long",
        lost,
        text,
        "collectives",
        alone=False,
        place=lambda device: (
            None if device.slow_collectives is None else device.slow_collectives.worst
        ),
    )


def unbalanced(facts: Facts) -> list[Finding]:
    """One device that computes much longer than the mean of all, while another waits."""
    devices = facts.used
    work = _comparable_compute(devices)
    mean = sum(work) / max(len(work), 1)
    if not mean or max(work) < UNBALANCED * mean:
        return _in_turn(facts)
    place = work.index(max(work))
    device = devices[place]
    # devices that are busy with something else wait for nobody
    longest = max(other.budget.window_ns for other in devices)
    free, freest = max(
        (longest - other.budget.busy_ns + other.budget.exposed_communication_ns, number)
        for number, other in enumerate(devices)
        if other is not device
    )
    lost = min(int((work[place] - mean) * (device.iterations or 1)), free)
    computes = device.budget.compute_ns
    text = (
        f"{device.name} computes {format_time(computes)}{device.per_iteration(computes)}, "
        f"{significant(work[place] / mean)} times the mean of {len(work)} devices"
    )
    most = "warning" if lost >= LEAST_IMBALANCE * device.budget.window_ns else "info"
    command = facts.command("breakdown")
    return [
        finding_of(
            *("imbalance", "unbalanced devices", Loss(device, lost), text, command),
            place=_longest_wait(devices[freest], device),
            most=most,
        )
    ]


def _in_turn(facts: Facts) -> list[Finding]:
    """A device that has nothing to do while its threads wait for other devices of their process."""

    def most(device: DeviceFacts) -> str:
        least = LEAST_IMBALANCE * device.budget.window_ns
        return "warning" if device.caused_ns("imbalance") >= least else "info"

    return worst(
        facts,
        "imbalance",
        "devices wait for each other",
        lambda device: device.caused_ns("imbalance"),
        lambda device, loss: (
            f"device {device.device} had nothing to do while its process waited for other devices "
            f"of it: {loss}; they run at once where work is launched on all "
            "before one is waited for, and handed on in smaller parts"
        ),
        "breakdown",
        alone=False,
        place=lambda device: device.idle.worst.get("imbalance"),
        most=most,
    )


def _longest_wait(waiting: DeviceFacts, device: DeviceFacts) -> Place | None:
    """The longest time in which a device had nothing to do or waited for another, in its time."""
    gap = waiting.idle.longest
    places = [waiting.exposed, None if gap is None else gap.place]
    longest = max(filter(None, places), key=lambda place: place.duration_ns, default=None)
    if longest is None:
        return None
    return Place(longest.start_ns + waiting.ahead_ns - device.ahead_ns, longest.duration_ns)


RANK_CHECKS = (straggler, exposed_communication, slow_communication, unbalanced)
