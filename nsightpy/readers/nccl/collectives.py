"""The collectives frame: NCCL's kernels joined with the calls that launched them.

The join is exact where a launch lies inside the range of its call or group; what no range
explains (CUDA graph replays, launches by other threads, captures without NVTX) keeps what the
kernel's name says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa

from nsightpy import frames
from nsightpy.frames import ColumnData, Frame, Ints, Labels
from nsightpy.readers.nccl.calls import Calls, Range, Served, nccl_calls
from nsightpy.readers.nccl.names import (
    GENERIC,
    SEND_RECV,
    KernelName,
    parse_kernel,
    serves,
)
from nsightpy.readers.nccl.payload import NO_PAYLOAD, UNKNOWN, Payload
from nsightpy.readers.nsys.columns import (
    NO_END,
    SPAN,
    column,
    number,
    process_of,
    stored,
    thread_of,
)
from nsightpy.readers.nsys.events import KERNEL, PLACE, RUNTIME
from nsightpy.readers.nsys.tables import NsysExport, countable_columns
from nsightpy.readers.sqlite import Query

BY_RANGE, BY_GROUP, BY_NAME = "range", "group", "kernel name"
LAUNCH_CLASSES = (0, 1)
_NAME = "shortName"
_PLACE = ("start_ns", "end_ns", "pid", "device", "context", "stream", "correlation_id")
_CALL = ("pid", "correlation_id", "tid", "start_ns", "event_class")
_PREFIXES = ("nccl", "void nccl")


class _Kernel(NamedTuple):
    start: int
    end: int
    pid: int
    device: int
    context: int
    stream: int
    correlation: int
    name: str
    parsed: KernelName

    @property
    def operation(self) -> str:
        """The operation in the name; Generic where it has none."""
        return self.parsed.operation or GENERIC


class _Row(NamedTuple):
    """One operation: its kernels' extent, and what its calls passed."""

    kernel: _Kernel
    operation: str
    payload: Payload = NO_PAYLOAD
    calls: int = 0
    evidence: str = BY_NAME


def collectives(export: NsysExport, frame: Callable[[str, Sequence[str]], Frame]) -> Frame:
    """The collectives frame, rows by start; `frame` gives columns of the report's other frames."""
    names = _kernel_names(export)
    kernels = _kernels(export, names, frame)
    if not kernels:
        return Frame.empty(frames.COLLECTIVES)
    calls = nccl_calls(export)
    launches = _launches(export, names, kernels, frame) if calls.threads else {}
    rows = sorted(
        _joined(kernels, calls, launches),
        key=lambda row: (row.kernel.start, row.kernel.pid, row.kernel.device, row.kernel.end),
    )
    return _frame(rows, calls)


def _kernels(
    export: NsysExport,
    names: Mapping[int, tuple[str, KernelName]],
    frame: Callable[[str, Sequence[str]], Frame],
) -> list[_Kernel]:
    """NCCL's kernels in order of launch."""
    table = export.file.tables.get(KERNEL)
    if table is None or _NAME not in table.c or not names:
        return []
    if export.is_shared(KERNEL):
        every = frame("kernels", (*_PLACE, "base_name"))
        by_text = dict(names.values())
        mine = every.take(every.labels("base_name").equals(list(by_text)))
        texts = mine.labels("base_name")
        parsed = [(texts[row], by_text[texts[row]]) for row in range(mine.rows)]
        raw: Mapping[str, ColumnData] = mine.select(_PLACE)
    else:
        chosen = table.c[_NAME]
        ids = {**PLACE, "name": column(_NAME)}

        def query(*, careful: bool) -> Query:
            spans = [stored(table, n, made, NO_END, careful=careful) for n, made in SPAN.items()]
            more = [stored(table, n, made, 0, careful=careful) for n, made in ids.items()]
            return sa.select(*spans, *more).where(chosen.in_(names))

        raw = countable_columns(export, table, query)
        parsed = [names[name] for name in Frame(raw).ints("name").tolist()]
    found = [
        _Kernel(start, end, pid, device, context, stream, correlation, *said)
        for (start, end, pid, device, context, stream, correlation, *_), said in zip(
            _tuples(raw), parsed, strict=True
        )
    ]
    return sorted(
        (one for one in found if one.end != NO_END),
        key=lambda one: (one.pid, one.correlation, one.start, one.device),
    )


