"""One trace of PyTorch's profiler, read once into frames."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from nsightpy import frames
from nsightpy.errors import ReportError
from nsightpy.frames import Frame, Ints, constant, distinct, time_order
from nsightpy.readers.limits import check_places, clock_reading
from nsightpy.readers.torch import gpu, host
from nsightpy.readers.torch.decode import Damage, EventDecoder
from nsightpy.readers.torch.events import (
    CALL,
    COLLECTIVE,
    COPY,
    GPU_RANGE,
    KERNEL,
    MEMORY,
    OPERATOR,
    PYTHON,
    RANGE,
    RECORD,
    SET,
    SYNC,
    Event,
    ExactEvent,
)
from nsightpy.readers.torch.header import Header
from nsightpy.readers.torch.pieces import Pieces
from nsightpy.readers.torch.tables import TraceTables
from nsightpy.readers.torch.times import InexactTimesError
from nsightpy.results import Abstention

_HOST = (CALL, OPERATOR, RANGE, PYTHON)
_TIMED = (KERNEL, COPY, SET, CALL, OPERATOR, RANGE, GPU_RANGE)
_PROCESS_IN_NAME = re.compile(r"_(\d{1,7})\.\d+\.pt\.trace\.json")


@dataclass(frozen=True)
class TraceFacts:
    """What a trace says of itself. Times in ns; None where it does not say.

    `utc_ns` is the wall clock at the zero of the frames' times, that of the first event.
    """

    utc_ns: int | None
    duration_ns: int
    schema_version: str
    runtime: str
    rank: int | None
    world_size: int | None
    pids: tuple[int, ...]
    process_names: dict[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trace:
    """A trace's frames by name, and what it says of itself."""

    frames: dict[str, Frame]
    facts: TraceFacts


def read_trace(path: Path) -> Trace:
    """Read a trace (.json, .json.gz). Raises ReportError when it is none."""
    with _no_garbage_collection():
        try:
            tables, pieces, damage = _tables(path, Event)
        except InexactTimesError:
            tables, pieces, damage = _tables(path, ExactEvent)
        header = Header.of(pieces.before, pieces.after)
        _check(path, tables, pieces, damage)
        return _trace(path, tables, header, _damage_notes(tables, pieces, damage, header))


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Events make no cycles, and looking for them costs most of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _tables(path: Path, kind: type[Event]) -> tuple[TraceTables, Pieces, Damage]:
    pieces, decoder, tables = Pieces(path), EventDecoder(kind), TraceTables()
    for offset, text in pieces:
        tables.add(decoder.events(text, offset))
    return tables, pieces, decoder.damage


def _check(path: Path, tables: TraceTables, pieces: Pieces, damage: Damage) -> None:
    """Raise ReportError where nothing of a trace could be read."""
    rows = sum(tables.table(kind).rows for kind in (*_TIMED, PYTHON, MEMORY))
    if rows:
        return
    if damage.lost:
        where = f"byte {damage.first_lost:,}"
        problem = f"is damaged: no event of it can be read, the first at {where} ({damage.reason})"
        raise ReportError(path, problem, "export the trace again, or copy it again.")
    if pieces.cut_off:
        problem = f"is cut off{pieces.where_cut} before its first event"
        raise ReportError(path, problem, "copy it again; the disk may have been full.")
    problem = "holds no event of PyTorch's profiler"
    raise ReportError(path, problem, "give what `prof.export_chrome_trace(FILE)` writes.")


