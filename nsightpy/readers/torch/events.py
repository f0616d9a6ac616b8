"""The fields of a trace's events that nsightpy reads; everything else is skipped while decoding.

Names and meanings: pytorch/kineto libkineto/src/output_json.cpp.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

Scalar: TypeAlias = int | float | str | bool | None
NOTHING = msgspec.Raw()


def _named(name: str, default: Scalar = None) -> Any:
    return msgspec.field(name=name, default=default)


class Arguments(msgspec.Struct, gc=False):
    """The wanted arguments of an event; a value that is absent is its default."""

    correlation: Scalar = 0
    external_id: Scalar = _named("External id", 0)
    device: Scalar = None
    context: Scalar = 0
    stream: Scalar = None
    grid: Any = None
    block: Any = None
    registers: Scalar = _named("registers per thread", 0)
    shared: Scalar = _named("shared memory", 0)
    graph_node: Scalar = _named("graph node id", 0)
    bytes: Scalar = None
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=NOTHING)
    types: msgspec.Raw = msgspec.field(name="Input type", default=NOTHING)
    concrete: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=NOTHING)
    sequence: Scalar = _named("Sequence number", -1)
    forward_thread: Scalar = _named("Fwd thread id", 0)
    collective: Scalar = _named("Collective name", "")
    data_type: Scalar = _named("dtype", "")
    elements_in: Scalar = _named("In msg nelems", -1)
    elements_out: Scalar = _named("Out msg nelems", -1)
    group_size: Scalar = _named("Group size", 0)
    group: Scalar = _named("Process Group Name", "")
    group_ranks: msgspec.Raw = msgspec.field(name="Process Group Ranks", default=NOTHING)
    splits: msgspec.Raw = msgspec.field(name="In split size", default=NOTHING)
    source_rank: Scalar = _named("Src Rank", -1)
    target_rank: Scalar = _named("Dst Rank", -1)
    communicator: Scalar = _named("Comms Id", "")
    collective_sequence: Scalar = _named("Seq", -1)
    python_id: Scalar = _named("Python id", -1)
    python_parent: Scalar = _named("Python parent id", -1)
    python_module: Scalar = _named("Python module id", -1)
    allocated: Scalar = _named("Bytes", 0)
    address: Scalar = _named("Addr", 0)
    device_type: Scalar = _named("Device Type", -1)
    device_id: Scalar = _named("Device Id", -1)
    total_allocated: Scalar = _named("Total Allocated", -1)
    total_reserved: Scalar = _named("Total Reserved", -1)
    sync_event: Scalar = _named("wait_on_cuda_event_id", -1)
    sync_stream: Scalar = _named("wait_on_stream", -1)
    sync_record: Scalar = _named("wait_on_cuda_event_record_corr_id", -1)
    name: Scalar = None
    labels: Scalar = None


class Event(msgspec.Struct, gc=False):
    """One event; times are microseconds, as numbers."""

    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: Scalar = None
    tid: Scalar = None
    ts: int | float | str | None = None
    dur: int | float | str | None = None
    id: Scalar = None
    args: Arguments | None = None


class ExactEvent(Event, gc=False):
    """One event whose times are kept as they are written: a float64 would lose nanoseconds."""

    ts: msgspec.Raw = NOTHING  # type: ignore[assignment]
    dur: msgspec.Raw = NOTHING  # type: ignore[assignment]


NO_ARGUMENTS = Arguments()
