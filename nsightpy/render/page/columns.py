"""The columns of a table as people read them on a page: a heading with its unit, and cells.

A column of times has one unit; where it spans too much for that, each cell has its own. Sizes have
one per cell. What is absent is an empty cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nsightpy.render.plots.drawing import distinct_names
from nsightpy.render.text.shortening import shorten
from nsightpy.results import Field, Table, Value
from nsightpy.results.page import PageTable
from nsightpy.units import format_bytes, format_time, significant, time_unit_for

WIDEST_NAME = 64
WIDEST_TEXT = 90
# Times beyond these, in their column's unit, cannot be read.
LEAST_SHOWN = 0.001
MOST_SHOWN = 100_000
LEAST_PERCENT = 0.05
NAMES = ("name", "Name", "kernel", "operator", "range", "allocated_by", "before", "after", "module")
_PLAIN_RATIOS = ("max_over_mean", "duration_ratio")
# Headings in people's words; the others are the column's name with spaces.
_WORDS = {
    "Time (%)": "time",
    "Total Time (ns)": "total",
    "Avg (ns)": "mean",
    "Med (ns)": "median",
    "Min (ns)": "min",
    "Max (ns)": "max",
    "StdDev (ns)": "std dev",
    "Num Calls": "calls",
    "Total (MB)": "size",
    "Avg (MB)": "mean size",
    "Med (MB)": "median size",
    "Min (MB)": "min size",
    "Max (MB)": "max size",
    "StdDev (MB)": "std dev of size",
    "algbw_gb_per_s": "algorithm bandwidth",
    "busbw_gb_per_s": "bus bandwidth",
    "throughput_gb_per_s": "throughput",
    "duration_med_ns": "median",
    "transfer_med_ns": "transfer",
    "jitter_med_ns": "wait beyond it",
    "arrived_last_share": "arrived last",
    "last_share": "last",
    "last_rank": "last rank",
    "mfu": "MFU",
    "roof_fraction": "of roof",
    "share": "of step",
    "ceiling_share": "to gain at most",
    "share_of_busy": "of busy time",
    "share_of_window": "of window",
    "idle_share": "idle",
    "empty_share": "empty",
    "max_over_mean": "max / mean",
    "duration_ratio": "ncu / nsys",
    "exposed_communication_share": "comm. alone",
    "copy_only_share": "copies alone",
    "sol_compute_pct": "compute",
    "sol_memory_pct": "memory",
    "flops_per_s": "work",
    "api_med_ns": "API call",
    "queue_med_ns": "in queue",
    "kernel_med_ns": "kernel",
    "total_med_ns": "median",
    "total_range_ns": "on host",
    "total_projected_ns": "on GPU",
    "gpu_ops": "operations",
    "nsys_med_ns": "nsys median",
    "at_peak_bytes": "at peak",
    "host_self_ns": "host, own",
    "host_total_ns": "host",
    "device_self_ns": "device, own",
    "device_total_ns": "device",
    "drift_ppm": "drift (ppm)",
    "tokens_per_s": "tokens/s",
    "share_of_device_time": "of device time",
    "launch_med_ns": "launch",
    "replay_med_ns": "replay",
    "busy_med_ns": "busy",
    "gap_med_ns": "gap",
    "chain_med_ns": "chain",
}


@dataclass(frozen=True)
class Cell:
    """A shown value; `full` says that the text is longer, `bar` is a share in per cent."""

    text: str
    full: bool = False
    bar: float | None = None


@dataclass(frozen=True)
class Column:
    """A column; `more` is one that is shown on demand."""

    field: Field
    heading: str
    cells: Sequence[Cell]
    more: bool = False

    @property
    def kind(self) -> str:
        """How it is set: name, text or number."""
        if self.field.name in NAMES:
            return "name"
        return "text" if self.field.unit in ("text", "bool") else "number"


def columns_of(shown: PageTable) -> list[Column]:
    """The columns of a table of the page, the main ones first."""
    table = shown.table
    main = [name for name in shown.main if name in table.columns] or list(table.columns)
    rest = [name for name in table.columns if name not in main]
    fields = {field.name: field for field in table.fields}
    return [_column(fields[name], table, more=name in rest) for name in (*main, *rest)]


def _column(field: Field, table: Table, *, more: bool) -> Column:
    values = table.column(field.name)
    words = _WORDS.get(field.name) or _spoken(field.name)
    if field.name in NAMES:
        return Column(field, words, _names(values), more)
    if field.unit in ("text", "bool"):
        return Column(field, words, [_text(value, field) for value in values], more)
    unit, cells = _figures(values, field)
    if field.unit == "bytes":
        words = words.removesuffix(" bytes")
    if field.unit in ("ratio", "share") and unit:
        words = words.removesuffix(" share")
    return Column(field, f"{words} ({unit})" if unit else words, cells, more)


def _spoken(name: str) -> str:
    text = name.removesuffix("_ns").replace("_", " ")
    return f"{text[:1].lower()}{text[1:]}"


def _names(values: Sequence[Value]) -> list[Cell]:
    known = [str(value) for value in values if value is not None]
    short = iter(distinct_names(known, WIDEST_NAME))
    cells = []
    for value in values:
        text = "" if value is None else next(short)
        cells.append(Cell(text, full=value is not None and text != value))
    return cells


def _text(value: Value, field: Field) -> Cell:
    if value is None:
        return Cell("")
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    whole = str(value)
    text = Path(whole).name if field.name == "report" else shorten(whole, WIDEST_TEXT)
    return Cell(text, full=text != whole)


def _figures(values: Sequence[Value], field: Field) -> tuple[str, list[Cell]]:
    """The unit of a column's heading, empty where each cell has its own or none; and the cells."""
    numbers = [v for v in values if isinstance(v, int | float)]
    if field.unit == "ns":
        return _times(values, numbers)
    if field.unit == "bytes":
        return "", [Cell(format_bytes(v) if isinstance(v, int | float) else "") for v in values]
    if field.unit in ("flops", "flops/s", "bytes/s"):
        return _rates(values, numbers, field.unit)
    if field.unit in ("ratio", "share") and field.name not in _PLAIN_RATIOS:
        return "%", [_percent(value, 100.0) for value in values]
    if field.unit == "%":
        return "%", [_percent(value, 1.0) for value in values]
    unit = field.unit if field.unit in ("GB/s", "MB", "ppm") else ""
    if field.unit == "flops/byte":
        unit = "FLOP/B"
    return "" if field.unit == "ppm" else unit, [_plain(value, field) for value in values]


