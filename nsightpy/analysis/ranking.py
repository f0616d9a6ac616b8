"""Rankings as `nsys stats` prints them: time per kernel, API function or memory operation.

Formulas (cuda_gpu_kern_sum, cuda_api_sum, cuda_gpu_mem_time_sum, cuda_gpu_mem_size_sum of the
Nsight Systems User Guide): Time (%) is a share of the listed rows' total, never of wall time;
Med is the mean of the two middle values of an even count; StdDev is the sample deviation, 0 for
one instance; rows by total, largest first, then by name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from nsightpy.analysis.grouping import group_by, named_by
from nsightpy.analysis.tally import Key, Statistics, Tally, tally
from nsightpy.frames import Frame, Ints, Labels
from nsightpy.results import Field, Table, Value
from nsightpy.units import round_half_up

MEGA = 1e6
# The figures of nsys, and what they are of Statistics.
_SPREAD = {
    "Avg": "mean",
    "Med": "median",
    "Min": "minimum",
    "Max": "maximum",
    "StdDev": "deviation",
}
# Columns of nsys without a unit that do not count, by what they hold.
_KINDS = {
    "name": "Name, Kernel Name, Range, Operation",
    "id": "CorrId, CorrID, Result, Pid, Tid, PID, TID, T-Pri, DevId, Ctx, GreenCtx, Strm, Lvl, "
    "RangeId, ParentId, Tag, Rank, PeerRank, RootRank",
    "text": "SrcMemKd, DstMemKd, Device, Thread Name, Style, RangeStack, NameTree, API Name, "
    "API Function, GridXYZ, BlockXYZ, NVTX Range, Category, Event Type, Event, Source, GUID, "
    "Virtual Address, Minimum Virtual Address, Maximum Virtual Address, CPU Instruction Address",
}
_KIND_OF = {label: kind for kind, labels in _KINDS.items() for label in labels.split(", ")}
# Their headings and importance.
_SHOWN = {
    **dict.fromkeys(("Name", "Operation", "Kernel Name", "NVTX Range", "Range"), ("", 1)),
    **dict.fromkeys(("Instances", "Num Calls", "Count"), ("count", 4)),
    **dict.fromkeys(("Device", "Kern Inst"), ("", 4)),
    **dict.fromkeys(("Strm", *(f"{phase}Med (ns)" for phase in "TAQK")), ("", 5)),
    "Start (ns)": ("", 2),
    "Duration (ns)": ("", 3),
    "RangeStack": ("", 7),
    "Time (%)": ("time %", 2),
    "Total Time (ns)": ("total", 3),
    "Total (MB)": ("size", 5),
    "Med (MB)": ("median size", 9),
    "Avg (MB)": ("avg size", 0),
    "Min (MB)": ("min size", 0),
    "Max (MB)": ("max size", 0),
    "StdDev (MB)": ("size std dev", 0),
    "Med (ns)": ("median", 21),
    "Max (ns)": ("", 22),
    "Avg (ns)": ("", 23),
    "Min (ns)": ("", 24),
    "StdDev (ns)": ("std dev", 25),
}


def nsys_field(label: str) -> Field:
    """A column under NVIDIA's name for it, which says what it holds."""
    unit = label.partition(" (")[2].removesuffix(")")
    kind = {"ns": "time", "B": "bytes"}.get(unit, unit) or _KIND_OF.get(label, "count")
    if "Start (" in label or label == "End (ns)":
        kind = "moment"
    decimals = 3 if unit in ("MB", "MB/s") else None
    if unit == "%" or (decimals is None and any(mean in label for mean in ("Avg", "Med", "Std"))):
        decimals = 1
    heading, importance = _SHOWN.get(label, ("", 0))
    place = -1 if label == "Operation" else 0
    return Field(label, kind, decimals, heading=heading, importance=importance, place=place)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Groups in the order of their rows, and statistics of all that was measured of them.

    `names`: of a key's parts.
    """

    names: tuple[str, ...]
    keys: Sequence[Key]
    measures: Mapping[str, Statistics]

    def values(self, source: str) -> list[Any]:
        """A part of the key, or a figure, row by row; None where nothing is known of it.

        A figure is one of Statistics: of durations, or of a measure, as "total of bytes".
        """
        if source in self.names:
            place = self.names.index(source)
            return [key[place] for key in self.keys]
        name, _, of = source.partition(" of ")
        statistics = self.measures[of or "duration"]
        missing = 0 if name == "instances" else None
        figures = dict(zip(statistics.keys, getattr(statistics, name).tolist(), strict=True))
        return [figures.get(key, missing) for key in self.keys]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a ranking, and its values row by row."""

    field: Field
    values: Callable[[Ranking], Sequence[Value]]


