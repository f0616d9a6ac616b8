"""One trace of PyTorch's profiler, read once into frames."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nsightpy import frames
from nsightpy.errors import ReportError
from nsightpy.frames import Frame, Ints, constant, distinct, distinct_pairs, time_order
from nsightpy.readers.limits import check_places, clock_reading
from nsightpy.readers.nsys.capture import TORCH_PROFILER, Capture, CaptureStart
from nsightpy.readers.nsys.identity import Evidence, is_rank
from nsightpy.readers.nsys.session import Session
from nsightpy.readers.torch import gpu, host
from nsightpy.readers.torch.columns import InexactTimesError
from nsightpy.readers.torch.events import (
    CALL,
    COLLECTIVE,
    COPY,
    KERNEL,
    MEMORY,
    OPERATOR,
    PYTHON,
    RANGE,
    RECORD,
    SET,
    SYNC,
    TIMED,
    Event,
    EventDecoder,
    ExactEvent,
)
from nsightpy.readers.torch.pieces import Header, Pieces
from nsightpy.readers.torch.tables import TraceTables
from nsightpy.results import Note, Said, notes as kinds

PROFILER, DISTRIBUTED_INFO = "PyTorch profiler", "distributedInfo"
_HOST = (CALL, OPERATOR, RANGE, PYTHON)
_GPU_WORK = (KERNEL, COPY, SET)
_AT_ANY_TIME = (PYTHON, MEMORY)
_BEGINNING = tuple(kind for kind in TIMED if kind not in (*_AT_ANY_TIME, SYNC, RECORD))


@dataclass(frozen=True)
class Trace:
    """A trace's frames by name, and what it says of itself."""

    frames: dict[str, Frame]
    capture: Capture


def read_trace(path: Path) -> Trace:
    """Read a trace (.json, .json.gz). Raises ReportError when it is none."""
    try:
        tables, pieces, decoder = _tables(path, Event)
    except InexactTimesError:
        tables, pieces, decoder = _tables(path, ExactEvent)
    header = Header.of(pieces.before, pieces.after)
    raw = {kind: tables.table(kind) for kind in TIMED}
    if not any(raw[kind].rows for kind in (*_BEGINNING, *_AT_ANY_TIME)):
        raise _no_trace(path, pieces, decoder)
    return _trace(path, tables, raw, header, _damage_notes(tables, pieces, decoder))


def _tables(path: Path, kind: type[Event]) -> tuple[TraceTables, Pieces, EventDecoder]:
    pieces, decoder, tables = Pieces(path), EventDecoder(kind), TraceTables()
    for text in pieces:
        tables.add(decoder.events(text))
    return tables, pieces, decoder


def _no_trace(path: Path, pieces: Pieces, decoder: EventDecoder) -> ReportError:
    """Why nothing of a trace could be read."""
    if decoder.lost or pieces.cut_off:
        problem = f"is damaged or cut off: no event of it can be read {decoder.reason}".rstrip()
        return ReportError(path, problem, "export the trace again, or copy it again.")
    problem = "holds no event of PyTorch's profiler"
    return ReportError(path, problem, "give what `prof.export_chrome_trace(FILE)` writes.")


def _trace(
    path: Path, tables: TraceTables, raw: dict[str, Frame], header: Header, notes: list[Note]
) -> Trace:
    starts = {kind: int(raw[kind].ints("start_ns").min()) for kind in TIMED if raw[kind].rows}
    # Python functions may have begun long before the trace
    beginnings = [starts[kind] for kind in _BEGINNING if kind in starts]
    zero = min(beginnings or starts.values())
    for kind, table in raw.items():
        moved = {name: table.ints(name) - zero for name in ("start_ns", "end_ns")}
        raw[kind] = Frame({**table, **moved})
    owner = _owner(raw)
    pids = {kind: _pids(raw[kind], owner, raw[CALL]) for kind in (*_GPU_WORK, SYNC, RECORD)}
    by_name = _frames(tables, raw, pids, header.rank)
    for name in ("kernels", "memory_operations"):
        check_places(path, by_name[name])
    by_name = {name: _ordered(name, frame) for name, frame in by_name.items()}
    used = _values([by_name["kernels"].ints("device"), by_name["memory_operations"].ints("device")])
    by_name["devices"] = gpu.devices(header.gpus, used)
    gpu_pids = _values([pids[kind] for kind in _GPU_WORK])
    host_pids = _values([raw[kind].ints("pid") for kind in (CALL, OPERATOR, RANGE)])
    notes += _content_notes(raw, gpu_pids)
    ends = [frame.ints("end_ns") for frame in by_name.values() if "end_ns" in frame]
    # absolute times give it, others need the header's base
    utc_ns = zero if zero >= _FIRST_DAY_NS else None
    if utc_ns is None and header.base_ns:
        utc_ns = clock_reading(zero + header.base_ns)
    capture = Capture(
        # a trace names no host that may be shown; time 0 is that of the first event
        session=Session(
            host="",
            export_version=PROFILER,
            schema_version=header.schema_version,
            utc_ns=utc_ns,
            shift_ns=0,
            system_clock_ns=None,
            duration_ns=max(int(times.max(initial=0)) for times in ends),
            uuid="",
        ),
        start=CaptureStart(TORCH_PROFILER),
        tool_version=", ".join(filter(None, (PROFILER, header.runtime))),
        ranks=[],
        launched=[Evidence(header.rank, DISTRIBUTED_INFO)] if is_rank(header.rank) else [],
        pids=sorted(gpu_pids or host_pids or {owner}),
        processes={p: n for p, n in tables.process_names.items() if p in gpu_pids | host_pids},
        notes=notes,
        frames=tuple(by_name),
    )
    return Trace(by_name, capture)


