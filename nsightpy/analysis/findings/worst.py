"""How a check says what one device lost: the device that lost most, its figures, the next step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from nsightpy.analysis.findings.facts import DeviceFacts, Facts, Place
from nsightpy.results import Finding, Value
from nsightpy.results.keys import KERNEL
from nsightpy.units import format_time

WARNING_SHARE = 0.03


@dataclass(frozen=True, slots=True)
class Loss:
    """The time that one device lost to something, in ns, and how it is said to people."""

    device: DeviceFacts
    time_ns: int

    @property
    def share(self) -> float:
        return self.time_ns / max(self.device.budget.window_ns, 1)

    @property
    def of_window(self) -> str:
        """12 % of rank 0's 10 steady iterations (3.00 ms per iteration)."""
        each = self.device.per_iteration(self.time_ns)
        return f"{percent_text(self.share)} of {self.device.span}{each}"

    def __str__(self) -> str:
        return f"{format_time(self.time_ns)}, {self.of_window}"


def worst(
    facts: Facts,
    identifier: str,
    name: str,
    lost: Callable[[DeviceFacts], int],
    text: Callable[[DeviceFacts, Loss], str],
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

    `text` is given the device and what it lost. The next command is about that device `alone` or
    about all. `recoverable` is False where removing the cause would not give that time back, `most`
    the highest severity, `kernel` the name of that it is about.
    """
    if not facts.used:
        return []
    device = max(facts.used, key=lambda used: lost(used) / used.budget.window_ns)
    loss = Loss(device, lost(device))
    if loss.time_ns <= 0:
        return []
    return [
        finding_of(
            identifier,
            name,
            loss,
            text(device, loss),
            facts.command(command, device if alone else None, more=more),
            place=place(device),
            recoverable=recoverable,
            most=most(device),
            kernel=kernel(device),
        )
    ]


def finding_of(
    identifier: str,
    name: str,
    loss: Loss,
    text: str,
    command: str,
    *,
    place: Place | None = None,
    recoverable: bool = True,
    most: str = "warning",
    kernel: str = "",
) -> Finding:
    """A finding about what one device lost, in its window and per iteration."""
    device = loss.device
    evidence: dict[str, Value] = {"lost_ns": loss.time_ns, "window_ns": device.budget.window_ns}
    if device.iterations:
        evidence["iterations"] = device.iterations
    return Finding(
        name,
        most if loss.share >= WARNING_SHARE else "info",
        text,
        rank=device.rank,
        device=device.device,
        recoverable_ns=round(loss.time_ns / (device.iterations or 1)) if recoverable else None,
        recoverable_share=loss.share if recoverable else None,
        next_command=command,
        id=identifier,
        window=device.window,
        start_ns=None if place is None else place.start_ns + device.ahead_ns,
        duration_ns=None if place is None else place.duration_ns,
        share=loss.share,
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
