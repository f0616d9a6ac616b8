"""Rankings as `nsys stats` prints them: time per kernel, API function or memory operation.

Formulas (cuda_gpu_kern_sum, cuda_api_sum, cuda_gpu_mem_time_sum, cuda_gpu_mem_size_sum of the
Nsight Systems User Guide): Time (%) is a share of the listed rows' total, never of wall time;
Med is the mean of the two middle values of an even count; StdDev is the sample deviation, 0 for
one instance; rows by total, largest first, then by name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.tally import Statistics, Tally, tally
from nsightpy.frames import Frame, Ints, Labels
from nsightpy.results import Field, Table, Value
from nsightpy.units import round_half_up

TIME_FIELDS = (
    Field("Time (%)", "%", 1),
    Field("Total Time (ns)", "ns"),
    Field("Instances"),
    Field("Avg (ns)", "ns", 1),
    Field("Med (ns)", "ns", 1),
    Field("Min (ns)", "ns"),
    Field("Max (ns)", "ns"),
    Field("StdDev (ns)", "ns", 1),
)
SIZE_FIELDS = tuple(
    Field(f"{name} (MB)", "MB", 3) for name in ("Total", "Avg", "Med", "Min", "Max", "StdDev")
)
THROUGHPUT = Field("throughput_gb_per_s", "GB/s", 3)
MEGA = 1e6
BACKTRACE_CLASSES = (0, 1, 13)
SPLITS = ("rank", "device", "process", "stream", "grid", "block")


def durations(frame: Frame) -> Ints:
    """End minus start of each row, in ns."""
    return frame.ints("end_ns") - frame.ints("start_ns")


def tally_durations(frame: Frame, by: Sequence[str]) -> Tally:
    """Durations (ns) per group of the columns in `by`."""
    groups = group_by(frame, by)
    return tally(groups.codes, durations(frame), groups.keys)


def tally_bytes(frame: Frame, by: Sequence[str]) -> Tally:
    """Sizes (bytes) per group of the columns in `by`, of those that are known."""
    frame = frame.take(frame.ints("bytes") >= 0)
    groups = group_by(frame, by)
    return tally(groups.codes, frame.ints("bytes"), groups.keys)


def shaped(frame: Frame, shape: str) -> Labels:
    """The grid or block of each kernel as a label, 128x1x1; "" where a size is missing."""
    groups = group_by(frame, [f"{shape}_{axis}" for axis in "xyz"])
    names = ("x".join(map(str, key)) if all(key) else "" for key in groups.keys)
    return Labels(groups.codes, tuple(names)).merged()


def calls(frame: Frame) -> Frame:
    """The API calls proper: rows that only carry a call's backtrace are dropped."""
    classes = frame.ints("event_class")
    keep = np.isin(classes, BACKTRACE_CLASSES)
    return frame if keep.all() else frame.take(keep)


def rank_by_time(
    command: str,
    statistics: Statistics,
    splits: Sequence[Field],
    *,
    count: str = "Instances",
) -> Table:
    """The ranking of groups whose keys are (split values..., name)."""
    fields = (*splits, *time_fields(count))
    whole = int(statistics.total.sum())
    rows = []
    for group in _order(statistics):
        *split, label = statistics.keys[group]
        rows.append((*split, *time_values(statistics, group, whole), label))
    return Table(command, fields, tuple(rows))


def rank_memory(time: Statistics, sizes: Statistics, splits: Sequence[Field] = ()) -> Table:
    """The ranking of memory operations: their times, then their sizes and throughput."""
    fields = (*splits, *memory_fields())
    place = {key: group for group, key in enumerate(sizes.keys)}
    whole = int(time.total.sum())
    rows = []
    for group in _order(time):
        key = time.keys[group]
        *split, label = key
        figures = time_values(time, group, whole)
        size = _size_values(sizes, place.get(key), time, group)
        rows.append((*split, *figures, label, *size))
    return Table("memory", fields, tuple(rows))


def time_values(statistics: Statistics, group: int, whole: int) -> tuple[Value, ...]:
    """The eight figures of one group, rounded as nsys rounds them."""
    total = int(statistics.total[group])
    return (
        round_half_up(100.0 * total / whole, 1) if whole else 0.0,
        total,
        int(statistics.instances[group]),
        *spread(statistics, group),
    )


def spread(statistics: Statistics, group: int) -> tuple[Value, ...]:
    """Mean, median, extremes and deviation of one group, rounded as nsys rounds them."""
    return (
        round_half_up(float(statistics.mean[group]), 1),
        round_half_up(float(statistics.median[group]), 1),
        int(statistics.minimum[group]),
        int(statistics.maximum[group]),
        round_half_up(float(statistics.deviation[group]), 1),
    )


def _size_values(
    sizes: Statistics, group: int | None, time: Statistics, of_time: int
) -> tuple[Value, ...]:
    """The figures of one group's sizes, and its throughput; None where a size is not known."""
    if group is None or sizes.instances[group] < time.instances[of_time]:
        return (None,) * (len(SIZE_FIELDS) + 1)
    total_ns = int(time.total[of_time])
    throughput = round(int(sizes.total[group]) / total_ns, 3) if total_ns else None
    figures: tuple[NDArray[np.generic], ...] = (
        sizes.total,
        sizes.mean,
        sizes.median,
        sizes.minimum,
        sizes.maximum,
        sizes.deviation,
    )
    shown = (round_half_up(float(figure[group]) / MEGA, 3) for figure in figures)
    return (*shown, throughput)


def _order(statistics: Statistics) -> list[int]:
    """Groups by total, largest first, then by name, then by the split columns."""
    totals = statistics.total.tolist()

    def place(group: int) -> tuple[object, ...]:
        *split, label = statistics.keys[group]
        return (-totals[group], label, tuple((value is not None, value) for value in split))

    return sorted(range(len(statistics.keys)), key=place)


def time_fields(count: str = "Instances", name: str = "Name") -> tuple[Field, ...]:
    """The columns of a ranking by time, but for splits."""
    renamed = (Field(count) if field.name == "Instances" else field for field in TIME_FIELDS)
    return (*renamed, Field(name, "text"))


def memory_fields() -> tuple[Field, ...]:
    """The columns of the ranking of memory operations, but for splits."""
    return (*time_fields("Count", "Operation"), *SIZE_FIELDS, THROUGHPUT)
