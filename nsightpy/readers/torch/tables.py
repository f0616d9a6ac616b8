"""The events of a trace as raw tables, one for each kind of event, filled piece by piece.

Times are absolute or relative to `baseTimeNanoseconds`, as the trace has them, in ns.
"""

from __future__ import annotations

import itertools
import json
import re
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec
import numpy as np

from nsightpy.frames import ColumnData, Frame, Ints, Labels, joined
from nsightpy.readers.limits import GREATEST_TIME, summable
from nsightpy.readers.torch.events import NO_ARGUMENTS, Event
from nsightpy.readers.torch.times import NO_TIME, nanoseconds

KERNEL, COPY, SET, CALL, OPERATOR, RANGE, GPU_RANGE, PYTHON, SYNC, RECORD, MEMORY, COLLECTIVE = (
    *("kernel", "copy", "set", "call", "operator", "range", "gpu range", "python", "sync"),
    *("record", "memory", "collective"),
)
_APIS = ("cuda", "hip", "xpu", "mtia", "privateuse1")
# Newest names, those of 2020, and those of other accelerators.
CATEGORIES = {
    "kernel": KERNEL,
    "concurrent_kernel": KERNEL,
    "gpu_memcpy": COPY,
    "memcpy": COPY,
    "gpu_memset": SET,
    "memset": SET,
    "mtia_ccp_events": KERNEL,
    "runtime": CALL,
    **{f"{api}_{kind}": CALL for api in _APIS for kind in ("runtime", "driver")},
    "cpu_op": OPERATOR,
    "operator": OPERATOR,
    "user_annotation": RANGE,
    "gpu_user_annotation": GPU_RANGE,
    "python_function": PYTHON,
    "cuda_sync": SYNC,
    "cuda_event": RECORD,
    "cpu_instant_event": MEMORY,
}
_STEP = "ProfilerStep#"
_MEMORY_EVENT = "[memory]"
_SPANS = ("X", "i", "I", None)
_BEGINS = "B"
_LARGEST = 2**63
_LAST_THREAD = 0xFFFFFF

Reader: TypeAlias = Callable[[Sequence[Any]], ColumnData]

# A number, or what is numbered: "stream 7".
_NUMBERED = re.compile(r"[^\d-]*(-?\d{1,18})\s*")


def whole(value: object, missing: int = 0) -> int:
    """A value as an int64: the number that ends a text ("stream 7"), the 64 bits of an address."""
    if isinstance(value, str):
        match = _NUMBERED.fullmatch(value)
        return int(match[1]) if match else missing
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _LARGEST else missing
    if not isinstance(value, int) or not -_LARGEST <= value < 2 * _LARGEST:
        return missing
    return (value + _LARGEST) % (2 * _LARGEST) - _LARGEST


def integers(values: Sequence[object], missing: int = 0) -> Ints:
    """A column of whole numbers."""
    try:
        array = np.asarray(values)
    except (OverflowError, ValueError):
        array = np.empty(0)
    if array.dtype == np.int64 and len(array) == len(values):
        return array
    return np.asarray([whole(value, missing) for value in values], dtype=np.int64)


def _numbered(ids: Sequence[object], missing: int = 0) -> Ints:
    """Ids of processes and threads; texts without one number, as of merged traces, keep apart."""
    if {*map(type, ids)} <= {int}:
        return integers(ids)
    return integers(
        [_code(identifier) if isinstance(identifier, str) else identifier for identifier in ids],
        missing,
    )


def _code(text: str) -> int | str:
    return text if _NUMBERED.fullmatch(text) else zlib.crc32(text.encode("utf-8", "replace"))


class Texts:
    """Texts as codes, each distinct one kept once for all pieces of a trace."""

    def __init__(self) -> None:
        self._codes: dict[object, int] = {}

    def codes(self, values: Sequence[object]) -> Labels:
        """The codes of more texts (or bytes, or nothing); `labels` fills the values in."""
        known = self._codes
        for value in dict.fromkeys(values):
            known.setdefault(value, len(known))
        return Labels(np.asarray(list(map(known.__getitem__, values)), dtype=np.int32), ())

    def labels(self, parts: Sequence[Labels]) -> Labels:
        """All texts of a column."""
        codes = [part.codes for part in parts]
        values = tuple(map(_text, self._codes))
        return Labels(np.concatenate(codes) if codes else np.empty(0, np.int32), values).merged()