def _trace(path: Path, tables: TraceTables, header: Header, notes: list[str]) -> Trace:
    raw = {kind: tables.table(kind) for kind in (*_TIMED, PYTHON, SYNC, RECORD, MEMORY)}
    zero = _zero(raw)
    raw = {kind: _shifted(table, zero) for kind, table in raw.items()}
    owner = _owner(path, tables, raw)
    pids = {kind: _pids(raw[kind], owner, raw[CALL]) for kind in (KERNEL, COPY, SET, SYNC, RECORD)}
    kernels = gpu.kernels(raw[KERNEL], pids[KERNEL])
    collectives = gpu.collectives(kernels, tables.table(COLLECTIVE), header.rank)
    by_name = {
        "kernels": kernels,
        "memory_operations": gpu.memory_operations(raw[COPY], raw[SET], (pids[COPY], pids[SET])),
        "api_calls": host.api_calls(raw[CALL]),
        "nvtx_ranges": host.nvtx_ranges(raw[RANGE]),
        "collectives": collectives,
        "synchronizations": host.synchronizations(raw[SYNC], pids[SYNC]),
        "cuda_events": host.cuda_events(raw[RECORD], raw[SYNC], (pids[RECORD], pids[SYNC])),
        "memory_usage": host.memory_usage(raw[MEMORY]),
        "operators": host.operators(raw[OPERATOR]),
        "python_functions": host.python_functions(raw[PYTHON]),
    }
    for name in ("kernels", "memory_operations"):
        check_places(path, by_name[name])
        if unplaced := int(np.count_nonzero(by_name[name].ints("device") == -1)):
            notes.append(f"{unplaced:,} rows of {name} name no device.")
    whole = {name: _complete(name, frame) for name, frame in by_name.items()}
    by_name = {name: _by_start(frame) for name, frame in whole.items()}
    used = _values([by_name["kernels"].ints("device"), by_name["memory_operations"].ints("device")])
    by_name["devices"] = gpu.devices(header.gpus, used)
    gpu_pids = _values([pids[kind] for kind in (KERNEL, COPY, SET)])
    host_pids = _values([raw[kind].ints("pid") for kind in (CALL, OPERATOR, RANGE)])
    notes += [
        note
        for note in (
            _names_note(raw),
            _sizes_note(raw),
            _shared_note(gpu_pids),
            _merged_note(raw[CALL]),
            "" if gpu_pids else NO_WORK,
        )
        if note
    ]
    ends = [f.ints("end_ns") for f in by_name.values() if "end_ns" in f]
    end = max((int(times.max()) for times in ends if len(times)), default=0)
    facts = TraceFacts(
        utc_ns=_wall_clock(zero, header),
        duration_ns=end,
        schema_version=header.schema_version,
        runtime=header.runtime,
        rank=header.rank,
        world_size=header.world_size,
        pids=tuple(sorted(gpu_pids or host_pids or {owner})),
        process_names={p: n for p, n in tables.process_names.items() if p in gpu_pids | host_pids},
        notes=tuple(notes),
    )
    return Trace(by_name, replace(facts, frames=tuple(by_name)))


def _zero(raw: dict[str, Frame]) -> int:
    """The start of the first event; Python functions may have begun long before the trace."""
    for kinds in (_TIMED, (PYTHON, MEMORY)):
        starts = [int(raw[kind].ints("start").min()) for kind in kinds if raw[kind].rows]
        if starts:
            return min(starts)
    return 0


NO_WORK = Abstention(
    "The trace holds no GPU work: no kernel, copy or memory set.",
    "Record with `ProfilerActivity.CUDA`, and check that the program ran on a GPU meanwhile.",
)
# Times before 2001 are no wall clock: they count from a base that is not known.
_FIRST_DAY_NS = 10**18


def _wall_clock(zero: int, header: Header) -> int | None:
    """The UTC of the frames' zero: absolute times give it, others need the header's base."""
    if zero >= _FIRST_DAY_NS:
        return zero
    return clock_reading(zero + header.base_ns) if header.base_ns else None


def _shifted(table: Frame, zero: int) -> Frame:
    if not table.rows:
        return table
    moved = {name: table.ints(name) - zero for name in ("start", "end")}
    return Frame({**table, **moved})


def _by_start(frame: Frame) -> Frame:
    """The rows by start; those of one start as in the trace, where what encloses comes first."""
    rows = time_order(frame.ints("start_ns"), ()) if "start_ns" in frame else None
    return frame if rows is None else frame.take(rows)


