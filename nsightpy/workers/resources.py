"""The processors that this process may use, and how many workers they and memory allow."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

from nsightpy.readers.limits import available_memory
from nsightpy.workers.outcomes import Report

# Below this much memory for what is to be read, workers save less than they take to import (0.5 s).
PAYS_BYTES = 400_000_000
WORKER_BYTES = 200_000_000


def default_jobs(reports: Sequence[Report]) -> int:
    """How many workers pay: the processors this process may use, as far as memory reaches.

    One where there is one report, or so little to read that starting workers costs more.
    """
    sizes = [report.reading_bytes for report in reports]
    if len(sizes) < 2 or sum(sizes) < PAYS_BYTES:
        return 1
    largest = max(sizes) + WORKER_BYTES
    fitting = max(1, (available_memory() or largest * len(sizes)) // largest)
    return min(processors(), fitting, len(sizes))


def processors() -> int:
    """The processors that this process may use: its affinity, and its cgroup's quota."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    quota = _numbers("/sys/fs/cgroup/cpu.max")
    if len(quota) == 2 and quota[1]:
        allowed = min(allowed, max(1, math.ceil(quota[0] / quota[1])))
    return allowed


def _numbers(path: str) -> list[int]:
    """The numbers in a small file of the system; none where it says "max" or is not there."""
    try:
        return [int(word) for word in Path(path).read_text(encoding="ascii").split()]
    except (OSError, ValueError):
        return []
