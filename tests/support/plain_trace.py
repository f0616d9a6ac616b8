"""A PyTorch trace read the plain way: json, exact decimals, loops. What nsightpy is checked on."""

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.support.reports import REPORTS

KINETO = REPORTS / "kineto"
TRACES = sorted(KINETO.glob("*.json.gz"))
CALLS = {"cuda_runtime", "cuda_driver"}


@dataclass
class Event:
    """One event; times in whole ns since the trace's first one."""

    name: str
    category: str
    pid: Any
    tid: Any
    start: int
    end: int
    args: dict[str, Any] = field(default_factory=dict)

    @property
    def duration(self) -> int:
        return self.end - self.start


def load(path: Path) -> list[Event]:
    """The complete events of a trace, in the order of the file."""
    text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
    found = []
    for one in json.loads(text, parse_float=Decimal, strict=False)["traceEvents"]:
        if one.get("ph") == "X" and one.get("cat") != "Trace":
            start = int(one["ts"] * 1000)
            span = (start, start + int(one["dur"] * 1000))
            where = (one["name"], one["cat"], one["pid"], one["tid"])
            found.append(Event(*where, *span, one.get("args", {})))
    return found


def of(events: Iterable[Event], *categories: str) -> list[Event]:
    return [event for event in events if event.category in categories]


def union(events: Iterable[Event]) -> int:
    """The time that is covered, in ns."""
    total, reached = 0, None
    for event in sorted(events, key=lambda one: one.start):
        low = event.start if reached is None else max(event.start, reached)
        total += max(0, event.end - low)
        reached = event.end if reached is None else max(reached, event.end)
    return total
