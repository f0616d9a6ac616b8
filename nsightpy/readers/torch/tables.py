"""The events of a trace as raw tables, one for each kind of event, filled piece by piece.

Times are absolute or relative to `baseTimeNanoseconds`, as the trace has them, in ns.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from nsightpy.frames import ColumnData, Frame, Ints, Labels, distinct, joined
from nsightpy.readers.limits import GREATEST_TIME, summable
from nsightpy.readers.torch.columns import Texts, ids, integers, text_of
from nsightpy.readers.torch.decode import decoded_arguments
from nsightpy.readers.torch.events import (
    ARGUMENTS,
    CATEGORIES,
    COLLECTIVE,
    KERNEL,
    LAUNCHED,
    MEMORY,
    METADATA,
    NOTHING,
    OPERATOR,
    OTHER,
    RANGE,
    SHAPES,
    Event,
)
from nsightpy.readers.torch.times import NO_TIME, nanoseconds

_STEP = "ProfilerStep#"
_MEMORY_EVENT = "[memory]"
_SPANS = {"X", "i", "I", None}
_BEGINS = "B"
_LAST_THREAD = 0xFFFFFF
_COMMON = ("start", "end", "pid", "tid", "name")
# texts of JSON that name no collective
_UNNAMED = (b"", b'""', b"null")


class _Kinds(dict[str | None, str]):
    """The kind of each category that occurs."""

    def __missing__(self, category: str) -> str:
        kind = CATEGORIES.get(category.lower(), OTHER)
        self[category] = kind
        return kind


class _Threads(dict[int, int]):
    """Thread ids in 24 bits, as in Nsight Systems reports; POSIX handles have more, or a sign.

    Of threads that agree in the lowest bits, those that come later get a number nobody has.
    """

    def __init__(self) -> None:
        super().__init__()
        self._taken: set[int] = set()
        self._free = _LAST_THREAD

    def of(self, tids: Ints) -> Ints:
        known, codes = distinct(tids)
        return np.asarray([self[tid] for tid in known.tolist()], dtype=np.int64)[codes]

    def __missing__(self, tid: int) -> int:
        code = tid & _LAST_THREAD
        if code in self._taken:
            while self._free in self._taken and self._free:
                self._free -= 1
            code = self._free
        self._taken.add(code)
        self[tid] = code
        return code


class TraceTables:
    """Collects events piece by piece; `table` gives all of one kind."""

    def __init__(self) -> None:
        self._kinds = _Kinds(CATEGORIES)
        self._parts: dict[str, dict[str, list[ColumnData]]] = {}
        self._texts: dict[tuple[str, str], Texts] = {}
        self._rows: dict[str, int] = {}
        self._threads = _Threads()
        self.process_names: dict[int, str] = {}
        self.cpu_pids: list[int] = []
        self.events = 0
        self.left_out = 0
        self.apart = 0
        self.mended = 0
        self.unread: Counter[str] = Counter()  # what is no number where one belongs, by its name

    def add(self, events: Sequence[Event]) -> None:
        """Take the events of one more piece. Raises InexactTimesError, and takes none then."""
        kinds: dict[str, list[Event]] = {kind: [] for kind in (*ARGUMENTS, OTHER)}
        kind_of = self._kinds
        for event in events:
            kinds[kind_of[event.cat]].append(event)
        metadata = kinds.pop(METADATA)
        del kinds[OTHER]
        apart = sum(self._keep_spans(kinds, kind) for kind in kinds)
        self._sort_out(kinds)
        timed = {kind: _times(kind, of_kind) for kind, of_kind in kinds.items() if of_kind}
        self.events += len(events)
        self.apart += apart
        for kind, (start, end) in timed.items():
            good = start != NO_TIME
            self.left_out += int(np.count_nonzero(~good))
            rows = kinds[kind]
            fine = rows if good.all() else list(itertools.compress(rows, good.tolist()))
            self._add(kind, fine, start[good], end[good])
        self._processes([event for event in metadata if event.ph == "M"])

    def table(self, kind: str) -> Frame:
        """All events of a kind, in the order of the file."""
        parts = self._parts.get(kind) or {name: [] for name in self._names(kind)}
        return Frame(
            {
                name: self._text(kind, name).labels([p for p in arrays if isinstance(p, Labels)])
                if self._is_text(kind, name)
                else (joined(arrays) if arrays else np.empty(0, dtype=np.int64))
                for name, arrays in parts.items()
            }
        )

    def _keep_spans(self, kinds: dict[str, list[Event]], kind: str) -> int:
        """Keep the events of a kind that are whole; how many of the others begin one."""
        events = kinds[kind]
        if {*map(operator.attrgetter("ph"), events)} <= _SPANS:
            return 0
        kinds[kind] = [event for event in events if event.ph in _SPANS]
        return sum(event.ph == _BEGINS for event in events)

    def _sort_out(self, kinds: dict[str, list[Event]]) -> None:
        """Steps that old traces call operators, and instant events that are not about memory."""
        steps = {name for e in kinds[OPERATOR] if (name := e.name) and name.startswith(_STEP)}
        if steps:
            kinds[RANGE] = kinds[RANGE] + [e for e in kinds[OPERATOR] if e.name in steps]
            kinds[OPERATOR] = [e for e in kinds[OPERATOR] if e.name not in steps]
        kinds[MEMORY] = [e for e in kinds[MEMORY] if e.name == _MEMORY_EVENT]

    def _add(self, kind: str, events: list[Event], start: Ints, end: Ints) -> None:
        arguments = self._arguments(kind, events)
        columns: dict[str, ColumnData] = {
            "start": start,
            "end": end,
            "pid": self._read("pid", ids([event.pid for event in events], -1)),
            "tid": self._threads.of(self._read("tid", ids([event.tid for event in events]))),
            "name": self._text(kind, "name").codes([event.name for event in events]),
            **self._columns(kind, arguments),
        }
        if kind == KERNEL:
            for shape in SHAPES:
                columns |= _sizes(shape, list(map(operator.attrgetter(shape), arguments)))
            self._add_collectives(events, arguments)
        self._append(kind, columns)
        self._rows[kind] = self._rows.get(kind, 0) + len(events)

    def _add_collectives(self, events: Sequence[Event], arguments: Sequence[Any]) -> None:
        """The arguments of collectives; `kernel` is the row of the kernel that has them."""
        first = self._rows.get(KERNEL, 0)
        named = [bytes(argument.collective) not in _UNNAMED for argument in arguments]
        if rows := list(itertools.compress(itertools.count(), named)):
            mine = self._arguments(COLLECTIVE, [events[row] for row in rows])
            kernel = np.asarray(rows, dtype=np.int64) + first
            self._append(COLLECTIVE, {"kernel": kernel, **self._columns(COLLECTIVE, mine)})

    def _arguments(self, kind: str, events: Sequence[Event]) -> list[Any]:
        if not ARGUMENTS[kind]:
            return []
        arguments, mended = decoded_arguments(kind, [event.args for event in events])
        self.mended += mended
        return arguments

    def _columns(self, kind: str, arguments: Sequence[Any]) -> dict[str, ColumnData]:
        columns: dict[str, ColumnData] = {}
        for name, (argument, missing) in ARGUMENTS[kind].items():
            values = list(map(operator.attrgetter(name), arguments))
            if name == "python_parent":  # null: the outermost call has none
                values = [missing if value is None else value for value in values]
            if missing is None:
                columns[name] = self._text(kind, name).codes(_pieces_of_json(values))
            else:
                numbers = self._read(argument, integers(values, missing))
                if name in LAUNCHED and (least := -(name != "correlation")) > numbers.min(
                    initial=0
                ):
                    impossible = numbers < least
                    self.unread[argument] += int(np.count_nonzero(impossible))
                    numbers = np.where(impossible, missing, numbers)
                columns[name] = numbers
        return columns

    def _read(self, name: str, read: tuple[Ints, int]) -> Ints:
        """A column, with what was lost of it counted under its name."""
        numbers, lost = read
        self.unread[name] += lost
        return numbers

    def _append(self, kind: str, columns: dict[str, ColumnData]) -> None:
        parts = self._parts.setdefault(kind, {name: [] for name in columns})
        for name, column in columns.items():
            parts[name].append(column)

    def _processes(self, events: Sequence[Event]) -> None:
        """The names of processes, and which of them are the host's."""
        for event, argument in zip(events, self._arguments(METADATA, events), strict=True):
            if not isinstance(event.pid, int):
                continue
            if event.name == "process_name" and (name := text_of(bytes(argument.name))):
                self.process_names.setdefault(event.pid, name)
            if event.name == "process_labels" and text_of(bytes(argument.labels)) == "CPU":
                self.cpu_pids.append(event.pid)

    def _names(self, kind: str) -> list[str]:
        if kind == COLLECTIVE:
            return ["kernel", *ARGUMENTS[kind]]
        shapes = [f"{s}_{axis}" for s in SHAPES for axis in "xyz"] if kind == KERNEL else []
        return [*_COMMON, *ARGUMENTS[kind], *shapes]

    def _is_text(self, kind: str, name: str) -> bool:
        return name == "name" or ARGUMENTS[kind].get(name, ("", 0))[1] is None

    def _text(self, kind: str, name: str) -> Texts:
        return self._texts.setdefault((kind, name), Texts())


