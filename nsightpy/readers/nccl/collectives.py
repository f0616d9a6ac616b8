"""The collectives frame: NCCL's kernels joined with the calls that launched them.

The join is exact where a launch lies inside the range of its call or group; what no range
explains (CUDA graph replays, launches by other threads, captures without NVTX) keeps what the
kernel's name says.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from nsightpy import frames
from nsightpy.frames import ColumnData, Frame, Ints, Labels, constant, distinct, distinct_pairs
from nsightpy.readers.nccl.calls import NONE, Calls, nccl_calls
from nsightpy.readers.nccl.launches import (
    BY_GROUP,
    BY_NAME,
    BY_RANGE,
    plain_name,
    rows_of_launches,
    sent_text,
)
from nsightpy.readers.nccl.names import (
    GENERIC,
    GROUP_END,
    NO_PAYLOAD,
    KernelName,
    Payload,
    parse_kernel,
)
from nsightpy.readers.nsys.tables import NsysExport

LAUNCH_CLASSES = (0, 1)
_PLACE = ("start_ns", "end_ns", "pid", "device", "context", "stream", "correlation_id")
_LAUNCH = ("pid", "correlation_id")
_CALL = ("pid", "correlation_id", "tid", "start_ns", "event_class")
_ROW = ("kernel", "start_ns", "end_ns", "operation", "payload", "calls", "evidence", "sent")


def collectives(export: NsysExport, frame: Callable[[str, Sequence[str]], Frame]) -> Frame:
    """The collectives frame, rows by start; `frame` gives columns of the report's other frames."""
    kernels = _kernels(frame)
    if not kernels.rows:
        return Frame.empty(frames.COLLECTIVES)
    calls = nccl_calls(export)
    serving = key = np.full(kernels.rows, NONE)
    if len(calls):
        launches = frame("api_calls", _CALL)
        served = np.unique(kernels.ints("correlation_id"))
        behind = np.isin(launches.ints("correlation_id"), served)
        behind &= np.isin(launches.ints("event_class"), LAUNCH_CLASSES)
        serving, key = _served(kernels, calls, launches.take(behind))
    rows, payloads = _operations(kernels, calls, serving, key)
    return _frame(kernels, rows, payloads, calls)


def _kernels(frame: Callable[[str, Sequence[str]], Frame]) -> Frame:
    """NCCL's kernels in order of launch: _PLACE, kernel (its name), operation, data_type."""
    every = frame("kernels", (*_PLACE, "base_name"))
    names = every.labels("base_name")
    parsed = {name: kernel for name in names.values if (kernel := parse_kernel(name))}
    mine = every.take(names.where(parsed.__contains__))
    texts = mine.labels("base_name").used().merged()
    nameless = KernelName("", "")
    made = {
        **mine.select(_PLACE),
        "kernel": texts,
        "operation": texts.renamed(lambda text: parsed.get(text, nameless).operation or GENERIC),
        "data_type": texts.renamed(lambda text: parsed.get(text, nameless).data_type),
    }
    kernels = Frame(made)
    keys = ("device", "start_ns", "correlation_id", "pid")
    return kernels.take(np.lexsort([kernels.ints(name) for name in keys]))


def _served(kernels: Frame, calls: Calls, launches: Frame) -> tuple[Ints, Ints]:
    """What the launch of each kernel served, as Calls.served says; of two launches the first."""
    both = [np.concatenate([f.ints(n) for f in (launches, kernels)]) for n in _LAUNCH]
    _, launch = distinct_pairs(*both)
    row_of = np.full(int(launch.max()) + 1, NONE)
    row_of[launch[: launches.rows][::-1]] = np.arange(launches.rows)[::-1]
    row = row_of[launch[launches.rows :]]
    known = np.flatnonzero(row != NONE)
    serving = np.full(kernels.rows, NONE)
    key = serving.copy()
    moments = (launches.ints(name)[row[known]] for name in ("pid", "tid", "start_ns"))
    serving[known], key[known] = calls.served(*moments)
    return serving, key


