"""How a check says what one device lost: the device that lost most, its figures, the next step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nsightpy.analysis.findings.facts import DeviceFacts, Facts, Place
from nsightpy.results import Finding, Value
from nsightpy.results.keys import KERNEL
from nsightpy.units import format_time

WARNING_SHARE = 0.03


def worst(
    facts: Facts,
    identifier: str,
    name: str,
    lost: Callable[[DeviceFacts], int],
    text: Callable[[DeviceFacts], str],
    command: str,
    *,
    more: str = "",
    alone: bool = True,
    place: Callable[[DeviceFacts], Place | None] = lambda _: None,
    recoverable: bool = True,
    most: Callable[[DeviceFacts], str] = lambda _: "warning",
    kernel: Callable[[DeviceFacts], str] = lambda _: "",
) -> list[Finding]:
    """The finding about the device that lost the largest share of its window; none for none.

    In a text {time}, {share} and {place} stand for what was lost, of what. The next command is
    about that device `alone` or about all. `recoverable` is False where removing the cause would
    not give that time back, `most` the highest severity, `kernel` the name of that it is about.
    """
    if not facts.used:
        return []
    device = max(facts.used, key=lambda used: lost(used) / used.budget.window_ns)
    time = lost(device)
    if time <= 0:
        return []
    share = percent_text(time / device.budget.window_ns)
    said = text(device).replace("{time}", format_time(time)).replace("{share}", share)
    next_command = facts.command(command, device if alone else None, more=more)
    return [
        finding_of(
            identifier,
            name,
            device,
            time,
            said.replace("{place}", device.span),
            next_command,
            place=place(device),
            recoverable=recoverable,
            most=most(device),
            kernel=kernel(device),
        )
    ]


def finding_of(
    identifier: str,
    name: str,
    device: DeviceFacts,
    lost: int,
    text: str,
    command: str,
    *,
    place: Place | None = None,
    recoverable: bool = True,
    most: str = "warning",
    kernel: str = "",
) -> Finding:
    """A finding about one device: what it lost, in its window and per iteration."""
    count = device.iterations or 1
    share = lost / max(device.budget.window_ns, 1)
    evidence: dict[str, Value] = {"lost_ns": lost, "window_ns": device.budget.window_ns}
    if device.iterations:
        evidence["iterations"] = device.iterations
        stated = text.partition(device.span)
        each = f" ({format_time(lost / count)} per iteration)"
        text = "".join((*stated[:2], each, stated[2]))
    return Finding(
        name,
        most if share >= WARNING_SHARE else "info",
        text,
        rank=device.rank,
        device=device.device,
        recoverable_ns=round(lost / count) if recoverable else None,
        recoverable_share=share if recoverable else None,
        next_command=command,
        id=identifier,
        window=device.window,
        start_ns=None if place is None else place.start_ns + device.ahead_ns,
        duration_ns=None if place is None else place.duration_ns,
        share=share,
        evidence=evidence,
        about=(KERNEL, kernel) if kernel else None,
    )


def placed(finding: Finding, device: DeviceFacts, place: Place | None) -> Finding:
    """A finding with the device that it is worst on, and where."""
    if place is None:
        return finding
    return replace(
        finding,
        rank=device.rank,
        device=device.device,
        start_ns=place.start_ns + device.ahead_ns,
        duration_ns=place.duration_ns,
    )


def severity_of_use(device: DeviceFacts) -> str:
    """The severity of how kernels use a GPU: info where it worked once, for a moment only."""
    return "info" if device.short and device.iterations is None else "warning"


def percent_text(share: float) -> str:
    """A share of a window, as it is said to people: 12 %, 3.4 %; never 100 % of what is less."""
    if 0.995 <= share < 1:
        return f"{100 * share:.1f} %"
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.1f} %"