def _owner(path: Path, tables: TraceTables, raw: dict[str, Frame]) -> int:
    """The process whose trace it is: the one that calls, else the one that the trace or its file's
    name calls the host's; 0 where unknown."""
    for kind in _HOST:
        pids = raw[kind].ints("pid")
        if len(pids):
            values, counts = np.unique(pids, return_counts=True)
            return int(values[np.argmax(counts)])
    match = _PROCESS_IN_NAME.search(path.name)
    return tables.cpu_pids[0] if tables.cpu_pids else int(match[1]) if match else 0


def _pids(table: Frame, owner: int, calls: Frame) -> Ints:
    """The process of GPU operations: that of the call that launched them, else the trace's."""
    known, _ = distinct(calls.ints("pid"))
    if len(known) <= 1:
        return constant(owner, table.rows)
    order = np.argsort(calls.ints("correlation"), kind="stable")
    keys = calls.ints("correlation")[order]
    wanted = table.ints("correlation")
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    hit = keys[place] == wanted
    return np.where(hit, calls.ints("pid")[order[place]], owner)


def _complete(name: str, frame: Frame) -> Frame:
    """A frame with the columns of its schema, in their order."""
    return Frame(
        {column: frame[column] for column in frames.SCHEMAS.get(name, frames.COLLECTIVES).names}
    )


def _values(columns: Iterable[Ints]) -> set[int]:
    return {int(value) for column in columns for value in np.unique(column)}


def _names_note(raw: dict[str, Frame]) -> str:
    lost = sum(int(raw[kind].labels("name").equals([""]).sum()) for kind in (KERNEL, COPY, SET))
    return f"{lost:,} kernels, copies and memory sets have no name." if lost else ""


def _sizes_note(raw: dict[str, Frame]) -> str:
    unknown = sum(int(np.count_nonzero(raw[kind].ints("bytes") < 0)) for kind in (COPY, SET))
    return f"{unknown:,} copies and memory sets have no size." if unknown else ""


def restored(note: str) -> str:
    """A note as it was said, of one that was kept as a text."""
    return NO_WORK if note == NO_WORK else note


def _shared_note(pids: set[int]) -> str:
    return f"the trace holds the GPU work of {len(pids)} processes." if len(pids) > 1 else ""


def _merged_note(calls: Frame) -> str:
    """What is said where processes share correlation ids: which of them launched is not known."""
    if len(distinct(calls.ints("pid"))[0]) <= 1:
        return ""
    pairs = np.unique(np.stack([calls.ints("correlation"), calls.ints("pid")]), axis=1)
    shared = pairs[0][1:] == pairs[0][:-1]
    if not (shared & (pairs[0][1:] != 0)).any():
        return ""
    return (
        "processes of the trace share correlation ids, as in traces that were merged: GPU work may "
        "stand under the wrong process and device; give the traces of the ranks instead."
    )


def _damage_notes(tables: TraceTables, pieces: Pieces, damage: Damage, header: Header) -> list[str]:
    """What is said of a trace that is not whole."""
    notes = []
    if pieces.cut_off:
        packed = " (of the unpacked text)" if pieces.damaged and pieces.where_cut else ""
        notes.append(
            f"the file is cut off{pieces.where_cut}{packed}: what stands before is read, "
            f"{tables.events:,} events; what came after is missing."
        )
    if mended := damage.mended + tables.mended:
        notes.append(
            f"{mended:,} events are no valid JSON (unescaped quotation marks, nan, control "
            "characters) and were mended."
        )
    if damage.lost:
        notes.append(
            f"{damage.lost:,} damaged events are left out, the first at byte "
            f"{damage.first_lost:,}: {damage.reason}"
        )
    if tables.apart:
        notes.append(
            f"{tables.apart:,} events whose begin and end stand apart (ph B and E) are left out: "
            "PyTorch's profiler writes whole ones."
        )
    if tables.left_out:
        notes.append(f"{tables.left_out:,} events without a time that can be are left out.")
    if unread := +tables.unread:
        parts = ", ".join(f"{name}: {count:,}" for name, count in unread.most_common())
        notes.append(
            f"{unread.total():,} values of events are no number that can be there ({parts}): "
            "they count as not recorded."
        )
    if header.torn and not pieces.cut_off:
        notes.append("the header is damaged: only part of it could be read.")
    return notes