Made: TypeAlias = Callable[[Ranking], Sequence[Value]]


def columns(shown: str, made: Mapping[str, Made] | None = None) -> tuple[Column, ...]:
    """Columns from LABEL=SOURCE, ...: NVIDIA's names, and what `Ranking.values` are shown there.

    Figures are rounded as nsys rounds them; columns that are `made` otherwise have no source.
    """

    def column(label: str, _: str, source: str) -> Column:
        field = nsys_field(label)
        return Column(field, (made or {}).get(label) or partial(_rounded, field, source))

    return tuple(column(*text.partition("=")) for text in shown.split(", "))


def _rounded(field: Field, source: str, ranking: Ranking) -> list[Value]:
    values, decimals = ranking.values(source), field.decimals
    if decimals is None:
        return [int(value) if isinstance(value, float) else value for value in values]
    scale = MEGA if field.kind == "MB" else 1.0
    return [None if value is None else round_half_up(value / scale, decimals) for value in values]


def spread(prefix: str = "", unit: str = "ns", of: str = "duration") -> str:
    """Mean, median, extremes and deviation under the names that nsys gives them."""
    return ", ".join(f"{prefix}{word} ({unit})={name} of {of}" for word, name in _SPREAD.items())


def times(count: str = "Instances") -> str:
    """The eight figures of a ranking by time; `count` is what nsys calls the number of rows."""
    return f"Time (%)=share, Total Time (ns)=total, {count}=instances, {spread()}"


KERNELS = columns(f"{times()}, Name=name")
_THROUGHPUT = Field("throughput_gb_per_s", "GB/s", 3, heading="GB/s", importance=6)


def _where_known(column: Column) -> Column:
    """The column without values of groups of which not all sizes are known."""

    def values(ranking: Ranking) -> list[Value]:
        sized, every = ranking.values("instances of bytes"), ranking.values("instances")
        rows = zip(column.values(ranking), sized, every, strict=True)
        return [value if of == count else None for value, of, count in rows]

    return Column(column.field, values)


def _throughput(ranking: Ranking) -> list[Value]:
    totals = zip(ranking.values("total of bytes"), ranking.values("total"), strict=True)
    return [round(size / ns, 3) if ns and size is not None else None for size, ns in totals]


_SIZES = columns(f"Total (MB)=total of bytes, {spread(unit='MB', of='bytes')}")
MEMORY = (
    *columns(f"{times('Count')}, Operation=name"),
    *map(_where_known, (*_SIZES, Column(_THROUGHPUT, _throughput))),
)


def fields_of(columns: Sequence[Column]) -> tuple[Field, ...]:
    """The fields of columns."""
    return tuple(column.field for column in columns)


def ranked(
    command: str,
    columns: Sequence[Column],
    measures: Mapping[str, Statistics],
    names: tuple[str, ...] = ("name",),
    splits: Sequence[Field] = (),
) -> Table:
    """Groups by total of the first measure, largest first, then by key, then by its splits.

    `names`: of a key's parts, behind those of the splits.
    """
    first = next(iter(measures.values()))
    totals = dict(zip(first.keys, first.total.tolist(), strict=True))

    def order(key: Key) -> tuple[object, ...]:
        split = tuple((value is not None, value) for value in key[: len(splits)])
        return (-totals[key], key[len(splits) :], split)

    parts = (*(field.name for field in splits), *names)
    ranking = Ranking(parts, sorted(totals, key=order), measures)
    values = [
        *(ranking.values(field.name) for field in splits),
        *(column.values(ranking) for column in columns),
    ]
    return Table(command, (*splits, *fields_of(columns)), tuple(zip(*values, strict=True)))


def durations(frame: Frame) -> Ints:
    """End minus start of each row, in ns."""
    return frame.ints("end_ns") - frame.ints("start_ns")


def tally_durations(frame: Frame, by: Sequence[str]) -> Tally:
    """Durations (ns) per group of the columns in `by`."""
    return tallies(frame, by, ("duration",))[0]


def tallies(frame: Frame, by: Sequence[str], measures: Sequence[str]) -> list[Tally]:
    """Durations, or columns of numbers from 0 on where they are known, per group."""
    groups = group_by(frame, by)
    measured = []
    for measure in measures:
        values = durations(frame) if measure == "duration" else frame.ints(measure)
        known = (values >= 0) | (measure == "duration")
        measured.append(tally(groups.codes[known], values[known], groups.keys))
    return measured


def shaped(frame: Frame, shape: str) -> Labels:
    """The grid or block of each kernel as a label, 128x1x1; "" where a size is missing."""

    def text(*sizes: int) -> str:
        return "x".join(map(str, sizes)) if all(sizes) else ""

    return named_by(frame, [f"{shape}_{axis}" for axis in "xyz"], text).merged()
