"""The columns of a table as people read them on a page: a heading with its unit, and cells.

A column of times has one unit; where it spans too much for that, each cell has its own. Sizes have
one per cell. What is absent is an empty cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nsightpy.output.headings import heading
from nsightpy.render.plots.drawing import distinct_names
from nsightpy.render.text.shortening import shorten
from nsightpy.results import Field, Table, Value
from nsightpy.results.page import PageTable
from nsightpy.units import format_bytes, format_time, significant, time_unit_for

WIDEST_NAME = 64
WIDEST_TEXT = 90
LONGEST_WORD = 24
# Times beyond these, in their column's unit, cannot be read.
LEAST_SHOWN = 0.001
MOST_SHOWN = 100_000
LEAST_PERCENT = 0.05
NAMES = ("name", "Name", "kernel", "operator", "range", "allocated_by", "before", "after", "module")
_PLAIN_RATIOS = ("max_over_mean", "duration_ratio", "ratio", "ratio_low", "ratio_high")
# What a heading of a terminal says of the unit, which stands in brackets here.
_SAID = (" %", " GB/s")


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
        """How it is set: name, text, word (a text that is not broken) or number."""
        if self.field.name in NAMES:
            return "name"
        if self.field.unit not in ("text", "bool"):
            return "number"
        return "word" if all(len(cell.text) <= LONGEST_WORD for cell in self.cells) else "text"


def columns_of(shown: PageTable) -> list[Column]:
    """The columns of a table of the page, the main ones first."""
    table = shown.table
    main = [name for name in shown.main if name in table.columns] or list(table.columns)
    rest = [name for name in table.columns if name not in main]
    fields = {field.name: field for field in table.fields}
    return [_column(fields[name], table, more=name in rest) for name in (*main, *rest)]


def _column(field: Field, table: Table, *, more: bool) -> Column:
    values = table.column(field.name)
    words = heading(table.command, field.name)
    if field.name in NAMES:
        return Column(field, words, _names(values), more)
    if field.unit in ("text", "bool"):
        return Column(field, words, [_text(value, field) for value in values], more)
    unit, cells = _figures(values, field)
    for said in _SAID:
        words = words.removesuffix(said)
    if unit.endswith(words):
        words = unit
    elif unit and unit not in words.split():
        words = f"{words} ({unit})"
    return Column(field, words, cells, more)


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
        return _times(values, numbers, "+" if "delta" in field.name else "")
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


def _times(values: Sequence[Value], numbers: Sequence[float], more: str) -> tuple[str, list[Cell]]:
    """In one unit, or each in its own; `more` stands before what is above zero."""

    def signed(v: Value, text: Callable[[float], str]) -> Cell:
        if not isinstance(v, int | float):
            return Cell("")
        return Cell(f"{more if v > 0 else ''}{text(v)}")

    sizes = sorted(abs(v) for v in numbers if v)
    if not sizes:
        return "", [Cell("" if value is None else "0") for value in values]
    unit, scale = time_unit_for([sizes[len(sizes) // 2]])
    if sizes[0] < LEAST_SHOWN * scale or sizes[-1] >= MOST_SHOWN * scale:
        return "", [signed(v, format_time) for v in values]
    return unit, [signed(v, lambda v: _scaled(v / scale)) for v in values]


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
