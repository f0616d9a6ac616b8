"""Tiny kernels: how many of a device's kernels run for a few microseconds, and what they cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.findings.facts import TinyKernels
from nsightpy.analysis.intervals import Spans, union
from nsightpy.frames import Frame

TINY_NS = 5_000
LEAST_KERNELS = 100


def is_tiny(kernels: Frame, communicates: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mask of the compute kernels that run for less than 5 us."""
    tiny: NDArray[np.bool_] = kernels.ints("end_ns") - kernels.ints("start_ns") < TINY_NS
    return tiny & ~communicates


def tiny_kernels(
    kernels: Frame, tiny: NDArray[np.bool_], others: Spans, latency: Spans, window: Spans
) -> TinyKernels | None:
    """What the tiny kernels of one device cost inside a window; None without any.

    `others` is the time of its memory operations, `latency` the launch latency before tiny kernels
    in which the device did nothing.
    """
    start, end = kernels.ints("start_ns"), kernels.ints("end_ns")
    inside = (start < window.ends[-1]) & (end > window.starts[0]) if len(window) else tiny & False
    mine = tiny & inside
    if not mine.any():
        return None
    rest = union(start[~tiny], end[~tiny]) | others
    alone = union(start[mine], end[mine]) - rest
    lost = (alone | latency) & window
    return TinyKernels(int(np.count_nonzero(mine)), int(np.count_nonzero(inside)), lost.total)
