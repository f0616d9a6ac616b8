"""A timeline as Chrome trace events, for Perfetto's viewer and chrome://tracing.

Every event is complete (X) on a thread where events nest; times are in microseconds with three
decimals, so that no nanosecond is lost. A flow leads from each launch call to what it launched,
another along the ranks of a collective; the critical path is a process of its own. Written as it
is read. Format:
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

import gzip
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np

from nsightpy.frames import Ints
from nsightpy.render.timeline.threads import TraceProcess, TraceThread, parts_of
from nsightpy.results.tracks import CATEGORIES, Timeline

_CHUNK = 1 << 15


def write_chrome_trace(timeline: Timeline, file: BinaryIO) -> None:
    """Write {"traceEvents": [...]}; one track is held in memory at a time."""
    origin, flows, separator = timeline.earliest(), 0, ""
    collectives: list[Ints] = []
    about = {
        "generator": "nsightpy",
        "inputs": list(timeline.inputs),
        "clock": timeline.clock,
        "zero_ns": origin,
        "notes": list(timeline.notes),
    }
    file.write(f'{{"displayTimeUnit":"ns","otherData":{_json(about)},"traceEvents":[\n'.encode())
    for part in parts_of(timeline):
        if isinstance(part, TraceProcess):
            lines = _called("process", part.number, 0, part.name, part.sort)
            file.write(f"{separator}{lines}".encode())
            separator = ",\n"
            continue
        file.writelines(map(str.encode, _events(part, origin, flows)))
        collectives += _collectives(part)
        flows += 0 if part.flows is None else int(np.count_nonzero(part.flows))
    file.writelines(map(str.encode, _joined(collectives, origin, flows)))
    file.write(b"\n]}\n")


def write_packed_trace(timeline: Timeline, file: BinaryIO) -> None:
    """The same, packed with gzip; equal timelines are equal bytes."""
    with gzip.GzipFile("", "wb", compresslevel=5, fileobj=file, mtime=0) as packed:
        write_chrome_trace(timeline, packed)  # type: ignore[arg-type]


def _called(kind: str, process: int, tid: int, name: str, sort: int) -> str:
    """The name of a process or thread, and its place among others."""
    where = f'"pid":{process},"tid":{tid}'
    return (
        f'{{"ph":"M",{where},"name":"{kind}_name","args":{{"name":{_json(name)}}}}},\n'
        f'{{"ph":"M",{where},"name":"{kind}_sort_index","args":{{"sort_index":{sort}}}}}'
    )


def _events(thread: TraceThread, origin: int, flow: int) -> Iterator[str]:
    """The thread, and its events by start, each piece followed by the flows from its launches."""
    yield f",\n{_called('thread', thread.process, thread.tid, thread.name, thread.tid)}"
    lane = thread.lane
    names = [_json(name) for name in lane.names.values]
    texts = ("",) if lane.details is None else lane.details.values
    args = [f',"args":{{"details":{_json(text)}}}' if text else "" for text in texts]
    where = f'"pid":{thread.process},"tid":{thread.tid}'
    heads = [f',\n{{"ph":"X",{where},"cat":"{name}","ts":' for name in CATEGORIES]
    for low in range(0, len(lane), _CHUNK):
        part = slice(low, low + _CHUNK)
        starts = lane.starts[part] - origin
        detail = starts * 0 if lane.details is None else lane.details.codes[part]
        lines = [
            f'{heads[c]}{t // 1000}.{t % 1000:03d},"dur":{d // 1000}.{d % 1000:03d},'
            f'"name":{names[n]}{args[a]}}}'
            for c, t, d, n, a in zip(
                lane.categories[part].tolist(),
                starts.tolist(),
                (lane.ends - lane.starts)[part].tolist(),
                lane.names.codes[part].tolist(),
                detail.tolist(),
                strict=True,
            )
        ]
        yield "".join(lines)
        if thread.flows is None or thread.callers is None or lane.launch_ns is None:
            continue
        rows = np.flatnonzero(thread.flows[part])
        columns = (thread.callers[part][rows], lane.launch_ns[part][rows] - origin, starts[rows])
        for caller, call, start in zip(*(column.tolist() for column in columns), strict=True):
            common = f'"pid":{thread.process},"cat":"launch","name":"launch","id":{flow}'
            yield (
                f',\n{{"ph":"s",{common},"tid":{caller},"ts":{_us(call)}}}'
                f',\n{{"ph":"f","bp":"e",{common},"tid":{thread.tid},"ts":{_us(start)}}}'
            )
            flow += 1


def _collectives(thread: TraceThread) -> list[Ints]:
    """Number, start, process and thread of each collective on a thread, if there are any."""
    lane = thread.lane
    if lane.collectives is None:
        return []
    rows = np.flatnonzero(lane.collectives >= 0)
    ids = np.full((len(rows), 2), (thread.process, thread.tid), dtype=np.int64)
    return [np.column_stack([lane.collectives[rows], lane.starts[rows], ids]).astype(np.int64)]


def _joined(collectives: Sequence[Ints], origin: int, flow: int) -> Iterator[str]:
    """A flow along each collective of several ranks, from who came first to who came last."""
    parts = np.concatenate([np.empty((0, 4), dtype=np.int64), *collectives])
    parts = parts[np.lexsort((parts[:, 3], parts[:, 1], parts[:, 0]))]
    changes = np.flatnonzero(np.diff(parts[:, 0])) + 1
    for low, high in pairwise([0, *changes.tolist(), len(parts)]):
        if high - low < 2:
            continue
        for index, (_, start, process, tid) in enumerate(parts[low:high].tolist()):
            ph = '"s"' if index == 0 else '"f","bp":"e"' if index == high - low - 1 else '"t"'
            yield (
                f',\n{{"ph":{ph},"pid":{process},"tid":{tid},"cat":"collective",'
                f'"name":"collective","id":{flow},"ts":{_us(start - origin)}}}'
            )
        flow += 1


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
