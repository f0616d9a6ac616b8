"""The operations of launches that hold several: which of a group's calls each kernel served."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from nsightpy.frames import Frame, Ints, Labels
from nsightpy.readers.nccl.calls import NONE, Calls
from nsightpy.readers.nccl.names import GROUP_END, SEND_RECV, serves
from nsightpy.readers.nccl.payload import NO_PAYLOAD, UNKNOWN, Payload

BY_RANGE, BY_GROUP, BY_NAME = "range", "group", "kernel name"
# More than this in one call is damage.
MOST_SENT = 1 << 50
POINT_TO_POINT_CALLS = ("Send", "Recv")
_STREAM = ("pid", "device", "stream")
_KERNEL = ("start_ns", "end_ns", *_STREAM)


def plain_name(call: str) -> str:
    """The operation that a call is."""
    return SEND_RECV if call in POINT_TO_POINT_CALLS else call


class _Kernel(NamedTuple):
    """One kernel of a launch that holds several operations."""

    operation: str
    row: int
    start: int
    end: int
    pid: int
    device: int
    stream: int


class _Call(NamedTuple):
    name: str
    payload: Payload


class Row(NamedTuple):
    """One operation of such a launch; `first` is the launch's first kernel."""

    first: int
    kernel: int
    start: int
    end: int
    operation: str
    payload: Payload = NO_PAYLOAD
    calls: int = 0
    evidence: str = BY_NAME
    sent: str = ""


@dataclass(frozen=True)
class _Known:
    """Communicators of an export: on streams (pid, device, stream) with one, and as created."""

    streams: Mapping[tuple[int, int, int], str]
    created: Mapping[tuple[int, str], Payload]


def rows_of_launches(
    kernels: Frame, calls: Calls, serving: Ints, rows: Ints, launch: Ints
) -> Iterator[Row]:
    """The operations of launches, each with several kernels or calls, in their order.

    `rows` of the kernels belong to them, `launch` says to which.
    """
    if not len(rows):
        return
    known = _Known(_stream_owners(kernels, calls, serving), calls.communicators)
    columns = (kernels.ints(name)[rows].tolist() for name in _KERNEL)
    operations = kernels.labels("operation").take(rows)
    launches: dict[int, list[_Kernel]] = {}
    for row, (served, *numbers) in enumerate(
        zip(launch.tolist(), rows.tolist(), *columns, strict=True)
    ):
        launches.setdefault(served, []).append(_Kernel(operations[row], *numbers))
    names, payload = calls.ranges.labels("name"), calls.ranges.ints("payload")
    for of_launch in launches.values():
        row = int(serving[of_launch[0].row])
        members = calls.members[calls.first[row] : calls.first[row + 1]].tolist()
        member_calls = [
            _Call(names[member], calls.payloads[int(payload[member])]) for member in members
        ]
        grouped = len(member_calls) > 1 or names[row] == GROUP_END
        yield from _of_launch(member_calls, of_launch, known, BY_GROUP if grouped else BY_RANGE)


def _stream_owners(kernels: Frame, calls: Calls, serving: Ints) -> dict[tuple[int, int, int], str]:
    """The communicator of each (pid, device, stream) on which only one was seen for certain."""
    names = Labels.of(payload.communicator for payload in calls.payloads)
    codes = names.codes[calls.ranges.ints("payload")[calls.members]]
    stands = np.flatnonzero(calls.counts)
    of_range = np.full(len(calls), NONE)
    low, high = (f.reduceat(codes, calls.first[stands]) for f in (np.minimum, np.maximum))
    of_range[stands] = np.where(low == high, low, NONE)
    served = np.flatnonzero(serving != NONE)
    sure = served[of_range[serving[served]] != NONE]
    streams = zip(*(kernels.ints(name)[sure].tolist() for name in _STREAM), strict=True)
    seen: dict[tuple[int, int, int], set[int]] = {}
    for stream, code in set(zip(streams, of_range[serving[sure]].tolist(), strict=True)):
        seen.setdefault(stream, set()).add(code)
    return {
        stream: names.values[next(iter(codes))] for stream, codes in seen.items() if len(codes) == 1
    }


def _of_launch(
    calls: Sequence[_Call], kernels: Sequence[_Kernel], known: _Known, evidence: str
) -> Iterator[Row]:
    """The operations of one launch: its kernels by device, stream and operation."""
    parts: dict[tuple[int, int, str], list[_Kernel]] = {}
    for kernel in kernels:
        parts.setdefault((kernel.device, kernel.stream, kernel.operation), []).append(kernel)
    ordered = list(dict.fromkeys(call.payload.communicator for call in calls))
    for index, part in enumerate(parts.values()):
        chosen = _calls_of(calls, part[0], known)
        if len(ordered) > 1 and not chosen and len(parts) == len(ordered):
            chosen = [c for c in calls if c.payload.communicator == ordered[index]]
        extent = (min(call.start for call in part), max(call.end for call in part))
        row = Row(kernels[0].row, part[0].row, *extent, part[0].operation)
        yield _with_calls(row, chosen, evidence) if chosen else row


def _calls_of(made: Sequence[_Call], kernel: _Kernel, known: _Known) -> Sequence[_Call]:
    """The calls that a kernel can have served; none where several groups could be."""
    fitting = [call for call in made if serves(kernel.operation, call.name)]
    calls = fitting or made
    communicators = {call.payload.communicator for call in calls}
    if len(communicators) <= 1:
        return calls
    owner = known.streams.get((kernel.pid, kernel.device, kernel.stream))
    on_device = [
        name
        for name in communicators
        if known.created.get((kernel.pid, name), NO_PAYLOAD).device == kernel.device
    ]
    if owner is None and len(on_device) == 1:
        owner = on_device[0]
    return [call for call in calls if call.payload.communicator == owner]


def _with_calls(row: Row, calls: Sequence[_Call], evidence: str) -> Row:
    names = list(dict.fromkeys(plain_name(call.name) for call in calls))
    payloads = [call.payload for call in calls]
    differ = {
        name: getattr(NO_PAYLOAD, name)
        for name in ("root", "peer", "reduction")
        if len({getattr(payload, name) for payload in payloads}) > 1
    }
    payload = replace(payloads[0], bytes=_bytes(calls), **differ)
    operation = names[0] if len(names) == 1 else row.operation
    row = row._replace(operation=operation, payload=payload, calls=len(calls), evidence=evidence)
    return row._replace(sent=sent_text([call.payload for call in calls if call.name == "Send"]))


def sent_text(sends: Sequence[Payload]) -> str:
    """The bytes of Send calls by receiver, as the frame has them; empty where not all say."""
    sums: dict[int, int] = {}
    for send in sends:
        if send.peer < 0 or not 0 <= send.bytes <= MOST_SENT:
            return ""
        sums[send.peer] = sums.get(send.peer, 0) + send.bytes
    return " ".join(f"{peer}:{size}" for peer, size in sorted(sums.items()))


def _bytes(calls: Sequence[_Call]) -> int:
    """The bytes that one rank passed; of sends and receives the larger side."""
    if any(call.payload.bytes == UNKNOWN for call in calls):
        return UNKNOWN
    sides: dict[str, int] = {}
    for call in calls:
        side = call.name if call.name in POINT_TO_POINT_CALLS else ""
        sides[side] = sides.get(side, 0) + call.payload.bytes
    return sides.pop("", 0) + max(sides.values(), default=0)
