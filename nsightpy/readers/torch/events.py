"""The events of a trace: which are read, with which of their fields and arguments (everything else
is skipped while decoding); what is damaged is mended or left out, and counted.

Names and meanings: pytorch/kineto libkineto/src/output_json.cpp. Early traces hold quotation marks
that nobody escaped (pytorch/pytorch#146900), and words such as nan where JSON has numbers only.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, TypeAlias

import msgspec

from nsightpy.readers.torch.pieces import BETWEEN

KERNEL, COPY, SET, CALL, OPERATOR, RANGE, PYTHON, SYNC, RECORD, MEMORY, COLLECTIVE = (
    *("kernel", "copy", "set", "call", "operator", "range", "python", "sync"),
    *("record", "memory", "collective"),
)
METADATA, OTHER = "metadata", "other"
_APIS = ("cuda", "hip", "xpu", "mtia", "privateuse1")
# Newest names, those of 2020, and those of other accelerators.
CATEGORIES: dict[str | None, str] = {
    None: METADATA,
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
    "python_function": PYTHON,
    "cuda_sync": SYNC,
    "cuda_event": RECORD,
    "cpu_instant_event": MEMORY,
}
NOTHING, _NO_OBJECT = msgspec.Raw(), msgspec.Raw(b"{}")


class Event(msgspec.Struct, gc=False):
    """One event; times are microseconds, as numbers."""

    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: Any = None
    tid: Any = None
    ts: int | float | str | None = None
    dur: int | float | str | None = None
    args: msgspec.Raw = _NO_OBJECT


class ExactEvent(Event, gc=False):
    """One event whose times are kept as they are written: a float64 would lose nanoseconds."""

    ts: msgspec.Raw = NOTHING  # type: ignore[assignment]
    dur: msgspec.Raw = NOTHING  # type: ignore[assignment]


# The arguments of each kind: column, as frames call it -> (name in the file, number where it is
# absent); None for texts, and for lists.
Arguments: TypeAlias = dict[str, tuple[str, int | None]]
LAUNCHED: Arguments = {
    "context": ("context", -1),
    "correlation_id": ("correlation", 0),
    "device": ("device", -1),
    "stream": ("stream", -1),
}
ARGUMENTS: dict[str, Arguments] = {
    KERNEL: {
        **LAUNCHED,
        "registers_per_thread": ("registers per thread", 0),
        "dynamic_shared_bytes": ("shared memory", 0),
        "graph_node_id": ("graph node id", 0),
        "grid": ("grid", None),
        "block": ("block", None),
        "collective": ("Collective name", None),
    },
    COPY: {**LAUNCHED, "bytes": ("bytes", -1)},
    SET: {**LAUNCHED, "bytes": ("bytes", -1)},
    CALL: {"correlation_id": ("correlation", 0)},
    OPERATOR: {
        "sequence": ("Sequence number", -1),
        "forward_tid": ("Fwd thread id", 0),
        "shapes": ("Input Dims", None),
        "types": ("Input type", None),
        "inputs": ("Concrete Inputs", None),
    },
    RANGE: {},
    PYTHON: {},
    SYNC: {
        **LAUNCHED,
        "device": ("device", 0),
        "event_id": ("wait_on_cuda_event_id", -1),
        "wait_on": ("wait_on_stream", -1),
        "event_sync_id": ("wait_on_cuda_event_record_corr_id", -1),
    },
    RECORD: {**LAUNCHED, "device": ("device", 0), "event_id": ("wait_on_cuda_event_id", -1)},
    MEMORY: {
        "device": ("Device Id", -1),
        "device_type": ("Device Type", -1),
        "address": ("Addr", 0),
        "bytes": ("Bytes", 0),
        "allocated_bytes": ("Total Allocated", -1),
        "reserved_bytes": ("Total Reserved", -1),
    },
    # of kernels that have such arguments
    COLLECTIVE: {
        "operation": ("Collective name", None),
        "data_type": ("dtype", None),
        "elements_in": ("In msg nelems", -1),
        "elements_out": ("Out msg nelems", -1),
        "group_size": ("Group size", 0),
        "group": ("Process Group Name", None),
        "group_ranks": ("Process Group Ranks", None),
        "splits": ("In split size", None),
        "sequence": ("Seq", -1),
        "source": ("Src Rank", -1),
        "target": ("Dst Rank", -1),
        "communicator": ("Comms Id", None),
    },
    METADATA: {"name": ("name", None)},
}
TIMED = tuple(kind for kind in ARGUMENTS if kind not in (COLLECTIVE, METADATA))


def _struct(kind: str, columns: Arguments) -> type[msgspec.Struct]:
    """A struct of the arguments of one kind."""
    fields: list[Any] = []
    for column, (name, missing) in columns.items():
        default = NOTHING if missing is None else missing
        held = msgspec.Raw if missing is None else Any
        fields.append((column, held, msgspec.field(name=name, default=default)))
    return msgspec.defstruct(kind.title(), fields, gc=False)


STRUCTS = {kind: _struct(kind, columns) for kind, columns in ARGUMENTS.items()}
_BOUNDARY = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|dur|id|s|bp|args)"\s*:)')
_NO_NUMBER = re.compile(
    rb"([:\[,]\s*)-?(?:nan|inf(?:inity)?)(?:\(\w*\))?(?=\s*[,}\]])", re.IGNORECASE
)
# A quotation mark that opens a string follows one of {[,: and one that closes it comes before one
# of ]},: - all others stand inside of a string.
_INNER = re.compile(rb'(?<![\\{\[,:\s])"(?!\s*[\]},:])|(?<=[^{\[,:\s]\s)"(?!\s*[\]},:])|"(?=\s\w)')
_NO_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_CONTROL = re.compile(rb"[\x00-\x1f]")


class EventDecoder:
    """Decodes pieces of a trace as events of one kind (Event or ExactEvent).

    It counts the events that were `mended` and those that are `lost`, the last for a `reason`.
    """

    def __init__(self, kind: type[Event]) -> None:
        self.kind = kind
        self.mended = self.lost = 0
        self.reason = ""

    def events(self, text: bytes) -> list[Any]:
        """The events of a piece."""
        many: Any = list[self.kind]  # type: ignore[name-defined]
        try:
            events: list[Any] = msgspec.json.decode(b"[" + text + b"]", type=many)
        except _NO_JSON:
            return list(self._one_by_one(text))
        return events

    def _one_by_one(self, text: bytes) -> Iterator[Any]:
        starts = (0, *(match.end() for match in _BOUNDARY.finditer(text)))
        for start, end in pairwise((*starts, len(text))):
            piece = text[start:end].rstrip(BETWEEN)
            reason = ""
            for mend in (bytes, _valid, _escaped):
                try:
                    event = msgspec.json.decode(mend(piece), type=self.kind)
                except _NO_JSON as error:
                    reason = reason or str(error)[:200]
                    continue
                self.mended += mend is not bytes
                yield event
                break
            else:
                self.lost += 1
                self.reason = reason


def decoded_arguments(kind: str, raws: Sequence[msgspec.Raw]) -> tuple[list[Any], int]:
    """The arguments of events of one kind, and how many events have none that can be read."""
    struct = STRUCTS[kind]
    many: Any = list[struct]  # type: ignore[valid-type]
    with suppress(*_NO_JSON):
        return msgspec.json.decode(b"[" + b",".join(raws) + b"]", type=many), 0
    arguments, unread = [], 0
    for raw in raws:
        try:
            arguments.append(msgspec.json.decode(_valid(bytes(raw)), type=struct))
        except _NO_JSON:
            arguments.append(struct())
            unread += 1
    return arguments, unread


def _valid(text: bytes) -> bytes:
    """Without what JSON has no word for: nan, control characters, bytes that are no UTF-8."""
    plain = text.decode("utf-8", "replace").encode()
    return _NO_NUMBER.sub(rb"\1null", _CONTROL.sub(b" ", plain))


def _escaped(text: bytes) -> bytes:
    """With a backslash before every quotation mark that neither opens nor closes a string."""
    return _INNER.sub(rb"\"", _valid(text))
