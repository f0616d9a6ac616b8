"""Where and when the GPU work of a report was."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nsightpy.frames import Frame, distinct_pairs


@dataclass(frozen=True, slots=True)
class Extent:
    """Where and when a report's GPU work was: (pid, device) places, ns, number of kernels."""

    places: tuple[tuple[int, int], ...]
    start_ns: int | None
    end_ns: int | None
    kernels: int


def extent_of_frames(kernels: int, frames: Iterable[Frame]) -> Extent:
    """The extent of frames that are loaded anyway (columns pid, device, start_ns, end_ns)."""
    filled = [frame for frame in frames if frame.rows]
    places = {
        place
        for frame in filled
        for place in distinct_pairs(frame.ints("pid"), frame.ints("device"))[0]
    }
    return Extent(
        tuple(sorted(places)),
        min((int(frame.ints("start_ns").min()) for frame in filled), default=None),
        max((int(frame.ints("end_ns").max()) for frame in filled), default=None),
        kernels,
    )
