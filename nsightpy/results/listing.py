"""The values of tables; rows that are made while they are read: of millions none are held."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

Value: TypeAlias = int | float | str | bool | None
Row: TypeAlias = tuple[Value, ...]
Record: TypeAlias = dict[str, Value]  # a row by column


def number(value: Value) -> float:
    """A figure of a table; 0 where it is absent."""
    return float(value) if isinstance(value, int | float) else 0.0


def ns_of(record: Mapping[str, Value], column: str) -> int:
    """A time of a row; 0 where it is absent."""
    value = record[column]
    return int(value) if isinstance(value, int | float) else 0


def rank_order(rank: Value) -> tuple[bool, Any]:
    """By what rows are sorted by rank, or the like: ascending, unknown ones last."""
    return (rank is None, rank or 0)


class LazyRows(Sequence[Row]):
    """The rows that `make` gives, each time anew; `count` of them at most."""

    def __init__(self, make: Callable[[], Iterator[Row]], count: int) -> None:
        self._make = make
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Row]:
        return islice(self._make(), self._count)

    def __getitem__(self, index: Any) -> Any:
        """A row; of a slice, which goes forward, rows that are made like these."""
        chosen = range(self._count)[index]
        if isinstance(chosen, int):
            return next(islice(self, chosen, None))
        low, high, step = chosen.start, chosen.stop, chosen.step
        return LazyRows(lambda: islice(self, low, high, step), len(chosen))
