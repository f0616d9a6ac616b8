"""The columnar container that readers fill and analyses read.

A Frame is a table of named, equally long columns: int64 arrays for times, sizes and ids, float64
arrays for measured values, Labels for names. Analyses take Frames; library users see the same
columns as a pandas DataFrame.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nsightpy.frames.columns import Column, Schema
from nsightpy.frames.order import time_order

if TYPE_CHECKING:
    import pandas as pd

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
DTYPES: dict[str, Any] = {"int": np.int64, "float": np.float64}  # of kinds of columns


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Labels:
    """A column of names: one small integer a row, and each distinct name once."""

    codes: NDArray[np.int32]
    values: tuple[str, ...]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Labels:
        """Labels of plain strings, values in order of first appearance."""
        seen: dict[str, int] = {}
        codes = [seen.setdefault(text, len(seen)) for text in texts]
        return cls(np.asarray(codes, dtype=np.int32), tuple(seen))

    @classmethod
    def constant(cls, text: str, length: int) -> Labels:
        return cls(np.zeros(length, dtype=np.int32), (text,))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> str:
        return self.values[int(self.codes[row])]

    def __iter__(self) -> Iterator[str]:
        return map(self.values.__getitem__, self.codes.tolist())

    def take(self, rows: NDArray[Any]) -> Labels:
        """The rows of a boolean mask or an index array; the values are shared."""
        return Labels(taken(self.codes, rows), self.values)

    def equals(self, wanted: Sequence[str]) -> NDArray[np.bool_]:
        """Mask of the rows whose name is one of those wanted."""
        return self.where(lambda value: value in wanted)

    def where(self, fits: Callable[[str], object]) -> NDArray[np.bool_]:
        """Mask of the rows whose name fits, which is asked of each value once."""
        return self.map(lambda value: bool(fits(value)), np.bool_)

    def map(self, function: Callable[[str], Any], dtype: DTypeLike) -> NDArray[Any]:
        """What a function says of each row's name; it is called once for each value."""
        mapped = np.asarray([function(value) for value in self.values], dtype=dtype)
        return mapped[self.codes] if len(mapped) else np.zeros(len(self.codes), dtype=dtype)

    def renamed(self, function: Callable[[str], str]) -> Labels:
        """The rows under what a function makes of their names; equal ones share one code."""
        return Labels(self.codes, tuple(map(function, self.values))).merged()

    def merged(self) -> Labels:
        """The same rows with one code for each name, in the order of the names.

        Different ids may carry one text, and ids are numbered in any order: equals are decided by
        the names and not by their numbers.
        """
        if all(map(operator.lt, self.values, self.values[1:])):
            return self
        positions = {value: position for position, value in enumerate(sorted(set(self.values)))}
        table = np.asarray([positions[value] for value in self.values], dtype=np.int32)
        return Labels(table[self.codes], tuple(positions))

    def used(self) -> Labels:
        """The same rows without values that none of them has, where those are the most."""
        if len(self.values) <= len(self.codes):
            return self
        kept, codes = np.unique(self.codes, return_inverse=True)
        return Labels(codes.astype(np.int32), tuple(self.values[code] for code in kept.tolist()))


ColumnData: TypeAlias = Ints | Floats | Labels