def _frames(
    tables: TraceTables, raw: dict[str, Frame], pids: dict[str, Ints], rank: int | None
) -> dict[str, Frame]:
    """The frames of events by name, their rows in the order of the file."""
    kernels = gpu.kernels(raw[KERNEL], pids[KERNEL])
    return {
        "kernels": kernels,
        "memory_operations": gpu.memory_operations(raw[COPY], raw[SET], (pids[COPY], pids[SET])),
        "api_calls": host.api_calls(raw[CALL]),
        "nvtx_ranges": host.nvtx_ranges(raw[RANGE]),
        "collectives": gpu.collectives(kernels, tables.table(COLLECTIVE), rank),
        "synchronizations": host.synchronizations(raw[SYNC], pids[SYNC]),
        "cuda_events": host.cuda_events(raw[RECORD], raw[SYNC], (pids[RECORD], pids[SYNC])),
        "memory_usage": host.memory_usage(raw[MEMORY]),
        "operators": host.operators(raw[OPERATOR]),
        "python_functions": raw[PYTHON],
    }


NO_WORK = Note(
    "The trace holds no GPU work: no kernel, copy or memory set.",
    "Record with `ProfilerActivity.CUDA`, and check that the program ran on a GPU meanwhile.",
    kind=kinds.NO_WORK,
)
MERGED = (
    "processes of the trace share correlation ids, as in traces that were merged: "
    "give the traces of the ranks instead."
)
# Times before 2001 are no wall clock: they count from a base that is not known.
_FIRST_DAY_NS = 10**18


def _ordered(name: str, frame: Frame) -> Frame:
    """What a frame holds of its schema, by start; of one start as in the trace, where what encloses
    comes first."""
    held = frame.select(column for column in frames.EVERY_SCHEMA[name].names if column in frame)
    rows = time_order(held.ints("start_ns"), ()) if "start_ns" in held else None
    return held if rows is None else held.take(rows)


def _owner(raw: dict[str, Frame]) -> int:
    """The process whose trace it is: the one that calls most; 0 where none does."""
    for kind in _HOST:
        pids = raw[kind].ints("pid")
        if len(pids):
            values, counts = np.unique(pids, return_counts=True)
            return int(values[np.argmax(counts)])
    return 0


def _pids(table: Frame, owner: int, calls: Frame) -> Ints:
    """The process of GPU operations: that of the call that launched them, else the trace's."""
    pids, _ = distinct(calls.ints("pid"))
    if len(pids) <= 1:
        return constant(owner, table.rows)
    order = np.argsort(calls.ints("correlation_id"), kind="stable")
    keys = calls.ints("correlation_id")[order]
    wanted = table.ints("correlation_id")
    nearest = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    hit = keys[nearest] == wanted
    return np.where(hit, calls.ints("pid")[order[nearest]], owner)


def _values(columns: Iterable[Ints]) -> set[int]:
    return {int(value) for column in columns for value in np.unique(column)}


def _content_notes(raw: dict[str, Frame], gpu_pids: set[int]) -> list[Note]:
    """What is said of work that is not there, or whose process is not known."""
    calls, merged = raw[CALL], False
    if len(distinct(calls.ints("pid"))[0]) > 1:
        pairs, _ = distinct_pairs(calls.ints("correlation_id"), calls.ints("pid"))
        numbers = [correlation for correlation, _ in pairs if correlation]
        merged = len(set(numbers)) < len(numbers)
    notes: dict[Said, object] = {MERGED: merged, NO_WORK: not gpu_pids}
    return [kinds.as_note(note) for note, holds in notes.items() if holds]


def _damage_notes(tables: TraceTables, pieces: Pieces, decoder: EventDecoder) -> list[Note]:
    """What is said of a trace that is not whole."""
    mended, unread = decoder.mended, +tables.unread
    parts = ", ".join(f"{name}: {count:,}" for name, count in unread.most_common())
    notes: dict[str, object] = {
        "the file is cut off: what stands before is read.": pieces.cut_off,
        f"{mended:,} events are no valid JSON (unescaped quotation marks, nan, control "
        "characters) and were mended.": mended,
        f"{decoder.lost:,} damaged events are left out: {decoder.reason}": decoder.lost,
        f"{tables.left_out:,} events without a time, or with begin and end apart, are left out.": (
            tables.left_out
        ),
        f"values that are no number count as not recorded ({parts}).": unread,
    }
    return [Note(note) for note, holds in notes.items() if holds]
