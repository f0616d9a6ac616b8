"""A timeline as Chrome trace events, for Perfetto's viewer and chrome://tracing.

Every event is complete (X) on a thread where events nest; times are in microseconds with three
decimals, so that no nanosecond is lost. A flow leads from each launch call to what it launched,
another along the ranks of a collective; marks are a process of their own. Written as it is read.
Format:
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np

from nsightpy.frames import Ints
from nsightpy.render.timeline.threads import Directory, TraceProcess, TraceThread
from nsightpy.results.tracks import CATEGORIES, Counter, Timeline

_CHUNK = 1 << 15


def write_chrome_trace(timeline: Timeline, file: BinaryIO) -> None:
    """Write {"traceEvents": [...]}; one track is held in memory at a time."""
    for text in _texts(timeline):
        file.write(text.encode())


def write_packed_trace(timeline: Timeline, file: BinaryIO) -> None:
    """The same, packed with gzip; equal timelines are equal bytes."""
    with gzip.GzipFile("", "wb", compresslevel=5, fileobj=file, mtime=0) as packed:
        write_chrome_trace(timeline, packed)  # type: ignore[arg-type]


def _texts(timeline: Timeline) -> Iterator[str]:
    """The trace from its head to its end."""
    origin = timeline.earliest()
    directory, collectives, flows = Directory(timeline), _CollectiveFlows(), 0
    about = {
        "generator": "nsightpy",
        "inputs": list(timeline.inputs),
        "clock": timeline.clock,
        "zero_ns": origin,
        "notes": list(timeline.notes),
    }
    yield f'{{"displayTimeUnit":"ns","otherData":{_json(about)},"traceEvents":[\n'
    yield ",\n".join(map(_process, directory.processes.values()))
    for track in timeline:
        for thread in directory.threads(track):
            yield f",\n{_thread(thread)}"
            collectives.note(thread)
            yield from _events(thread, origin, flows)
            if thread.flows is not None:
                flows += int(np.count_nonzero(thread.flows))
        for counter in track.counters:
            process, _, name = directory.counter(track, counter.label)
            yield from _values(counter, process, name, origin)
    yield from collectives.lines(origin, flows)
    if (marks := directory.marks(origin)) is not None:
        yield f",\n{_process(marks[0])}"
        for thread in marks[1]:
            yield f",\n{_thread(thread)}"
            yield from _events(thread, origin, flows)
    yield "\n]}\n"


def _process(process: TraceProcess) -> str:
    where = f'"pid":{process.number},"tid":0'
    return (
        f'{{"ph":"M",{where},"name":"process_name","args":{{"name":{_json(process.name)}}}}},\n'
        f'{{"ph":"M",{where},"name":"process_sort_index","args":{{"sort_index":{process.sort}}}}}'
    )


def _thread(thread: TraceThread) -> str:
    where = f'"pid":{thread.process},"tid":{thread.tid}'
    return (
        f'{{"ph":"M",{where},"name":"thread_name","args":{{"name":{_json(thread.name)}}}}},\n'
        f'{{"ph":"M",{where},"name":"thread_sort_index","args":{{"sort_index":{thread.sort}}}}}'
    )


def _events(thread: TraceThread, origin: int, flow: int) -> Iterator[str]:
    """The thread's events by start, each followed by the flow from its launch; in pieces."""
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
        yield "".join(
            _launch(flow + k, thread, caller, call, start)
            for k, (caller, call, start) in enumerate(
                zip(
                    thread.callers[part][rows].tolist(),
                    (lane.launch_ns[part][rows] - origin).tolist(),
                    starts[rows].tolist(),
                    strict=True,
                )
            )
        )
        flow += len(rows)


def _values(counter: Counter, process: int, name: str, origin: int) -> Iterator[str]:
    """The values of a counter, in pieces."""
    head = f',\n{{"ph":"C","pid":{process},"tid":0,"name":{_json(name)},"ts":'
    unit = _json(counter.unit)
    for low in range(0, len(counter.times), _CHUNK):
        part = slice(low, low + _CHUNK)
        times = np.maximum(counter.times[part] - origin, 0).tolist()
        values = zip(times, counter.values[part].tolist(), strict=True)
        yield "".join(f'{head}{_us(time)},"args":{{{unit}:{value}}}}}' for time, value in values)


def _launch(number: int, thread: TraceThread, caller: int, call: int, start: int) -> str:
    common = f'"pid":{thread.process},"cat":"launch","name":"launch","id":{number}'
    return (
        f',\n{{"ph":"s",{common},"tid":{caller},"ts":{_us(call)}}}'
        f',\n{{"ph":"f","bp":"e",{common},"tid":{thread.tid},"ts":{_us(start)}}}'
    )


class _CollectiveFlows:
    """The collectives seen so far: number, start, process and thread of each rank's part."""

    def __init__(self) -> None:
        self._parts: list[Ints] = []

    def note(self, thread: TraceThread) -> None:
        numbers = thread.lane.collectives
        if numbers is None:
            return
        rows = np.flatnonzero(numbers >= 0)
        ids = np.full((len(rows), 2), (thread.process, thread.tid), dtype=np.int64)
        self._parts.append(
            np.column_stack([numbers[rows], thread.lane.starts[rows], ids]).astype(np.int64)
        )

    def lines(self, origin: int, first: int) -> Iterator[str]:
        """A flow along each collective of several ranks, from who came first to who came last."""
        if not self._parts:
            return
        parts = np.concatenate(self._parts)
        parts = parts[np.lexsort((parts[:, 3], parts[:, 1], parts[:, 0]))]
        changes = np.flatnonzero(np.diff(parts[:, 0])) + 1
        flow = first
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
