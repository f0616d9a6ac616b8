"""Where and when the GPU work of a report was."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nsightpy.frames import Frame, distinct_pairs


@dataclass(frozen=True, slots=True)
class Extent:
    """Where and when a report's GPU work was: pairs (pid, device), ns, number of kernels."""

    places: tuple[tuple[int, int], ...]
    start_ns: int | None
    end_ns: int | None
    kernels: int


def extent_of_frames(kernels: int, frames: Iterable[Frame]) -> Extent:
    """The extent of frames that are loaded anyway (columns pid, device, start_ns, end_ns)."""
    filled = [frame for frame in frames if frame.rows]
    places = {
        device
        for frame in filled
        for device in distinct_pairs(frame.ints("pid"), frame.ints("device"))[0]
    }
    first, last = bounds_of(filled) or (None, None)
    return Extent(tuple(sorted(places)), first, last, kernels)


def bounds_of(frames: Iterable[Frame]) -> tuple[int, int] | None:
    """The first start and the last end of all rows of frames, in ns; None where there are none."""
    filled = [frame for frame in frames if frame.rows]
    if not filled:
        return None
    return (
        min(int(frame.ints("start_ns").min()) for frame in filled),
        max(int(frame.ints("end_ns").max()) for frame in filled),
    )
