"""What of a device's capture repeats, and what lies before it, as facts that checks can use."""

from __future__ import annotations

from collections.abc import Sequence

from nsightpy.analysis.findings.facts import LEAST_SHARE, Repetition
from nsightpy.analysis.idle.host_calls import MODULE, kinds_of_calls
from nsightpy.analysis.intervals import Spans, spans_of
from nsightpy.analysis.iterations.steady import SteadyState
from nsightpy.frames import Frame
from nsightpy.readers.extent import bounds_of
from nsightpy.units import format_time

# A first call that takes this long makes a context.
CONTEXT_NS = 10_000_000


def repetition_of(
    frames: Sequence[Frame],
    called: int | None,
    calls: Frame,
    steady: SteadyState | None,
    window: Spans,
) -> Repetition:
    """What is known of a device's iterations, and of what came before them.

    `frames` are its kernels, memory operations and graphs. `called` is when its process first
    called the API, `calls` are those of its calls that block or take long.
    """
    bounds = bounds_of(frames)
    if bounds is None:
        return Repetition()
    first, last = bounds
    lead = None if called is None else max(first - called, 0)
    begin = first if steady is None else int(steady.window.starts[0])
    loading, call = _loading(calls, called, begin)
    return Repetition(
        None if steady is None else steady.count,
        outside="" if steady is None else _outside(frames, window),
        lead_ns=lead,
        loading_ns=loading,
        loading_call=call,
        first_ns=first,
        whole_ns=last - first,
    )


def _loading(calls: Frame, called: int | None, before: int) -> tuple[int, str]:
    """How long before a moment code was first loaded or the context made, and by which call.

    The first call of a process makes the context, whatever it is.
    """
    start, lasted = calls.ints("start_ns"), calls.ints("end_ns") - calls.ints("start_ns")
    makes_context = (start == called) & (lasted >= CONTEXT_NS)
    loads = calls.take(makes_context | (kinds_of_calls(calls.labels("name")) == MODULE)).ordered()
    if not loads.rows or loads.ints("start_ns")[0] >= before:
        return 0, ""
    return before - int(loads.ints("start_ns")[0]), loads.labels("name")[0]


def _outside(frames: Sequence[Frame], window: Spans) -> str:
    """What a device did before its steady state, for people; empty where that is little."""
    if not len(window):
        return ""
    before = int(window.starts[0])

    early = [frame.take(frame.ints("start_ns") < before) for frame in frames[:2]]
    kernels, copies = (spans_of(frame).total for frame in early)
    parts = [
        f"{format_time(length)} of {what}"
        for length, what in ((copies, "one-off copies"), (kernels, "kernels"))
        if length > LEAST_SHARE * window.total
    ]
    return f"before it: {' and '.join(parts)}" if parts else ""
