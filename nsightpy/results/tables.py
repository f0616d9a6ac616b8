"""What analyses hand to people and machines: tables with named, unit-bearing columns, and notes.

A Table holds raw numbers: ns, bytes, counts. How they are shown is the renderer's business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    import pandas as pd

Value: TypeAlias = int | float | str | bool | None
AnyTable = TypeVar("AnyTable", bound="Table")


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a table: its public name, its unit, and the decimals it is printed with.

    unit is "ns", "bytes", "%", "count", "text", ... ; decimals None means a whole number.
    """

    name: str
    unit: str = "count"
    decimals: int | None = None


@dataclass(frozen=True, repr=False)
class Table:
    """Rows under named fields. `notes` says what a reader must know to trust them."""

    command: str
    fields: tuple[Field, ...]
    rows: Sequence[tuple[Value, ...]]
    inputs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    title: str = ""

    def __repr__(self) -> str:
        size = f"{len(self.rows):,} rows of {', '.join(self.columns)}"
        return f"<{type(self).__name__} {self.command}: {size}; {len(self.notes)} notes>"

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        return iter(self.rows)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def records(self) -> list[dict[str, Value]]:
        """The rows as dictionaries by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def column(self, name: str) -> list[Value]:
        """One column's values, top to bottom."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def to_pandas(self) -> pd.DataFrame:
        """The same rows as a DataFrame; None becomes the missing value of its column.

        Whole numbers stay whole: a column of them with absent values is Int64.
        """
        import pandas as pd

        made = pd.DataFrame.from_records(list(self.rows), columns=list(self.columns))
        for name in self.columns:
            values = self.column(name)
            if _whole_with_gaps(values):
                made[name] = pd.Series(values, dtype="Int64")
        return made

    def _repr_html_(self) -> str:
        made = self.to_pandas()
        shown = made.astype(object).where(made.notna(), "")
        return str(shown.to_html(escape=True, index=False))


def _whole_with_gaps(values: Sequence[Value]) -> bool:
    known = [value for value in values if value is not None]
    return 0 < len(known) < len(values) and all(type(value) is int for value in known)


@dataclass(frozen=True)
class MemorySeries:
    """Live bytes of one kind of memory on one device: `live[i]` from `times_ns[i]` on.

    Where it is known: `layers` divide live bytes by who allocated them, from the bottom up;
    `reserved` is what the allocator held; `iterations_ns` are where iterations begin and end;
    `failures_ns` are allocations that failed. Without a `clock`, times count events.
    """

    rank: int | None
    device: int
    memory: str
    times_ns: Sequence[int]
    live: Sequence[int]
    peak_by: str = ""
    reserved: Sequence[int] = ()
    layers: Sequence[tuple[str, Sequence[int]]] = ()
    iterations_ns: Sequence[int] = ()
    failures_ns: Sequence[int] = ()
    clock: bool = True


@dataclass(frozen=True)
class MemoryGrowth:
    """One iteration: the most that was live in it, and by how much memory grew over it, in bytes.

    `grown_at` is the place that grew most, by `grown_bytes`; empty where nothing grew.
    """

    start_ns: int
    end_ns: int
    peak_bytes: int
    left_bytes: int
    grown_at: str = ""
    grown_bytes: int = 0
    rank: int | None = None
    device: int = 0


@dataclass(frozen=True, repr=False)
class MemoryUsage(Table):
    """The table of `nsightpy memory-usage`, behind it what is drawn, and what iterations left."""

    series: tuple[MemorySeries, ...] = ()
    iterations: tuple[MemoryGrowth, ...] = ()


@dataclass(frozen=True)
class QueueSeries:
    """The queue of one stream: at most `longest[i]` from `times_ns[i]` to `times_ns[i + 1]`."""

    rank: int | None
    device: int
    stream: int
    operations: int
    times_ns: Sequence[int]
    longest: Sequence[int]


@dataclass(frozen=True, repr=False)
class QueueLengths(Table):
    """The table of `nsightpy launch-queues`, and behind it what is drawn."""

    series: tuple[QueueSeries, ...] = ()


@dataclass(frozen=True)
class DurationModes:
    """What the durations of one name gather around: medians in ns, ascending, and how many each."""

    name: str
    medians_ns: tuple[float, ...]
    counts: tuple[int, ...]

    @property
    def instances(self) -> int:
        return sum(self.counts)


@dataclass(frozen=True, repr=False)
class Histogram(Table):
    """The table of `nsightpy histogram`, and the modes of each name in its order."""

    modes: tuple[DurationModes, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing: what, how bad, on which figures, where, and what to type next.

    `share` is its part of the device's window; `recoverable_share` is that where removing the cause
    would give the time back. `id` is one of the stable names in docs/findings.md, `window` what
    the figures are about (whole or steady), start and duration the worst place, in ns.
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
    share: float | None = None
    evidence: Mapping[str, Value] = field(default_factory=dict)


# Sections are added at the end of the document.
ADDED_SECTIONS = ("idle", "gaps")


@dataclass(frozen=True)
class Summary:
    """One screen about one or more reports: sections by name."""

    inputs: tuple[str, ...]
    header: Mapping[str, Value]
    sections: Mapping[str, Table]
    findings: tuple[Finding, ...]
    next_steps: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The sections by name, as plain JSON values."""
        every = {name: table.records() for name, table in self.sections.items()}
        later = {name: every.pop(name) for name in ADDED_SECTIONS if name in every}
        return {
            "header": dict(self.header),
            **every,
            "findings": [finding_record(finding) for finding in self.findings],
            "next_steps": [{"command": command, "why": why} for command, why in self.next_steps],
            **later,
        }


def finding_record(finding: Finding) -> dict[str, Any]:
    """A finding under the columns of the command line."""
    return {
        "finding": finding.name,
        "severity": finding.severity,
        "rank": finding.rank,
        "device": finding.device,
        "evidence": finding.text,
        "recoverable_ns": finding.recoverable_ns,
        "recoverable_share": finding.recoverable_share,
        "next_command": finding.next_command,
        "id": finding.id,
        "window": finding.window,
        "start_ns": finding.start_ns,
        "duration_ns": finding.duration_ns,
    }


def with_notes(table: AnyTable, inputs: Sequence[str], notes: Sequence[str]) -> AnyTable:
    """The table with its inputs and notes, each note once and in order."""
    return replace(table, inputs=tuple(inputs), notes=tuple(dict.fromkeys(notes)))
