"""Rows of tables and their keys: what a row is about has one key in every answer.

Rows may be made while they are read: of millions none are held.

A key is a word for the kind and 64 bits of BLAKE2b over the identity: `kernel-5f0c…`. It depends on
no report, rank, device or platform, and on no count or time, so it may be kept and compared.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Any, TypeAlias

from nsightpy.names import canonical_name

Value: TypeAlias = int | float | str | bool | None
Row: TypeAlias = tuple[Value, ...]
Record: TypeAlias = dict[str, Value]  # a row by column
KERNEL, VARIANT, MEMORY, API = "kernel", "variant", "memory", "api"
RANGE, OPERATOR, COLLECTIVE, MODULE = "range", "operator", "collective", "module"
# The CUDA runtime's entry points carry the version that introduced them: cudaLaunchKernel_v7000.
_ENTRY_VERSION = re.compile(r"_v\d{4,}$")
_KEPT = 1 << 16


@dataclass(frozen=True, slots=True)
class RowKey:
    """What identifies the thing that a row is about: its kind, the columns, the key's own column.

    The first column holds the name; a row without one has no key. `only`: a column and its value in
    the rows that have one.
    """

    kind: str
    columns: tuple[str, ...]
    name: str = "key"
    only: tuple[str, str] | None = None

    def is_in(self, columns: Sequence[str]) -> bool:
        """Whether rows of these columns can have it."""
        only = () if self.only is None else self.only[:1]
        return {*self.columns, *only} <= set(columns)

    def of(self, row: Mapping[str, Value]) -> str | None:
        """The key of a row, given by column; None where it names nothing."""
        if self.only is not None and row.get(self.only[0]) != self.only[1]:
            return None
        first, *more = (row[column] for column in self.columns)
        return key_of(self.kind, str(first), *more) if first not in (None, "") else None


@lru_cache(_KEPT)
def key_of(kind: str, name: str, *more: Value) -> str:
    """The key of a thing of this kind and name, told from others by `more`.

    Kernels go by `names.canonical_name`, so that the demangled styles of nsys, ncu and PyTorch
    agree; an operation called [CUDA memcpy ...] or [CUDA memset] is one on memory even where it is
    listed among kernels; calls go without the version of their entry point.
    """
    if kind == KERNEL and name.startswith("[CUDA mem"):
        kind = MEMORY
    if kind in (KERNEL, VARIANT):
        name = canonical_name(name)
    elif kind == API:
        name = _ENTRY_VERSION.sub("", name)
    text = "\0".join([kind, name, *("" if part is None else str(part) for part in more)])
    return f"{kind}-{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def row_keys(kind: str, *columns: str) -> tuple[RowKey, ...]:
    """The key of rows that these columns identify; a variant of a kernel has the kernel's, too."""
    if kind == VARIANT:
        return (RowKey(KERNEL, columns[:1]), RowKey(VARIANT, columns, "variant_key"))
    return (RowKey(kind, columns),)


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