class Frame(Mapping[str, ColumnData]):
    """Equally long columns by name. Read-only: analyses never change what they are given."""

    def __init__(self, columns: Mapping[str, ColumnData]) -> None:
        lengths = {len(data) for data in columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of different lengths: {sorted(lengths)}")
        self._columns = dict(columns)
        self.rows = lengths.pop() if lengths else 0

    def __getitem__(self, name: str) -> ColumnData:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return self.rows

    def ints(self, name: str) -> Ints:
        """An integer column (times in ns, sizes in bytes, ids)."""
        data = self._columns[name]
        if isinstance(data, Labels) or data.dtype.kind == "f":
            raise TypeError(f"{name} is no integer column")
        return cast(Ints, data)

    def labels(self, name: str) -> Labels:
        """A column of names."""
        data = self._columns[name]
        if not isinstance(data, Labels):
            raise TypeError(f"{name} is a column of numbers")
        return data

    def tuples(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Some columns row by row, numbers and names as plain Python has them: for few rows."""
        columns = (self._columns[name] for name in names)
        return zip(
            *(list(data) if isinstance(data, Labels) else data.tolist() for data in columns),
            strict=True,
        )

    def take(self, rows: NDArray[Any]) -> Frame:
        """The rows of a boolean mask or an index array, as a new frame."""
        return Frame(
            {n: d.take(rows) if isinstance(d, Labels) else taken(d, rows) for n, d in self.items()}
        )

    def select(self, columns: Iterable[str]) -> Frame:
        """Some of the columns, in that order."""
        return Frame({name: self._columns[name] for name in columns})

    def at(self, **values: int) -> Frame:
        """The rows in which these columns hold these values: frame.at(pid=7, device=0)."""
        if all(is_constant(self.ints(c)) and self.ints(c)[0] == v for c, v in values.items()):
            return self  # no look at the rows
        rows = self.rows_at(**values)
        return self if rows.all() else self.take(rows)

    def rows_at(self, **values: int) -> NDArray[np.bool_]:
        """Which rows hold these values in these columns."""
        equal = [self.ints(column) == value for column, value in values.items()]
        return cast(NDArray[np.bool_], np.logical_and.reduce(equal))

    def in_parts(self, most: int) -> Iterator[Frame]:
        """The rows part by part, at most so many in each."""
        for low in range(0, self.rows, most):
            yield self.take(np.arange(low, min(low + most, self.rows)))

    def ordered(self, by: str = "start_ns") -> Frame:
        """The rows by a column of times; those of one time by the others, the longest first."""
        others = sorted(self, key=lambda name: name != "end_ns")
        keys = (partial(sort_key, name, self[name]) for name in others)
        rows = time_order(self.ints(by), keys)
        return self if rows is None else self.take(rows)

    def to_pandas(self) -> pd.DataFrame:
        """The same columns as a DataFrame: int64, and category for names."""
        import pandas as pd

        columns: dict[str, Any] = dict(self)
        for name, data in self.items():
            if isinstance(data, Labels):
                merged = data.merged()
                values = pd.Index(merged.values, dtype=object)
                columns[name] = pd.Categorical.from_codes(merged.codes, categories=values)
        return pd.DataFrame(columns)

    @classmethod
    def empty(cls, schema: Schema, columns: Iterable[str] | None = None) -> Frame:
        """The frame of that schema with no rows."""
        return cls({name: blank(schema[name], 0) for name in columns or schema.names})

    @classmethod
    def blank(cls, schema: Schema, rows: int) -> Frame:
        """So many rows of that schema of which nothing is known."""
        return cls({column.name: blank(column, rows) for column in schema.columns})

    @classmethod
    def of_rows(cls, schema: Schema, rows: Sequence[Sequence[object]]) -> Frame:
        """The frame of rows that have their values in the order of the schema's columns."""
        by_column = zip(*rows, strict=True) if rows else [()] * len(schema.columns)
        columns: dict[str, ColumnData] = {}
        for column, values in zip(schema.columns, by_column, strict=True):
            if column.kind == "label":
                columns[column.name] = Labels.of(map(str, values))
            else:
                columns[column.name] = np.asarray(values, DTYPES[column.kind])
        return cls(columns)

    @classmethod
    def concatenate(cls, frames: Sequence[Frame]) -> Frame:
        """The rows of frames with the same columns, one after the other."""
        if len(frames) == 1:
            return frames[0]
        return cls({name: joined([frame[name] for frame in frames]) for name in frames[0]})


def blank(column: Column, length: int) -> ColumnData:
    """A column full of its "not known" value."""
    if column.kind == "label":
        return Labels.constant(str(column.missing), length)
    return np.full(length, column.missing, DTYPES[column.kind])


def joined(parts: Sequence[ColumnData]) -> ColumnData:
    """One column of the parts of a column, in order."""
    labels = [part for part in parts if isinstance(part, Labels)]
    if not labels:
        numbers = [part for part in parts if not isinstance(part, Labels)]
        filled = [part for part in numbers if len(part)]
        if filled and all(is_constant(part) and part[0] == filled[0][0] for part in filled):
            return cast(Ints, np.broadcast_to(filled[0][0], sum(map(len, filled))))
        return cast(Ints, np.concatenate(numbers))
    seen: dict[str, int] = {}
    codes = []
    for part in labels:
        table = np.asarray([seen.setdefault(v, len(seen)) for v in part.values], dtype=np.int32)
        codes.append(table[part.codes] if len(table) else part.codes)
    return Labels(np.concatenate(codes), tuple(seen))


def sort_key(name: str, column: ColumnData, rows: NDArray[Any]) -> NDArray[Any]:
    """Numbers by which some rows of a column sort among those of one time: the longest first."""
    if isinstance(column, Labels):
        order = {value: rank for rank, value in enumerate(sorted(column.values))}
        return column.take(rows).map(order.__getitem__, np.int64)
    values: NDArray[Any] = column[rows]
    return np.invert(values) if name == "end_ns" else values


def constant(value: int, length: int) -> Ints:
    """A column that holds one value everywhere, and costs no memory; it cannot be written to."""
    return np.broadcast_to(np.int64(value), length)


def is_constant(column: NDArray[Any]) -> bool:
    """Whether a column is known to hold one value, without a look at its rows."""
    return len(column) > 0 and column.strides == (0,)


def taken(column: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """The rows of a boolean mask or an index array; a constant stays one."""
    if not is_constant(column):
        return cast(NDArray[Any], column[rows])
    length = int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows)
    return np.broadcast_to(column[0], length)


def distinct(ids: Ints) -> tuple[Ints, NDArray[np.int32]]:
    """The sorted distinct ids and, for each row, the place of its id among them."""
    if len(ids) == 0:
        return ids, np.empty(0, dtype=np.int32)
    low, high = (int(ids[0]),) * 2 if is_constant(ids) else (int(ids.min()), int(ids.max()))
    if low == high:
        return ids[:1].copy(), np.broadcast_to(np.int32(0), len(ids))
    if high - low > 4 * len(ids) + 1_000_000:
        unique, codes = np.unique(ids, return_inverse=True)
        return unique, codes.astype(np.int32)
    shifted = ids - low
    present = np.zeros(high - low + 1, dtype=np.bool_)
    present[shifted] = True
    unique = np.flatnonzero(present)
    position = np.zeros(high - low + 1, dtype=np.int32)
    position[unique] = np.arange(len(unique), dtype=np.int32)
    return unique + low, position[shifted]


def distinct_pairs(first: Ints, second: Ints) -> tuple[list[tuple[int, int]], NDArray[np.int32]]:
    """The sorted distinct pairs of two columns and, for each row, the place of its pair."""
    firsts, high = distinct(first)
    seconds, low = distinct(second)
    if len(seconds) <= 1:
        return [(value, int(seconds[0])) for value in firsts.tolist()], high
    keys, codes = distinct(high.astype(np.int64) * len(seconds) + low)
    pairs = (firsts[keys // len(seconds)].tolist(), seconds[keys % len(seconds)].tolist())
    return list(zip(*pairs, strict=True)), codes
