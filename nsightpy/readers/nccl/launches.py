"""The operations of launches that hold several: which of a group's calls each kernel served."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from nsightpy.frames import Frame, Ints
from nsightpy.readers.nccl.calls import Calls
from nsightpy.readers.nccl.names import (
    GROUP_END,
    MOST_SENT,
    NO_PAYLOAD,
    SEND_RECV,
    UNKNOWN,
    Payload,
    serves,
)

BY_RANGE, BY_GROUP, BY_NAME = "range", "group", "kernel name"
POINT_TO_POINT_CALLS = ("Send", "Recv")
_KERNEL = ("start_ns", "end_ns", "pid", "device", "stream")


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


# What the creation of each (pid, communicator) was given.
_Created: TypeAlias = Mapping[tuple[int, str], Payload]


class Row(NamedTuple):
    """One operation of such a launch, and the first kernel of it."""

    kernel: int
    start: int
    end: int
    operation: str
    payload: Payload = NO_PAYLOAD
    calls: int = 0
    evidence: str = BY_NAME
    sent: str = ""


def rows_of_launches(
    kernels: Frame, calls: Calls, serving: Ints, rows: Ints, launch: Ints
) -> Iterator[Row]:
    """The operations of launches, each with several kernels or calls, in their order.

    `rows` of the kernels belong to them, `launch` says to which.
    """
    if not len(rows):
        return
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
        evidence = BY_GROUP if grouped else BY_RANGE
        yield from _of_launch(member_calls, of_launch, calls.communicators, evidence)


def _of_launch(
    calls: Sequence[_Call], kernels: Sequence[_Kernel], created: _Created, evidence: str
) -> Iterator[Row]:
    """The operations of one launch: its kernels by device, stream and operation."""
    parts: dict[tuple[int, int, str], list[_Kernel]] = {}
    for kernel in kernels:
        parts.setdefault((kernel.device, kernel.stream, kernel.operation), []).append(kernel)
    ordered = list(dict.fromkeys(call.payload.communicator for call in calls))
    for index, part in enumerate(parts.values()):
        chosen = [call for call in calls if serves(part[0].operation, call.name)] or calls
        communicators = {call.payload.communicator for call in chosen}
        if len(communicators) > 1:  # that made for its device, else each in the order of calls
            places = {
                name: created.get((part[0].pid, name), NO_PAYLOAD).device for name in communicators
            }
            here = [name for name in communicators if places[name] == part[0].device]
            if len(here) != 1:
                here = [ordered[index]] if len(parts) == len(ordered) else []
            chosen = [call for call in chosen if call.payload.communicator in here]
        extent = (min(call.start for call in part), max(call.end for call in part))
        row = Row(part[0].row, *extent, part[0].operation)
        yield _with_calls(row, chosen, evidence) if chosen else row


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
