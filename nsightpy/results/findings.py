"""Findings: one thing worth knowing each, and the table of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nsightpy.results.keys import Value, key_of
from nsightpy.results.notes import Said
from nsightpy.results.tables import Field, Table
from nsightpy.units import format_time, share_text

# A gain and its bound that differ by more than this share are both said.
MATERIAL = 0.1
FINDING_FIELDS = (
    Field("finding", "name", own=True),
    Field("severity", "text", own=True),
    Field("rank", "id"),
    Field("device", "id"),
    Field("evidence", "name"),
    Field("recoverable_ns", "time"),
    Field("recoverable_share", "share", 4),
    Field("next_command", "text"),
    Field("id", "text", own=True),
    Field("window", "text", own=True),
    Field("start_ns", "moment"),
    Field("duration_ns", "time"),
    Field("gain_ns", "time"),
    Field("gain_share", "share", 4),
    Field("part_of", "text", own=True),
)


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing: what, how bad, on which figures, where, and what to type next.

    `share` is its part of the device's window; `recoverable_share` is that where removing the cause
    would give the time back. `id` is one of the stable names in docs/findings.md, `window` what
    the figures are about (whole or steady), start and duration the worst place, in ns. `gain_ns` is
    what a replay without the cause is shorter by, `part_of` the id of the finding whose time this
    one names again. `passing`: it may never matter again; `minor`: mending it is not known to gain
    anything that matters. `about` is the kind and name of the kernel (results.keys) that it names.
    """

    name: str
    severity: str
    text: str
    rank: int | None = None
    device: int | None = None
    recoverable_ns: int | None = None
    recoverable_share: float | None = None
    next_command: str = ""
    id: str = ""
    window: str = "whole"
    start_ns: int | None = None
    duration_ns: int | None = None
    gain_ns: int | None = None
    gain_share: float | None = None
    part_of: str = ""
    minor: bool = False
    share: float | None = None
    passing: bool = False
    about: tuple[str, str] | None = None

    @property
    def key(self) -> str | None:
        """The key of what it is about, as in every table."""
        return None if self.about is None else key_of(*self.about)


def finding_record(finding: Finding) -> dict[str, Any]:
    """A finding under the columns of the command line."""
    attributes = {"finding": "name", "evidence": "text"}
    names = (field.name for field in FINDING_FIELDS)
    return {name: getattr(finding, attributes.get(name, name)) for name in names}


def worth(finding: Mapping[str, Any]) -> str:
    """What mending a finding is worth, for people: the gain, and a bound that is much more.

    Of a row of the table; without a gain the bound, empty without either.
    """
    each = " per iteration" if finding["window"] == "steady" else ""
    gain_ns, bound_ns = finding["gain_ns"], finding["recoverable_ns"]
    share = finding["recoverable_share" if gain_ns is None else "gain_share"]
    part = "" if share is None else f", {share_text(share, 1)}"
    if gain_ns is None:
        return "" if bound_ns is None else f"at most {format_time(bound_ns)}{each}{part}"
    apart = bound_ns is not None and abs(bound_ns - gain_ns) > MATERIAL * bound_ns
    most = f" (at most {format_time(bound_ns)})" if apart else ""
    return f"{format_time(gain_ns)}{each} to gain{most}{part}" if gain_ns else f"no gain{most}"


def place_text(finding: Mapping[str, Any]) -> str:
    """Where it is worst, as --from takes it; of a row of the table, empty where none is known."""
    start, duration = finding["start_ns"], finding["duration_ns"]
    if start is None or duration is None:
        return ""
    where = "" if finding["rank"] is None else f" in rank {finding['rank']}"
    return f"worst{where}: {format_time(duration)} from {start / 1e6:.3f} ms on"


def unsaid(notes: Iterable[Said], texts: Iterable[Value]) -> tuple[str, ...]:
    """The notes that none of the texts holds already."""
    whole = "\n".join(map(str, texts))
    return tuple(note for note in map(str, notes) if note.removesuffix(".") not in whole)


@dataclass(frozen=True, repr=False)
class Findings(Table):
    """The table of `nsightpy findings`, and what its gains rest on."""

    replay: Mapping[str, Any] = field(default_factory=dict)

    def members(self) -> dict[str, Any]:
        """What was replayed, how far that can be trusted, and why it cannot."""
        return {"replay": dict(self.replay)}


def findings_table(
    findings: Sequence[Finding], replay: Mapping[str, Any] | None = None
) -> Findings:
    """Findings under the columns of the command line."""
    rows = tuple(tuple(finding_record(finding).values()) for finding in findings)
    keys = tuple(finding.key for finding in findings)
    return Findings("findings", FINDING_FIELDS, rows, keys=keys, replay=replay or {})
