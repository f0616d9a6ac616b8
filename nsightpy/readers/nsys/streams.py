"""What orders work across streams: synchronizations and recorded CUDA events, as frames.

The numbers of ENUM_CUPTI_SYNC_TYPE changed their meaning between exporters, so the kind of a row
is read from what it names: a stream and an event make a stream wait, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsightpy import frames
from nsightpy.frames import Frame, Labels
from nsightpy.readers.nsys.events import OF_PROCESS, PLACE, SPAN
from nsightpy.readers.nsys.table_frames import Source, read, reader
from nsightpy.readers.nsys.tables import NsysExport

SYNCHRONIZATION = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
CUDA_EVENT = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
# by (names a stream) + 2 x (names an event)
KINDS = ("context", "stream", "event", "stream wait")
_NONE = 0xFFFFFFFF

_SYNCHRONIZATIONS = Source(
    SYNCHRONIZATION,
    {
        **SPAN,
        **PLACE,
        "event_id": "eventId",
        "event_sync_id": "eventSyncId",
    },
    ids=OF_PROCESS,
)
_CUDA_EVENTS = Source(
    CUDA_EVENT,
    {
        **PLACE,
        "time_ns": "timestamp",
        "event_id": "eventId",
        "event_sync_id": "eventSyncId",
    },
    ids=OF_PROCESS,
)
cuda_events = reader(frames.CUDA_EVENTS, _CUDA_EVENTS)


def synchronizations(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of synchronizations; a stream or event that a row does not name is -1."""
    wanted = tuple(columns or frames.SYNCHRONIZATIONS.names)
    kind_of = ("stream", "event_id") if "kind" in wanted else ()
    needed = dict.fromkeys((*(name for name in wanted if name != "kind"), *kind_of))
    raw = read(export, frames.SYNCHRONIZATIONS, _SYNCHRONIZATIONS, tuple(needed))
    every = {**raw}
    for name in {"stream", "event_id"} & set(needed):
        ids = raw.ints(name)  # -1 for the profiler's "invalid"
        every[name] = np.where((ids == _NONE) | (ids < 0), -1, ids)
    if kind_of:
        stream, event = (Frame(every).ints(name) >= 0 for name in kind_of)
        every["kind"] = Labels((stream + 2 * event).astype(np.int32), KINDS)
    return Frame({name: every[name] for name in wanted})