def _pieces_of_json(values: Sequence[Any]) -> Sequence[bytes]:
    """Pieces of JSON as bytes; the same one again and again where all are absent."""
    absent = all(map(operator.is_, values, itertools.repeat(NOTHING)))
    return [b""] * len(values) if absent else list(map(bytes, values))


def _times(kind: str, events: Sequence[Event]) -> tuple[Ints, Ints]:
    """Start and end of events in ns; NO_TIME where an event has none that can be."""
    start = nanoseconds([event.ts for event in events])
    if kind == MEMORY:  # a moment
        lasted = np.zeros(len(start), dtype=np.int64)
    else:
        lasted = nanoseconds([event.dur for event in events])
    good = (start >= -GREATEST_TIME) & (start <= GREATEST_TIME)
    good &= (lasted >= 0) & (lasted <= GREATEST_TIME)
    lasted = np.where(good, lasted, 0)
    if (fine := summable(lasted)) is not None:
        good &= fine
    start = np.where(good, start, NO_TIME)
    return start, start + lasted


def _sizes(shape: str, values: Sequence[Any]) -> dict[str, ColumnData]:
    """The three sizes of a grid or block; zeros where they are unknown."""
    if {*map(type, values)} != {list} or {*map(len, values)} != {3}:
        values = [v if isinstance(v, list) and len(v) == 3 else (0, 0, 0) for v in values]
    flat = integers(list(itertools.chain.from_iterable(values)))[0].reshape(-1, 3)
    return {f"{shape}_{axis}": flat[:, place].copy() for place, axis in enumerate("xyz")}
