"""The events of a trace as raw tables, one for each kind of event, filled piece by piece.

Times are absolute or relative to `baseTimeNanoseconds`, as the trace has them, in ns.
"""

import itertools
import operator
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from nsightpy.frames import ColumnData, Frame, Ints, Labels
from nsightpy.readers.limits import NO_TIME, countable_rows
from nsightpy.readers.torch.columns import integers, labels, nanoseconds, text_of
from nsightpy.readers.torch.events import (
    ARGUMENTS,
    CATEGORIES,
    COLLECTIVE,
    KERNEL,
    LAUNCHED,
    MEMORY,
    METADATA,
    OPERATOR,
    OTHER,
    RANGE,
    TIMED,
    Event,
    decoded_arguments,
)

_STEP = "ProfilerStep#"
_MEMORY_EVENT = "[memory]"
_SPANS = {"X", "i", "I", None}


class TraceTables:
    """Collects events piece by piece; `table` gives all of one kind."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Frame]] = {kind: [] for kind in (*TIMED, COLLECTIVE)}
        self.process_names: dict[int, str] = {}
        self.left_out = 0
        self.unread: Counter[str] = Counter()  # what is no number where one belongs, by its name
        for kind in TIMED:  # so that each has its columns
            self._add(kind, [])

    def add(self, events: Sequence[Event]) -> None:
        """Take the events of one more piece. Raises InexactTimesError."""
        categories = {event.cat for event in events}
        kind_of = {cat: CATEGORIES.get(cat and cat.lower(), OTHER) for cat in categories}
        kinds: dict[str, list[Event]] = {kind: [] for kind in (*TIMED, METADATA, OTHER)}
        for event in events:
            kinds[kind_of[event.cat]].append(event)
        self._processes([event for event in kinds[METADATA] if event.ph == "M"])
        for kind in TIMED:
            whole = [event for event in kinds[kind] if event.ph in _SPANS]
            self.left_out += len(kinds[kind]) - len(whole)
            kinds[kind] = whole
        # steps, which old traces call operators
        steps = {name for e in kinds[OPERATOR] if (name := e.name) and name.startswith(_STEP)}
        if steps:
            kinds[RANGE] += [e for e in kinds[OPERATOR] if e.name in steps]
            kinds[OPERATOR] = [e for e in kinds[OPERATOR] if e.name not in steps]
        kinds[MEMORY] = [event for event in kinds[MEMORY] if event.name == _MEMORY_EVENT]
        for kind in TIMED:
            if kinds[kind]:
                self._add(kind, kinds[kind])

    def table(self, kind: str) -> Frame:
        """All events of a kind, in the order of the file."""
        return Frame.concatenate(self._parts[kind])

    def _add(self, kind: str, events: list[Event]) -> None:
        start, end = _times(kind, events)
        timed = countable_rows(Frame({"start_ns": start, "end_ns": end}))
        if not timed.all():
            self.left_out += int(np.count_nonzero(~timed))
            events = list(itertools.compress(events, timed.tolist()))
        part = Frame(
            {
                "start_ns": start[timed],
                "end_ns": end[timed],
                "pid": self._read("pid", integers([event.pid for event in events], -1)),
                "tid": self._read("tid", integers([event.tid for event in events])),
                "name": labels(event.name for event in events),
                **self._columns(kind, self._arguments(kind, events)),
            }
        )
        if kind == KERNEL:
            self._add_collectives(events, part.labels("collective"))
        self._parts[kind].append(part)

    def _add_collectives(self, events: Sequence[Event], names: Labels) -> None:
        """The arguments of collectives; `kernel` is the row of the kernel that has them."""
        rows = np.flatnonzero(names.where(lambda name: name not in ("", "null")))
        arguments = self._arguments(COLLECTIVE, [events[row] for row in rows.tolist()])
        first = sum(part.rows for part in self._parts[KERNEL])
        columns = {"kernel": rows + first, **self._columns(COLLECTIVE, arguments)}
        self._parts[COLLECTIVE].append(Frame(columns))

    def _arguments(self, kind: str, events: Sequence[Event]) -> list[Any]:
        if not ARGUMENTS[kind]:
            return []
        arguments, unread = decoded_arguments(kind, [event.args for event in events])
        self.unread["args"] += unread
        return arguments

    def _columns(self, kind: str, arguments: Sequence[Any]) -> dict[str, ColumnData]:
        columns: dict[str, ColumnData] = {}
        for name, (argument, missing) in ARGUMENTS[kind].items():
            values = list(map(operator.attrgetter(name), arguments))
            if missing is None:
                columns[name] = labels(map(bytes, values))
                continue
            numbers = self._read(argument, integers(values, missing))
            if name in LAUNCHED:
                impossible = numbers < int(LAUNCHED[name][1] or 0)
                self.unread[argument] += int(np.count_nonzero(impossible))
                numbers = np.where(impossible, missing, numbers)
            columns[name] = numbers
        return columns

    def _read(self, name: str, read: tuple[Ints, int]) -> Ints:
        """A column, with what was lost of it counted under its name."""
        numbers, lost = read
        self.unread[name] += lost
        return numbers

    def _processes(self, events: Sequence[Event]) -> None:
        named = [e for e in events if e.name == "process_name" and isinstance(e.pid, int)]
        for event, argument in zip(named, self._arguments(METADATA, named), strict=True):
            if name := text_of(bytes(argument.name)):
                self.process_names.setdefault(event.pid, name)


def _times(kind: str, events: Sequence[Event]) -> tuple[Ints, Ints]:
    """Start and end of events in ns."""
    start = nanoseconds([event.ts for event in events])
    if kind == MEMORY:  # a moment
        return start, start
    lasted = nanoseconds([event.dur for event in events])
    return start, np.where(lasted == NO_TIME, NO_TIME, start + lasted)
