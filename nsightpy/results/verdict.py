"""A summary in two sentences: how the devices spent their time, and what to look at first."""

from __future__ import annotations

from collections.abc import Mapping

from nsightpy.results.findings import Finding, worth
from nsightpy.results.listing import Value, number
from nsightpy.results.summary import Summary
from nsightpy.units import share_text

# Smaller parts of a window are not named.
LEAST_SHARE = 0.001
# The parts that a window divides into, as the verdict names them.
PARTS = (
    ("compute_ns", "compute"),
    ("exposed_communication_ns", "communicate alone"),
    ("copy_only_ns", "copy alone"),
    ("idle_ns", "are idle"),
)


def verdict_of(summary: Summary) -> str:
    """How the devices spent their time, and the first finding, in two sentences."""
    records = summary.sections["breakdown"].records()
    whole = sum(number(record["window_ns"]) for record in records)
    first = next(iter(summary.stands_out), None)
    if not whole:
        if first:
            return f"{first.text[:1].upper()}{first.text[1:]}."
        return "What was asked for holds no GPU time." if records else "No GPU work was recorded."
    parts = [
        f"{word} {share_text(_sum(records, name), whole)}"
        for name, word in PARTS
        if _sum(records, name) >= LEAST_SHARE * whole
    ]
    who = f"The {len(records)} devices" if len(records) > 1 else "The device"
    if len(records) == 1:
        words = {"compute": "computes", "communicate alone": "communicates alone"}
        words |= {"copy alone": "copies alone", "are idle": "is idle"}
        parts = [_replaced(part, words) for part in parts]
    steady = summary.header.get("steady")
    when = " of the steady state" if steady else " of the time"
    text = f"{who} {_listed(parts)}{when}."
    if first is not None:
        text += f" {_first(first)}"
    elif summary.findings == ():
        text += " Nothing stands out: no check finds 1 % of a device's window."
    return text


def _first(finding: Finding) -> str:
    gain = worth_of(finding)
    return f"First of all: {finding.name}{f', {gain}' if gain else ''}."


def _replaced(text: str, words: Mapping[str, str]) -> str:
    word = next(word for word in words if text.startswith(word))
    return words[word] + text[len(word) :]


def _sum(records: list[dict[str, Value]], name: str) -> float:
    return sum(number(record[name]) for record in records)


def _listed(parts: list[str]) -> str:
    """a, b and c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def worth_of(finding: Finding) -> str:
    """What mending a finding would gain, or could at most; empty where neither is known."""
    return worth(
        *(finding.gain_ns, finding.gain_share),
        *(finding.recoverable_ns, finding.recoverable_share),
        each=" per iteration" if finding.window == "steady" else "",
    )
