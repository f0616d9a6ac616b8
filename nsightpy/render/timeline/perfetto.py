"""A timeline as a Perfetto trace (.pftrace), made with the `perfetto` package.

Ranks are processes, streams and host threads are threads; slices nest on every one. A flow leads
from each launch call to what it launched, another along the ranks of a collective. Names are
interned, packets are written as they are made; the critical path is a process of its own. Format:
https://perfetto.dev/docs/reference/trace-packet-proto (TrackEvent, TrackDescriptor).
"""

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from nsightpy.errors import NsightpyError
from nsightpy.frames import Ints, Labels
from nsightpy.render.timeline.threads import TraceProcess, TraceThread, parts_of
from nsightpy.results.tracks import CATEGORIES, Timeline

_SEQUENCE = 1
_CLEARED, _NEEDS_STATE = 1, 2
_BEGIN, _END = 1, 2
_EXPLICIT = 3
_CHUNK = 1 << 15
_COLLECTIVES = 1 << 62
_DETAILS = 1


def write_perfetto(timeline: Timeline, file: BinaryIO) -> None:
    """Write the trace; one track is held in memory at a time.

    Raises NsightpyError when the package is missing.
    """
    try:
        from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder
    except ImportError:
        raise NsightpyError(
            ".pftrace needs the perfetto package: pip install 'nsightpy[perfetto]'; "
            ".json.gz opens in the same viewer without it"
        ) from None
    writer = _Writer(StreamingTraceProtoBuilder(file), timeline.earliest())
    for part in parts_of(timeline):
        if isinstance(part, TraceProcess):
            writer.process(part)
        else:
            writer.thread(part)


class _Writer:
    def __init__(self, builder: Any, origin: int) -> None:
        self._builder, self._add, self._origin = builder, builder.write_packet, origin
        self._names: dict[str, int] = {}
        self._texts: dict[str, int] = {}
        first = self._packet(_CLEARED)
        first.previous_packet_dropped = 1
        for iid, name in enumerate(CATEGORIES, start=1):
            first.interned_data.event_categories.add(iid=iid, name=name)
        first.interned_data.debug_annotation_names.add(iid=_DETAILS, name="details")
        self._add(first)

    def _packet(self, flags: int | None = None) -> Any:
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        if flags is not None:
            packet.sequence_flags = flags
        return packet

    def process(self, process: TraceProcess) -> None:
        packet = self._packet()
        track = packet.track_descriptor
        track.uuid = track.process.pid = process.number
        track.process.process_name = process.name
        track.child_ordering = _EXPLICIT
        track.sibling_order_rank = process.sort
        self._add(packet)

    def thread(self, thread: TraceThread) -> None:
        """The description of a thread, the names it needs, and its slices."""
        packet = self._packet(_NEEDS_STATE)
        track, new = packet.track_descriptor, packet.interned_data
        track.uuid, track.parent_uuid = thread.tid, thread.process
        track.thread.pid, track.thread.tid = thread.process, thread.tid
        track.thread.thread_name = thread.name
        track.sibling_order_rank = thread.tid
        names = _interned(
            thread.lane.names,
            self._names,
            lambda iid, text: new.event_names.add(iid=iid, name=text.decode()),
        )
        texts = np.zeros(len(thread.lane), dtype=np.int64)
        if thread.lane.details is not None:
            texts = _interned(
                thread.lane.details,
                self._texts,
                lambda iid, text: new.debug_annotation_string_values.add(iid=iid, str=text),
            )
        self._add(packet)
        self._slices(thread, names, texts)

    def _slices(self, thread: TraceThread, names: Ints, texts: Ints) -> None:
        """The beginning and the end of each slice, in order; its name and details are interned."""
        begin, end = self._packet(_NEEDS_STATE), self._packet(_NEEDS_STATE)
        event, lane = begin.track_event, thread.lane
        event.type, event.track_uuid = _BEGIN, thread.tid
        end.track_event.type, end.track_event.track_uuid = _END, thread.tid
        open_ends: list[int] = []

        def close(until: float) -> None:
            while open_ends and open_ends[-1] <= until:
                end.timestamp = open_ends.pop() - self._origin
                self._add(end)

        columns = (lane.starts, lane.ends, names, lane.categories, texts)
        for low in range(0, len(lane), _CHUNK):
            part = slice(low, low + _CHUNK)
            values = (column[part].tolist() for column in columns)
            for start, stop, name, category, detail, flows in zip(
                *values, _flows(thread, part), strict=True
            ):
                close(start)
                begin.timestamp = start - self._origin
                event.name_iid = name
                event.category_iids[:] = (category + 1,)
                event.flow_ids[:] = flows
                del event.debug_annotations[:]
                if detail:
                    event.debug_annotations.add(name_iid=_DETAILS, string_value_iid=detail)
                self._add(begin)
                open_ends.append(stop)
        close(float("inf"))


def _interned(
    labels: Labels, numbers: dict[str, int], add: Callable[[int, bytes], object]
) -> NDArray[np.int64]:
    """The number of each row's name, 0 for the empty one; new names are numbered and added."""
    for text in labels.values:
        if text and text not in numbers:
            numbers[text] = len(numbers) + 1
            add(numbers[text], text.encode("utf-8", "backslashreplace"))
    return labels.map(lambda text: numbers.get(text, 0), np.int64)


def _flows(thread: TraceThread, part: slice) -> Iterator[tuple[int, ...]]:
    """The flows of each event: its launch, unique in the trace, and its collective."""
    lane = thread.lane
    none = np.zeros(len(lane.starts[part]), dtype=np.int64)
    launches = none if lane.flows is None else lane.flows[part]
    if thread.flows is not None:
        launches = np.where(thread.flows[part], launches, 0)
    launches = np.where(launches > 0, launches | (thread.process << 36), 0)
    collectives = none - 1 if lane.collectives is None else lane.collectives[part]
    for launch, collective in zip(launches.tolist(), collectives.tolist(), strict=True):
        flows = (launch,) if launch else ()
        yield (*flows, collective | _COLLECTIVES) if collective >= 0 else flows