def _kernel_names(export: NsysExport) -> dict[int, tuple[str, KernelName]]:
    """NCCL's kernel names by id, parsed."""
    named = {i: name for prefix in _PREFIXES for i, name in export.strings.starting(prefix).items()}
    return {i: (name, parsed) for i, name in named.items() if (parsed := parse_kernel(name))}


def _launches(
    export: NsysExport,
    names: Mapping[int, object],
    launched: Sequence[_Kernel],
    frame: Callable[[str, Sequence[str]], Frame],
) -> dict[tuple[int, int], tuple[int, int]]:
    """(thread, start) of the API call behind each (pid, correlation id) of NCCL's kernels."""
    table, kernels = export.file.tables.get(RUNTIME), export.file.tables.get(KERNEL)
    if table is None or kernels is None or "correlationId" not in table.c:
        return {}
    if not {"correlationId", _NAME} <= set(kernels.c.keys()):
        return {}
    raw: Mapping[str, ColumnData]
    if export.is_shared(RUNTIME):
        calls = frame("api_calls", _CALL)
        raw = calls.take(np.isin(calls.ints("correlation_id"), [k.correlation for k in launched]))
    else:
        wanted = sa.select(kernels.c.correlationId).where(kernels.c[_NAME].in_(names))
        selected = [
            number(table, "pid", process_of("globalTid"), 0),
            number(table, "correlation", column("correlationId"), 0),
            number(table, "tid", thread_of("globalTid"), 0),
            number(table, "start", column("start"), 0),
            number(table, "event_class", column("eventClass"), 0),
        ]
        query = sa.select(*selected).where(table.c.correlationId.in_(wanted))
        raw = export.file.arrays(query, split=table)
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for pid, correlation, tid, start, event_class in _tuples(raw):
        known = found.get((pid, correlation))
        if event_class in LAUNCH_CLASSES and (known is None or start < known[1]):
            found[pid, correlation] = (tid, start)
    return found


def _tuples(raw: Mapping[str, ColumnData]) -> Iterable[tuple[int, ...]]:
    """The rows of integer columns."""
    columns = [column.tolist() for column in raw.values() if not isinstance(column, Labels)]
    return zip(*columns, strict=True)


def _joined(
    kernels: Sequence[_Kernel],
    calls: Calls,
    launches: Mapping[tuple[int, int], tuple[int, int]],
) -> list[_Row]:
    """One row per operation: kernels by name alone, and those of one range put together."""
    alone: list[_Row] = []
    ranges: dict[tuple[int, int, int], tuple[Served, list[_Kernel]]] = {}
    for kernel in kernels:
        launch = launches.get((kernel.pid, kernel.correlation))
        thread = calls.threads.get((kernel.pid, launch[0])) if launch else None
        served = thread.served(launch[1]) if thread and launch else None
        if served is None or not launch:
            alone.append(_Row(kernel, kernel.operation))
        else:
            key = (kernel.pid, launch[0], served.place)
            ranges.setdefault(key, (served, []))[1].append(kernel)
    streams = _stream_owners(ranges.values())
    for served, own in ranges.values():
        if len(own) == len(served.calls) == 1:
            call = served.calls[0]
            plain = SEND_RECV if call.name in ("Send", "Recv") else call.name
            evidence = BY_GROUP if served.grouped else BY_RANGE
            alone.append(_Row(own[0], plain, call.payload, 1, evidence))
        else:
            alone += _operations(served, own, calls, streams)
    return alone


def _stream_owners(
    ranges: Iterable[tuple[Served, list[_Kernel]]],
) -> dict[tuple[int, int, int], str]:
    """The communicator of each (pid, device, stream) on which only one was seen for certain."""
    seen: dict[tuple[int, int, int], set[str]] = {}
    for served, kernels in ranges:
        names = {call.payload.communicator for call in served.calls}
        if len(names) == 1:
            for one in kernels:
                seen.setdefault((one.pid, one.device, one.stream), set()).update(names)
    return {place: next(iter(names)) for place, names in seen.items() if len(names) == 1}


