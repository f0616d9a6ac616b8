"""How much a report may ask of this machine, and the variables that say otherwise: docs/limits.md.

The time of a query grows with the file, so that no whole report of any size meets it, and is that
of the processor, so that a busy machine or a slow disk ends none. The other limits are far beyond
what programs do.
"""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nsightpy.errors import ReportError, UsageError, memory_left
from nsightpy.frames import Frame, Ints, distinct_pairs
from nsightpy.readers.tools.signals import interruption
from nsightpy.units import parse_size

T = TypeVar("T")

QUERY_SECONDS = "NSIGHTPY_QUERY_SECONDS"
ROWS = "NSIGHTPY_MOST_ROWS"
DEVICES = "NSIGHTPY_MOST_DEVICES"
STREAMS = "NSIGHTPY_MOST_STREAMS"
NAMES = "NSIGHTPY_MOST_NAMES"
MEMORY = "NSIGHTPY_MOST_MEMORY"

LEAST_SECONDS = 10.0
BYTES_PER_SECOND = 2_000_000
# SQLite asks this often (in steps of its machine) whether to go on.
STEPS_BETWEEN = 50_000
NO_TIME = -(2**63)
# What is further away is no time: 73 years in ns, so that differences fit int64 (and no size).
GREATEST_TIME = 2**61
# Lengths and sizes of one table add up to less, so that sums of many reports fit int64.
GREATEST_SUM = 2**58
# What is counted per report: devices of processes, their streams, names in one column.
MOST = {DEVICES: 1_000, STREAMS: 50_000, NAMES: 2_000_000}
_WORDS = {DEVICES: "devices of processes", STREAMS: "streams", NAMES: "names in one column"}


def query_seconds(file_bytes: int) -> float:
    """Processor seconds that one query of a file may take. Raises UsageError for a bad variable."""

    def read(text: str) -> float | None:
        with suppress(ValueError):
            return seconds if 0 < (seconds := float(text)) < 1e9 else None
        return None

    usual = LEAST_SECONDS + file_bytes / BYTES_PER_SECOND
    return _limit(QUERY_SECONDS, read, "seconds, such as 300") or usual


def _limit(variable: str, read: Callable[[str], T | None], wanted: str) -> T | None:
    """What a variable says; None where it is not set. Raises UsageError where it is no limit."""
    text = os.environ.get(variable, "")
    limit = read(text) if text else None
    if text and not limit:
        raise UsageError(f"{variable} is {text[:40]!r}: give {wanted}")
    return limit


def most(variable: str, otherwise: int) -> int:
    """A limit that counts: what its variable says. Raises UsageError where that is no number."""

    def read(text: str) -> int | None:
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else None

    return _limit(variable, read, "a whole number above 0") or otherwise


def check_count(path: object, variable: str, count: int) -> None:
    """Raise ReportError where a report has more of something than there may be."""
    limit = most(variable, MOST[variable])
    if count > limit:
        problem = f"has {count:,} {_WORDS[variable]}, and {limit:,} are the most that is looked at"
        advice = f"{variable}={count} takes them all; it may need much time and memory."
        raise ReportError(path, problem, advice)


CHECKED = ("start_ns", "end_ns", "bytes")


