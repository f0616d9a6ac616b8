"""Strict readers of the traces that nsightpy writes: what a viewer would silently put up with."""

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

FLOW = {"ph", "pid", "tid", "name", "cat", "ts", "id"}
KEYS = {
    "M": {"ph", "pid", "tid", "name", "args"},
    "X": {"ph", "pid", "tid", "name", "cat", "ts", "dur"},
    "s": FLOW,
    "t": FLOW,
    "f": FLOW | {"bp"},
}
METADATA = {"process_name", "process_sort_index", "thread_name", "thread_sort_index"}


class Slice(NamedTuple):
    """An event of a trace; times in ns from the trace's zero."""

    thread: tuple[int, int]
    start: int
    end: int
    name: str
    category: str
    details: str
    flows: tuple[int, ...] = ()


@dataclass
class Trace:
    """What a trace says: slices in order, names of processes and threads, flows by kind."""

    slices: list[Slice] = field(default_factory=list)
    processes: dict[int, str] = field(default_factory=dict)
    threads: dict[tuple[int, int], str] = field(default_factory=dict)
    launches: list[tuple[Slice, Slice]] = field(default_factory=list)
    collectives: list[list[Slice]] = field(default_factory=list)
    marks: list[Slice] = field(default_factory=list)

    def set_marks_apart(self) -> None:
        """Marks are slices of a process of their own."""
        self.marks = [one for one in self.slices if one.category == "mark"]
        self.slices = [one for one in self.slices if one.category != "mark"]
        for one in self.marks:
            self.threads.pop(one.thread, None)
            self.processes.pop(one.thread[0], None)

    @property
    def categories(self) -> Counter[str]:
        return Counter(one.category for one in self.slices)


def check_nesting(slices: list[Slice]) -> None:
    """On every thread: starts ascend, and two events are apart or one holds the other."""
    stacks: dict[tuple[int, int], list[Slice]] = defaultdict(list)
    last: dict[tuple[int, int], int] = {}
    for one in slices:
        assert one.end >= one.start >= 0
        assert one.start >= last.get(one.thread, 0), f"{one} begins before the one before it"
        last[one.thread] = one.start
        stack = stacks[one.thread]
        while stack and stack[-1].end <= one.start:
            stack.pop()
        assert not stack or one.end <= stack[-1].end, f"{one} crosses {stack[-1]}"
        stack.append(one)


def ns(value: Any) -> int:
    """Microseconds as written, in ns; nothing may be lost."""
    exact = Decimal(str(value)) * 1000
    assert exact == int(exact), value
    return int(exact)


def read_chrome(data: bytes) -> Trace:
    """A Chrome trace, checked against the format's rules."""
    document = json.loads(data, parse_float=Decimal)
    assert set(document) == {"displayTimeUnit", "otherData", "traceEvents"}
    trace = Trace()
    flows: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for event in document["traceEvents"]:
        kind, thread = event["ph"], (event["pid"], event["tid"])
        assert KEYS[kind] <= set(event) <= KEYS[kind] | {"args"}, event
        assert all(isinstance(number, int) for number in thread)
        if kind == "M":
            assert event["name"] in METADATA
            if event["name"] == "process_name":
                trace.processes[event["pid"]] = event["args"]["name"]
            elif event["name"] == "thread_name":
                trace.threads[thread] = event["args"]["name"]
        elif kind == "X":
            start, details = ns(event["ts"]), event.get("args", {}).get("details", "")
            end = start + ns(event["dur"])
            trace.slices.append(Slice(thread, start, end, event["name"], event["cat"], details))
        else:
            flows[event["id"]].append(event)
    check_nesting(trace.slices)
    assert {one.thread for one in trace.slices} <= set(trace.threads)
    assert {pid for pid, _ in trace.threads} <= set(trace.processes)
    assert len({tid for _, tid in trace.threads}) == len(trace.threads)
    trace.set_marks_apart()
    by_start = {(one.thread, one.start): one for one in trace.slices}
    for number, events in flows.items():
        kinds = "".join(event["ph"] for event in events)
        assert re.fullmatch("st*f", kinds), (number, kinds)
        (category,) = {event["cat"] for event in events}
        times = [ns(event["ts"]) for event in events]
        ends = [
            by_start[(event["pid"], event["tid"]), time]
            for event, time in zip(events, times, strict=True)
        ]
        if category == "launch":
            call, work = ends
            trace.launches.append((call, work))
        else:
            assert times == sorted(times)
            trace.collectives.append(ends)
    return trace


def read_perfetto(data: bytes) -> Trace:
    """A Perfetto trace parsed with Perfetto's own protobufs; B and E must pair on every track."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

    trace, parsed = Trace(), protos.Trace()
    assert parsed.ParseFromString(data) == len(data)
    tables: dict[str, dict[int, str]] = defaultdict(dict)
    tracks: dict[int, tuple[int, int]] = {}
    open_slices: dict[int, list[int]] = defaultdict(list)
    assert parsed.packet[0].sequence_flags == 1
    for packet in parsed.packet:
        assert packet.trusted_packet_sequence_id == 1
        interned, track, event = packet.interned_data, packet.track_descriptor, packet.track_event
        tables["names"].update((one.iid, one.name) for one in interned.event_names)
        tables["categories"].update((one.iid, one.name) for one in interned.event_categories)
        strings = interned.debug_annotation_string_values
        tables["strings"].update((one.iid, one.str.decode()) for one in strings)
        if track.HasField("process"):
            trace.processes[track.process.pid] = track.process.process_name
        elif packet.HasField("track_descriptor"):
            assert track.uuid not in tracks
            tracks[track.uuid] = (track.thread.pid, track.thread.tid)
            trace.threads[tracks[track.uuid]] = track.thread.thread_name
        elif packet.HasField("track_event"):
            stack = open_slices[event.track_uuid]
            if event.type == protos.TrackEvent.TYPE_SLICE_BEGIN:
                stack.append(len(trace.slices))
                trace.slices.append(_begun(packet.timestamp, event, tracks, tables))
            else:
                assert event.type == protos.TrackEvent.TYPE_SLICE_END
                number = stack.pop()
                trace.slices[number] = trace.slices[number]._replace(end=packet.timestamp)
    assert not any(open_slices.values())
    check_nesting(trace.slices)
    trace.set_marks_apart()
    _pair(trace)
    return trace


def _begun(time: int, event: Any, tracks: Any, tables: Any) -> Slice:
    (category,) = event.category_iids
    details = "".join(tables["strings"][a.string_value_iid] for a in event.debug_annotations)
    name = tables["names"][event.name_iid] if event.name_iid else ""
    kind, flows = tables["categories"][category], tuple(event.flow_ids)
    return Slice(tracks[event.track_uuid], time, time, name, kind, details, flows)


def _pair(trace: Trace) -> None:
    flows: dict[int, list[Slice]] = defaultdict(list)
    for one in trace.slices:
        for number in one.flows:
            flows[number].append(one)
    for number, members in flows.items():
        calls = [one for one in members if one.category == "api"]
        # one alone has its other end outside of the window; the viewer draws nothing
        if number >> 62 and len(members) > 1:
            trace.collectives.append(sorted(members, key=lambda one: one.start))
        elif calls:
            trace.launches += [(calls[0], one) for one in members if one.category != "api"]