def _operations(
    kernels: Frame, calls: Calls, serving: Ints, key: Ints
) -> tuple[Frame, tuple[Payload, ...]]:
    """One row per operation: kernels by name alone, and those of one range put together. `kernel`
    is its first one, `payload` a place in what is returned beside."""
    alone, served = np.flatnonzero(serving == NONE), np.flatnonzero(serving != NONE)
    _, first, group, count = np.unique(
        key[served], return_index=True, return_inverse=True, return_counts=True
    )
    simple = (count == 1) & (calls.counts[serving[served[first]]] == 1)
    single = served[first[simple]]
    call = calls.members[calls.first[serving[single]]]
    names = calls.ranges.labels("name")
    plain = names.renamed(plain_name)
    by_group = names.equals([GROUP_END])[serving[single]]
    passed = calls.ranges.ints("payload")[call]
    sends = names.equals(["Send"])[call]
    sent = (*(sent_text([payload]) for payload in calls.payloads), "")
    several = served[~simple[group]]
    rows = list(rows_of_launches(kernels, calls, serving, several, group[~simple[group]]))
    start, end = kernels.ints("start_ns"), kernels.ints("end_ns")
    parts = [
        _part(
            *(alone, start[alone], end[alone], kernels.labels("operation").take(alone)),
            *(constant(len(calls.payloads), len(alone)), constant(0, len(alone))),
            *(Labels.constant(BY_NAME, len(alone)), Labels.constant("", len(alone))),
        ),
        _part(
            *(single, start[single], end[single], plain.take(call)),
            *(passed, constant(1, len(single))),
            Labels(by_group.astype(np.int32), (BY_RANGE, BY_GROUP)),
            Labels(np.where(sends, passed, len(sent) - 1).astype(np.int32), sent).merged(),
        ),
    ]
    if rows:
        numbers = ((row.kernel, row.start, row.end) for row in rows)
        kernel, begin, finish = np.asarray(list(numbers), dtype=np.int64).T
        parts += [
            _part(
                *(kernel, begin, finish, Labels.of(row.operation for row in rows)),
                len(calls.payloads) + 1 + np.arange(len(rows)),
                np.asarray([row.calls for row in rows], dtype=np.int64),
                Labels.of(row.evidence for row in rows),
                Labels.of(row.sent for row in rows),
            )
        ]
    payloads = (*calls.payloads, NO_PAYLOAD, *(row.payload for row in rows))
    return Frame.concatenate(parts), payloads


def _part(*columns: ColumnData) -> Frame:
    return Frame(dict(zip(_ROW, columns, strict=True)))


def _frame(kernels: Frame, rows: Frame, payloads: Sequence[Payload], calls: Calls) -> Frame:
    """The frame of operations, by start."""
    of_kernels = kernels.take(rows.ints("kernel"))
    last = (rows.ints("kernel"), rows.ints("end_ns"))
    order = np.lexsort(
        (*last, of_kernels.ints("device"), of_kernels.ints("pid"), rows.ints("start_ns"))
    )
    of_kernels, rows = of_kernels.take(order), rows.take(order)
    used, code = distinct(rows.ints("payload"))
    passed = [payloads[index] for index in used.tolist()]
    owners, owner = distinct_pairs(of_kernels.ints("pid"), code.astype(np.int64))
    made = [
        calls.communicators.get((pid, passed[index].communicator), NO_PAYLOAD)
        for pid, index in owners
    ]

    def numbers(values: Iterable[int], codes: NDArray[np.int32]) -> Ints:
        return np.asarray(list(values), dtype=np.int64)[codes]

    columns: dict[str, ColumnData] = {
        **of_kernels,
        **rows,
        "group_size": numbers((max(payload.ranks, 0) for payload in made), owner),
        "group_rank": numbers((payload.rank for payload in made), owner),
        "kernel": of_kernels["kernel"],
    }
    for name in ("communicator", "reduction"):
        texts = tuple(getattr(payload, name) for payload in passed)
        columns[name] = Labels(code, texts).merged()
    for name in ("bytes", "root", "peer", "sequence"):
        columns[name] = numbers((getattr(payload, name) for payload in passed), code)
    return Frame({name: columns[name] for name in frames.COLLECTIVES.names})