def _text(value: object) -> str:
    if isinstance(value, bytes):
        text = value.decode("utf-8", "replace")
        with suppress(ValueError, RecursionError):  # one spelling, however the file is laid out
            text = json.dumps(json.loads(text), ensure_ascii=False) if text else ""
        return text
    return "" if value is None else str(value)


# What is read of the arguments of each kind: column -> (field, value where it is absent);
# None for texts.
_LAUNCHED: dict[str, tuple[str, int | None]] = {
    **{name: (name, 0) for name in ("context", "correlation")},
    **{name: (name, -1) for name in ("device", "stream")},
}
_COLUMNS: dict[str, dict[str, tuple[str, int | None]]] = {
    KERNEL: {
        **_LAUNCHED,
        **{name: (name, 0) for name in ("registers", "shared", "graph_node")},
    },
    COPY: {**_LAUNCHED, "bytes": ("bytes", -1)},
    SET: {**_LAUNCHED, "bytes": ("bytes", -1)},
    CALL: {"correlation": ("correlation", 0)},
    OPERATOR: {
        "sequence": ("sequence", -1),
        "forward_thread": ("forward_thread", 0),
        "dims": ("dims", None),
        "types": ("types", None),
        "concrete": ("concrete", None),
    },
    RANGE: {},
    GPU_RANGE: {"device": ("device", 0)},
    PYTHON: {
        "python_id": ("python_id", -1),
        "python_parent": ("python_parent", -1),
        "python_module": ("python_module", -1),
    },
    SYNC: {
        **{name: (name, 0) for name in ("device", "context", "correlation")},
        "stream": ("stream", -1),
        "event": ("sync_event", -1),
        "wait_on": ("sync_stream", -1),
        "record": ("sync_record", -1),
    },
    RECORD: {
        **_LAUNCHED,
        "device": ("device", 0),
        "event": ("sync_event", -1),
    },
    MEMORY: {
        "device": ("device_id", -1),
        "device_type": ("device_type", -1),
        "address": ("address", 0),
        "bytes": ("allocated", 0),
        "total_allocated": ("total_allocated", -1),
        "total_reserved": ("total_reserved", -1),
    },
    # of kernels that have such arguments; `kernel` is the row of the kernel
    COLLECTIVE: {
        "operation": ("collective", None),
        "data_type": ("data_type", None),
        "elements_in": ("elements_in", -1),
        "elements_out": ("elements_out", -1),
        "group_size": ("group_size", 0),
        "group": ("group", None),
        "group_ranks": ("group_ranks", None),
        "splits": ("splits", None),
        "sequence": ("collective_sequence", -1),
        "source": ("source_rank", -1),
        "target": ("target_rank", -1),
        "communicator": ("communicator", None),
    },
}
_SHAPES = ("grid", "block")
_COMMON = ("start", "end", "pid", "tid", "name")


