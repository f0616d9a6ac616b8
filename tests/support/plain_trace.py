"""A PyTorch trace read the plain way: json, exact decimals, loops. What nsightpy is checked on."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.support.reports import REPORTS

KINETO = REPORTS / "kineto"
TRACES = sorted(KINETO.glob("*.json.gz"))
GPU = {"kernel", "gpu_memcpy", "gpu_memset"}
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
    order: int
    args: dict[str, Any] = field(default_factory=dict)

    @property
    def duration(self) -> int:
        return self.end - self.start


def load(path: Path) -> list[Event]:
    """The complete events of a trace, in the order of the file."""
    text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
    found = []
    for order, one in enumerate(json.loads(text, parse_float=Decimal, strict=False)["traceEvents"]):
        if one.get("ph") == "X" and one.get("cat") != "Trace":
            start = int(one["ts"] * 1000)
            span = (start, start + int(one["dur"] * 1000))
            where = (one["name"], one["cat"], one["pid"], one["tid"])
            found.append(Event(*where, *span, order, one.get("args", {})))
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


@dataclass
class Sums:
    """What key_averages tells of the operators of one name, in ns."""

    calls: int = 0
    host_total: int = 0
    host_self: int = 0
    device_total: int = 0
    device_self: int = 0


def key_averages(events: Sequence[Event]) -> dict[str, Sums]:
    """torch's table: an operator's caller is the innermost one open on its thread at its start."""
    operators = of(events, "cpu_op")
    parent = _parents(operators)
    owner = _owners(operators, of(events, *CALLS))
    own = [0] * len(operators)
    for event in of(events, *GPU):
        row = owner.get(event.args.get("correlation", -1))
        if row is not None:
            own[row] += event.duration
    total, host = list(own), [event.duration for event in operators]
    # the called ones begin later: the last first
    for row in sorted(range(len(operators)), key=lambda i: _key(operators[i]), reverse=True):
        caller = parent[row]
        if caller is not None:
            total[caller] += total[row]
            host[caller] -= operators[row].duration
    found: dict[str, Sums] = defaultdict(Sums)
    for row, event in enumerate(operators):
        sums = found[event.name]
        sums.calls += 1
        sums.host_total += event.duration
        sums.host_self += host[row]
        sums.device_total += total[row]
        sums.device_self += own[row]
    return dict(found)


def _key(event: Event) -> tuple[int, int, int]:
    return (event.start, -event.end, event.order)


def _parents(operators: Sequence[Event]) -> list[int | None]:
    threads: dict[Any, list[int]] = defaultdict(list)
    for row in sorted(range(len(operators)), key=lambda i: _key(operators[i])):
        threads[operators[row].pid, operators[row].tid].append(row)
    parent: list[int | None] = [None] * len(operators)
    for rows in threads.values():
        stack: list[int] = []
        for row in rows:
            while stack and operators[stack[-1]].end <= operators[row].start:
                stack.pop()
            parent[row] = stack[-1] if stack else None
            stack.append(row)
    return parent


def _owners(operators: Sequence[Event], calls: Sequence[Event]) -> dict[int, int]:
    """The innermost operator that is open when a call begins, by correlation."""
    threads: dict[Any, list[tuple[tuple[int, int, int], int]]] = defaultdict(list)
    for row, event in enumerate(operators):
        threads[event.pid, event.tid].append((_key(event), row))
    found = {}
    asked: dict[Any, list[Event]] = defaultdict(list)
    for call in calls:
        asked[call.pid, call.tid].append(call)
    for thread, mine in asked.items():
        waiting, stack = sorted(threads.get(thread, [])), list[int]()
        place = 0
        for call in sorted(mine, key=lambda one: one.start):
            while place < len(waiting) and waiting[place][0][0] <= call.start:
                stack.append(waiting[place][1])
                place += 1
            open_now = [row for row in stack if operators[row].end > call.start]
            if open_now:
                found[call.args["correlation"]] = open_now[-1]
            stack = open_now
    return found