def _operations(
    served: Served,
    kernels: Sequence[_Kernel],
    calls: Calls,
    streams: Mapping[tuple[int, int, int], str],
) -> list[_Row]:
    """The operations of one range: its kernels by device, stream and operation."""
    parts: dict[tuple[int, int, str], list[_Kernel]] = {}
    for kernel in kernels:
        parts.setdefault((kernel.device, kernel.stream, kernel.operation), []).append(kernel)
    ordered = list(dict.fromkeys(call.payload.communicator for call in served.calls))
    rows = []
    for place, own in enumerate(parts.values()):
        first = own[0]
        whole = first._replace(start=min(one.start for one in own), end=max(one.end for one in own))
        mine = _calls_of(served, first, calls, streams)
        if len(ordered) > 1 and not mine and len(parts) == len(ordered):
            mine = [c for c in served.calls if c.payload.communicator == ordered[place]]
        rows.append(_row(whole, mine, grouped=served.grouped))
    return rows


def _calls_of(
    served: Served,
    kernel: _Kernel,
    calls: Calls,
    streams: Mapping[tuple[int, int, int], str],
) -> list[Range]:
    """The calls of a range that a kernel can have served; none where several groups could be."""
    fitting = [call for call in served.calls if serves(kernel.operation, call.name)]
    found = fitting or list(served.calls)
    if len({call.payload.communicator for call in found}) <= 1:
        return found
    owner = streams.get((kernel.pid, kernel.device, kernel.stream))
    devices = {
        name: one.device for (pid, name), one in calls.communicators.items() if pid == kernel.pid
    }
    on_device = {
        call.payload.communicator
        for call in found
        if devices.get(call.payload.communicator, UNKNOWN) == kernel.device
    }
    if owner is None and len(on_device) == 1:
        owner = next(iter(on_device))
    return [call for call in found if call.payload.communicator == owner]


def _row(kernel: _Kernel, calls: Sequence[Range], *, grouped: bool) -> _Row:
    if not calls:
        return _Row(kernel, kernel.operation)
    names = list(dict.fromkeys(call.name for call in calls))
    if set(names) <= {"Send", "Recv"}:
        operation = SEND_RECV
    else:
        operation = names[0] if len(names) == 1 else kernel.operation
    payloads = [call.payload for call in calls]
    first = payloads[0]
    payload = replace(
        first,
        bytes=_bytes(calls),
        root=first.root if len({one.root for one in payloads}) == 1 else UNKNOWN,
        peer=first.peer if len({one.peer for one in payloads}) == 1 else UNKNOWN,
        reduction=first.reduction if len({one.reduction for one in payloads}) == 1 else "",
        sequence=first.sequence,
    )
    return _Row(kernel, operation, payload, len(calls), BY_GROUP if grouped else BY_RANGE)


def _bytes(calls: Sequence[Range]) -> int:
    """The bytes that one rank passed; of sends and receives the larger side."""
    if any(call.payload.bytes == UNKNOWN for call in calls):
        return UNKNOWN
    sides: dict[str, int] = {}
    for call in calls:
        side = call.name if call.name in ("Send", "Recv") else ""
        sides[side] = sides.get(side, 0) + call.payload.bytes
    return sides.pop("", 0) + max(sides.values(), default=0)


def _frame(rows: Sequence[_Row], calls: Calls) -> Frame:
    def numbers(values: Iterable[int]) -> Ints:
        return np.fromiter(values, dtype=np.int64, count=len(rows))

    made = [
        calls.communicators.get((row.kernel.pid, row.payload.communicator), NO_PAYLOAD)
        for row in rows
    ]
    kernels = [row.kernel for row in rows]
    return Frame(
        {
            "start_ns": numbers(one.start for one in kernels),
            "end_ns": numbers(one.end for one in kernels),
            "pid": numbers(one.pid for one in kernels),
            "device": numbers(one.device for one in kernels),
            "context": numbers(one.context for one in kernels),
            "stream": numbers(one.stream for one in kernels),
            "correlation_id": numbers(one.correlation for one in kernels),
            "operation": Labels.of(row.operation for row in rows),
            "kernel": Labels.of(one.name for one in kernels),
            "data_type": Labels.of(one.parsed.data_type for one in kernels),
            "communicator": Labels.of(row.payload.communicator for row in rows),
            "group_size": numbers(max(one.ranks, 0) for one in made),
            "group_rank": numbers(one.rank for one in made),
            "bytes": numbers(row.payload.bytes for row in rows),
            "root": numbers(row.payload.root for row in rows),
            "peer": numbers(row.payload.peer for row in rows),
            "reduction": Labels.of(row.payload.reduction for row in rows),
            "sequence": numbers(row.payload.sequence for row in rows),
            "calls": numbers(row.calls for row in rows),
            "evidence": Labels.of(row.evidence for row in rows),
        }
    )
