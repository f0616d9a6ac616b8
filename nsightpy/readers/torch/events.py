"""Which events of a trace are read, and which of their fields and arguments; everything else is
skipped while decoding.

Names and meanings: pytorch/kineto libkineto/src/output_json.cpp.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

KERNEL, COPY, SET, CALL, OPERATOR, RANGE, GPU_RANGE, PYTHON, SYNC, RECORD, MEMORY, COLLECTIVE = (
    *("kernel", "copy", "set", "call", "operator", "range", "gpu range", "python", "sync"),
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
    "gpu_user_annotation": GPU_RANGE,
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
    GPU_RANGE: {},
    PYTHON: {
        "python_id": ("Python id", -1),
        "parent_id": ("Python parent id", -1),
        "module_id": ("Python module id", -1),
    },
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
    METADATA: {"name": ("name", None), "labels": ("labels", None)},
}
TIMED = tuple(kind for kind in ARGUMENTS if kind not in (COLLECTIVE, METADATA))


def _arguments(kind: str, columns: Arguments) -> type[msgspec.Struct]:
    """A struct of the arguments of one kind."""
    fields: list[Any] = [
        (column, msgspec.Raw, msgspec.field(name=name, default=NOTHING))
        if missing is None
        else (column, Any, msgspec.field(name=name, default=missing))
        for column, (name, missing) in columns.items()
    ]
    return msgspec.defstruct(kind.title(), fields, gc=False)


STRUCTS = {kind: _arguments(kind, columns) for kind, columns in ARGUMENTS.items()}
