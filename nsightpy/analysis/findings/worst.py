"""How a check says what one device lost: the device that lost most, its figures, the next step."""

from __future__ import annotations

from collections.abc import Callable

from nsightpy.analysis.findings.facts import DeviceFacts, Facts
from nsightpy.results import Finding, Value
from nsightpy.units import format_time

WARNING_SHARE = 0.03


def worst(
    facts: Facts,
    name: str,
    lost: Callable[[DeviceFacts], int],
    text: Callable[[DeviceFacts], str],
    verb: str,
    *,
    more: str = "",
    alone: bool = True,
) -> list[Finding]:
    """The finding about the device that lost the largest share of its window; none for none.

    In a text {time}, {share} and {place} stand for what was lost, of what. The next command is the
    verb with `more`, about that device alone or about all.
    """
    if not facts.used:
        return []
    one = max(facts.used, key=lambda device: lost(device) / device.budget.window_ns)
    time = lost(one)
    if time <= 0:
        return []
    share = percent_text(time / one.budget.window_ns)
    told = text(one).replace("{time}", format_time(time)).replace("{share}", share)
    command = facts.command(verb, one if alone else None, more=more)
    return [finding_of(name, one, time, told.replace("{place}", one.span), command)]


def finding_of(name: str, one: DeviceFacts, lost: int, text: str, command: str) -> Finding:
    """A finding about one device: what it lost, in its window and per iteration."""
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
        next_command=command,
        evidence=evidence,
    )


def percent_text(share: float) -> str:
    """A share of a window, as it is said to people: 12 %, 3.4 %."""
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.1f} %"
