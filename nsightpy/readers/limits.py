"""How much a report may ask of this machine: docs/limits.md.

The time of a query grows with the file, so that no whole report of any size meets it, and is that
of the processor, so that a busy machine or a slow disk ends none. The other limits are far beyond
what programs do.
"""

import os
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nsightpy.errors import ReportError, UsageError, memory_left
from nsightpy.frames import Frame, distinct_pairs

QUERY_SECONDS = "NSIGHTPY_QUERY_SECONDS"

LEAST_SECONDS = 10.0
BYTES_PER_SECOND = 2_000_000
# SQLite asks this often (in steps of its machine) whether to go on.
STEPS_BETWEEN = 50_000
NO_TIME = -(2**63)
# What is further away is no time: 73 years in ns, so that differences fit int64 (and no size).
GREATEST_TIME = 2**61
# Lengths and sizes of one table add up to less, so that sums of many reports fit int64.
GREATEST_SUM = 2**58
# What is counted per report.
MOST = {"devices of processes": 1_000, "streams": 50_000, "names in one column": 2_000_000}


def query_seconds(file_bytes: int) -> float:
    """Processor seconds that one query of a file may take. Raises UsageError for a bad variable."""
    text = os.environ.get(QUERY_SECONDS, "")
    if not text:
        return LEAST_SECONDS + file_bytes / BYTES_PER_SECOND
    with suppress(ValueError):
        if 0 < (seconds := float(text)) < 1e9:
            return seconds
    raise UsageError(f"{QUERY_SECONDS} is {text[:40]!r}: give seconds, such as 300")


def check_count(path: object, what: str, count: int) -> None:
    """Raise ReportError where a report has more of something than there may be."""
    if count > MOST[what]:
        problem = f"has {count:,} {what}, and {MOST[what]:,} are the most that is looked at"
        raise ReportError(path, problem, "it may be damaged: export it again.")


CHECKED = ("start_ns", "end_ns", "bytes")


def countable_rows(frame: Frame) -> NDArray[np.bool_]:
    """The rows with a time and a size that can be: a mask.

    Where lengths or sizes are more than GREATEST_SUM together, those of more than their share of it
    cannot be.
    """
    given = {name: frame.ints(name) for name in CHECKED if name in frame}
    kept = np.ones(frame.rows, dtype=np.bool_)
    for values in given.values():
        kept &= (values >= -GREATEST_TIME) & (values <= GREATEST_TIME)
    amounts = [given["bytes"]] if "bytes" in given else []
    if {"start_ns", "end_ns"} <= given.keys():
        amounts.insert(0, given["end_ns"] - given["start_ns"])
    for amount in amounts:
        kept &= amount >= 0
        left = np.where(kept, amount, 0)
        if float(left.sum(dtype=np.float64)) > GREATEST_SUM:
            kept &= left <= GREATEST_SUM // len(left)
    return kept


def clock_reading(value: int | None) -> int | None:
    """What a clock says in ns; None where it says none, or what no clock does."""
    return None if value is None or abs(value) > GREATEST_TIME else value


def check_places(path: object, frame: Frame) -> None:
    """Raise ReportError where GPU work is of more devices or streams than there may be."""
    if not {"pid", "device"} <= set(frame):
        return
    devices, codes = distinct_pairs(frame.ints("pid"), frame.ints("device"))
    check_count(path, "devices of processes", len(devices))
    if "stream" in frame:
        streams, _ = distinct_pairs(codes.astype(np.int64), frame.ints("stream"))
        check_count(path, "streams", len(streams))


def threads_in_memory(path: object, most_threads: int, once: int, each: int) -> int:
    """How many threads the limits of this process have memory for (bytes once, and of each).

    Raises ReportError where it is too little for one: some libraries end the process then.
    """
    left = memory_left()
    if left is None:
        return most_threads
    if left < once + each:
        problem = f"needs {(once + each) / 2**20:,.0f} MiB of memory to be read, and limits "
        problem += f"(`ulimit -v`, `ulimit -d`) leave {max(left, 0) / 2**20:,.0f} MiB"
        raise ReportError(path, problem, "allow more, or use fewer --jobs.")
    return min(most_threads, (left - once) // each)


_GROUP = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Free memory in bytes, as the machine and the control group allow; None where unknown."""
    sizes = [size for size in (_of_machine(), _of_group()) if size is not None]
    return min(sizes, default=None)


def _of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def _of_group() -> int | None:
    """What a batch system or a container leaves; its file caches count as free."""
    try:
        most = int((_GROUP / "memory.max").read_text(encoding="ascii"))
        used = int((_GROUP / "memory.current").read_text(encoding="ascii"))
        lines = (_GROUP / "memory.stat").read_text(encoding="ascii").splitlines()
        cached = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
    except (OSError, ValueError, IndexError):
        return None
    return max(0, most - used + cached)