def countable_rows(frame: Frame) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """The rows with a time and a size that can be, and how many lack what."""
    kept = np.ones(frame.rows, dtype=np.bool_)
    lacks: dict[str, int] = {}

    def leave_out(rows: NDArray[np.bool_], lack: str) -> None:
        if lost := int(np.count_nonzero(kept & rows)):
            lacks[lack] = lost
            kept[rows] = False

    def leave_out_beyond(lengths: Ints, lack: str) -> None:
        """Where all together are beyond GREATEST_SUM, those of more than their share of it."""
        left = np.where(kept, lengths, 0)
        if float(left.sum(dtype=np.float64)) > GREATEST_SUM:
            leave_out(left > GREATEST_SUM // len(left), lack)

    given = {name: frame.ints(name) for name in CHECKED if name in frame}
    for name, values in given.items():
        quantity = name.removesuffix("_ns")
        leave_out(values == NO_TIME, f"no {quantity}")
        leave_out((values < -GREATEST_TIME) | (values > GREATEST_TIME), f"no possible {quantity}")
    if {"start_ns", "end_ns"} <= given.keys():
        leave_out(given["end_ns"] < given["start_ns"], "an end before their start")
        leave_out_beyond(given["end_ns"] - given["start_ns"], "no possible length")
    if "bytes" in given:
        leave_out(given["bytes"] < 0, "a size below 0")
        leave_out_beyond(given["bytes"], "no possible size")
    return kept, lacks


def clock_reading(value: int | None) -> int | None:
    """What a clock says in ns; None where it says none, or what no clock does."""
    return None if value is None or abs(value) > GREATEST_TIME else value


def check_places(path: object, frame: Frame) -> None:
    """Raise ReportError where GPU work is of more devices or streams than there may be."""
    if not {"pid", "device"} <= set(frame):
        return
    names = [name for name in ("pid", "device", "stream") if name in frame]
    # there cannot be more different numbers than from the least to the greatest
    columns = [frame.ints(name) for name in names if frame.rows]
    bounds = [int(values.max()) - int(values.min()) + 1 for values in columns]
    few_devices = prod(bounds[:2]) <= most(DEVICES, MOST[DEVICES])
    if few_devices and prod(bounds) <= most(STREAMS, MOST[STREAMS]):
        return  # there cannot be too many: nothing need be counted
    devices, codes = distinct_pairs(frame.ints("pid"), frame.ints("device"))
    check_count(path, DEVICES, len(devices))
    if "stream" in frame:
        streams, _ = distinct_pairs(codes.astype(np.int64), frame.ints("stream"))
        check_count(path, STREAMS, len(streams))


def most_memory() -> int | None:
    """Bytes that this process may take: NSIGHTPY_MOST_MEMORY (`8G`, powers of 1024); None: any."""
    return _limit(MEMORY, parse_size, "a size such as 8G or 800M")


def limit_memory() -> None:
    """Hold this process and those that it starts to NSIGHTPY_MOST_MEMORY, where the system can."""
    size = most_memory()
    if size is None:
        return
    try:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        allowed = size if hard == resource.RLIM_INFINITY else min(size, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))
    except (ImportError, AttributeError, ValueError, OSError):
        return


def threads_in_memory(path: object, most_threads: int, once: int, each: int) -> int:
    """How many threads the limits of this process have memory for (bytes once, and of each).

    Raises ReportError where it is too little for one: some libraries end the process then.
    """
    left = memory_left()
    if left is None:
        return most_threads
    if left < once + each:
        problem = f"needs {(once + each) / 2**20:,.0f} MiB of memory to be read, and limits "
        problem += f"(`ulimit -v`, `ulimit -d`, {MEMORY}) leave {max(left, 0) / 2**20:,.0f} MiB"
        raise ReportError(path, problem, "allow more, or use fewer --jobs.")
    return min(most_threads, (left - once) // each)


class QueryWatch:
    """Ends a query that takes too long, or that the user interrupts.

    SQLite calls it while a query runs; Python handles signals then, which it cannot inside of
    SQLite.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.begin()

    def begin(self) -> None:
        """A query begins now."""
        self._end = time.thread_time() + self._seconds
        self.interruption: BaseException | None = None
        self.exceeded = False

    def __call__(self) -> int:
        """1 ends the query."""
        try:
            self.exceeded |= time.thread_time() > self._end
            return int(self.exceeded)
        except BaseException as error:  # noqa: BLE001 - raised again once SQLite has returned
            self.interruption = error
            return 1

    @property
    def was_interrupted(self) -> BaseException:
        """What to raise for a query that ended without reaching a limit.

        Python handles a signal at the very start of a call, where `__call__` cannot catch it yet.
        """
        main = threading.current_thread() is threading.main_thread()
        return self.interruption or (interruption() if main else SystemExit(1))


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