class TraceTables:
    """Collects events piece by piece; `table` gives all of one kind."""

    def __init__(self) -> None:
        self._parts: dict[str, dict[str, list[ColumnData]]] = {}
        self._texts: dict[tuple[str, str], Texts] = {}
        self._rows: dict[str, int] = {}
        self.process_names: dict[int, str] = {}
        self.cpu_pids: list[int] = []
        self.events = 0
        self.left_out = 0
        self.apart = 0

    def add(self, events: Sequence[Event]) -> None:
        """Take the events of one more piece. Raises InexactTimesError, and takes none then."""
        kinds: dict[str, list[Event]] = {kind: [] for kind in _COLUMNS}
        metadata = []
        find = CATEGORIES.get
        for event in events:
            category = event.cat
            if category is None:
                metadata.append(event)
            elif kind := find(category) or find(category.lower()):
                if event.ph in _SPANS:
                    kinds[kind].append(event)
                elif event.ph == _BEGINS:
                    self.apart += 1
        self._sort_out(kinds)
        timed = {
            kind: (of_kind, *_times(kind, of_kind)) for kind, of_kind in kinds.items() if of_kind
        }
        self.events += len(events)
        for kind, (of_kind, start, end) in timed.items():
            good = start != NO_TIME
            self.left_out += int(np.count_nonzero(~good))
            fine = of_kind if good.all() else list(itertools.compress(of_kind, good.tolist()))
            self._add(kind, fine, start[good], end[good])
        self._processes(metadata)

    def table(self, kind: str) -> Frame:
        """All events of a kind, in the order of the file."""
        parts = self._parts.get(kind)
        if parts is None:
            parts = {name: [] for name in self._names(kind)}
        return Frame(
            {
                name: self._text(kind, name).labels([p for p in arrays if isinstance(p, Labels)])
                if self._is_text(kind, name)
                else (joined(arrays) if arrays else np.empty(0, dtype=np.int64))
                for name, arrays in parts.items()
            }
        )

    def _sort_out(self, kinds: dict[str, list[Event]]) -> None:
        """Steps that old traces call operators, and instant events that are not about memory."""
        steps = {e.name for e in kinds[OPERATOR] if e.name}
        if steps := {name for name in steps if name.startswith(_STEP)}:
            kinds[RANGE] = kinds[RANGE] + [e for e in kinds[OPERATOR] if e.name in steps]
            kinds[OPERATOR] = [e for e in kinds[OPERATOR] if e.name not in steps]
        kinds[MEMORY] = [e for e in kinds[MEMORY] if e.name == _MEMORY_EVENT]

    def _add(self, kind: str, events: list[Event], start: Ints, end: Ints) -> None:
        arguments = [event.args or NO_ARGUMENTS for event in events]
        columns: dict[str, ColumnData] = {
            "start": start,
            "end": end,
            "pid": _numbered([event.pid for event in events], -1),
            "tid": _threads(_numbered([event.tid for event in events])),
            "name": self._text(kind, "name").codes([event.name for event in events]),
            **self._arguments(kind, arguments),
        }
        if kind == KERNEL:
            for shape in _SHAPES:
                columns |= _sizes(shape, list(map(attrgetter(shape), arguments)))
            self._add_collectives(arguments)
        self._append(kind, columns)
        self._rows[kind] = self._rows.get(kind, 0) + len(events)

    def _add_collectives(self, arguments: Sequence[Any]) -> None:
        first = self._rows.get(KERNEL, 0)
        rows = [row for row, argument in enumerate(arguments) if argument.collective]
        if rows:
            mine = [arguments[row] for row in rows]
            kernel = np.asarray(rows, dtype=np.int64) + first
            self._append(COLLECTIVE, {"kernel": kernel, **self._arguments(COLLECTIVE, mine)})

    def _arguments(self, kind: str, arguments: Sequence[Any]) -> dict[str, ColumnData]:
        return {
            name: self._text(kind, name).codes(_hashable(list(map(attrgetter(field), arguments))))
            if missing is None
            else integers(list(map(attrgetter(field), arguments)), missing)
            for name, (field, missing) in _COLUMNS[kind].items()
        }

    def _append(self, kind: str, columns: dict[str, ColumnData]) -> None:
        parts = self._parts.setdefault(kind, {name: [] for name in columns})
        for name, column in columns.items():
            parts[name].append(column)

    def _processes(self, events: Sequence[Event]) -> None:
        """The names of processes, and which of them are the host's."""
        for event in events:
            if event.ph != "M" or event.args is None or not isinstance(event.pid, int):
                continue
            if event.name == "process_name" and isinstance(event.args.name, str):
                self.process_names.setdefault(event.pid, event.args.name)
            if event.name == "process_labels" and event.args.labels == "CPU":
                self.cpu_pids.append(event.pid)

    def _names(self, kind: str) -> list[str]:
        if kind == COLLECTIVE:
            return ["kernel", *_COLUMNS[kind]]
        shapes = [f"{s}_{axis}" for s in _SHAPES for axis in "xyz"] if kind == KERNEL else []
        return [*_COMMON, *_COLUMNS[kind], *shapes]

    def _is_text(self, kind: str, name: str) -> bool:
        return name == "name" or _COLUMNS[kind].get(name, ("", 0))[1] is None

    def _text(self, kind: str, name: str) -> Texts:
        return self._texts.setdefault((kind, name), Texts())


def _hashable(values: list[Any]) -> list[Any]:
    """Texts as they are, raw pieces of JSON as bytes."""
    return list(map(bytes, values)) if values and isinstance(values[0], msgspec.Raw) else values


def _threads(tids: Ints) -> Ints:
    """Thread ids in 24 bits, as in Nsight Systems reports; POSIX handles have more, or a sign."""
    return np.where((tids < 0) | (tids > _LAST_THREAD), tids & _LAST_THREAD, tids)


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
    flat = integers(list(itertools.chain.from_iterable(values))).reshape(-1, 3)
    return {f"{shape}_{axis}": flat[:, place].copy() for place, axis in enumerate("xyz")}
