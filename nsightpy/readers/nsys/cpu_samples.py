"""CPU samples: which function was on top of a thread's stack at which time."""

from __future__ import annotations

from collections.abc import Sequence

from nsightpy import frames
from nsightpy.frames import Frame
from nsightpy.readers.nsys.columns import column, number, process_of, thread_of
from nsightpy.readers.nsys.tables import NsysExport
from nsightpy.readers.sql import sa

SAMPLES = "COMPOSITE_EVENTS"
CALLCHAINS = "SAMPLING_CALLCHAINS"


def cpu_samples(export: NsysExport, columns: Sequence[str]) -> Frame:
    """The frame of CPU samples; empty where callchains were not recorded."""
    wanted = tuple(columns)
    if not (export.holds_rows(SAMPLES) and export.holds_rows(CALLCHAINS)):
        return Frame.empty(frames.CPU_SAMPLES, wanted)
    samples, chains = (export.file.tables[name] for name in (SAMPLES, CALLCHAINS))
    needed = {"id", "symbol", "module", "stackDepth"}
    if not needed <= set(chains.c.keys()) or not {"id", "start"} <= set(samples.c.keys()):
        return Frame.empty(frames.CPU_SAMPLES, wanted)
    query = (
        sa.select(
            number(samples, "time_ns", column("start"), 0),
            number(samples, "pid", process_of("globalTid"), 0),
            number(samples, "tid", thread_of("globalTid"), 0),
            number(chains, "name", column("symbol"), 0),
            number(chains, "module", column("module"), 0),
        )
        .select_from(samples.join(chains, samples.c.id == chains.c.id))
        .where(chains.c.stackDepth == 0)
    )
    raw = Frame(export.file.arrays(query))
    every = {
        **raw,
        "name": export.strings.labels(raw.ints("name")),
        "module": export.strings.labels(raw.ints("module")),
    }
    return Frame({name: every[name] for name in wanted})