def _times(values: Sequence[Value], numbers: Sequence[float]) -> tuple[str, list[Cell]]:
    sizes = sorted(abs(v) for v in numbers if v)
    if not sizes:
        return "", [Cell("" if value is None else "0") for value in values]
    unit, scale = time_unit_for([sizes[len(sizes) // 2]])
    if sizes[0] < LEAST_SHOWN * scale or sizes[-1] >= MOST_SHOWN * scale:
        return "", [Cell(format_time(v) if isinstance(v, int | float) else "") for v in values]
    return unit, [Cell(_scaled(v / scale) if isinstance(v, int | float) else "") for v in values]


def _rates(values: Sequence[Value], numbers: Sequence[float], unit: str) -> tuple[str, list[Cell]]:
    largest = max((abs(v) for v in numbers), default=0)
    prefix, scale = ("T", 1e12) if largest >= 1e11 else ("G", 1e9)
    shown = f"{prefix}{unit.replace('flops', 'FLOP').replace('bytes', 'B')}"
    return shown, [Cell(_scaled(v / scale) if isinstance(v, int | float) else "") for v in values]


def _percent(value: Value, scale: float) -> Cell:
    if not isinstance(value, int | float):
        return Cell("")
    share = scale * value
    text = "<0.1" if 0 < share < LEAST_PERCENT else f"{share:.1f}"
    return Cell(text, bar=min(max(share, 0.0), 100.0))


def _plain(value: Value, field: Field) -> Cell:
    if value is None:
        return Cell("")
    if field.unit == "id" or isinstance(value, str):
        return Cell(str(value))
    return Cell(f"{value:,}" if isinstance(value, int) else _scaled(value))


def _scaled(value: float) -> str:
    """At least three digits, thousands separated: 1,234.5, 12.3, 0.0123."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return significant(value)
