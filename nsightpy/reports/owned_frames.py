"""What was read of a report's frames: each column once while it is used, rows in one order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import (
    ColumnData,
    Frame,
    Labels,
    Schema,
    is_constant,
    sort_key,
    taken,
    time_order,
)

T = TypeVar("T")

# Gives the wanted columns in the order of the file; the rows do not depend on what is wanted.
Reader: TypeAlias = Callable[[Sequence[str]], Frame]
# So much is kept though nobody uses it any more: small reports are read once, whoever asks again.
KEPT_BYTES = 1 << 24


class OwnedFrames:
    """The frames of one report, as far as they were read. A column lives while somebody uses it.

    The first few are kept until `release`, and so is what was asked for whole. Copies in other
    processes begin empty.
    """

    are_held = False  # by who asks several questions: what was read stays until the last one

    def __init__(self) -> None:
        self._columns: dict[str, _Columns] = {}
        self._whole: dict[str, Frame] = {}
        self._derived: dict[Hashable, Any] = {}
        self._kept: list[ColumnData] = []
        self._kept_bytes = 0

    def __reduce__(self) -> tuple[type[OwnedFrames], tuple[()]]:
        return OwnedFrames, ()

    def read(
        self, schema: Schema, reader: Reader, columns: Sequence[str] | None, order: str | None
    ) -> Frame:
        """A frame that is read column by column, its rows in the `order` of a column of times.

        None: the reader gives them in their order.
        """
        if schema.name in self._whole and set(columns or ()) <= set(self._whole[schema.name]):
            return _chosen(self._whole[schema.name], columns)
        owned = self._columns.setdefault(schema.name, _Columns(schema, order))
        frame = owned.frame(reader, columns or schema.names, self._keep)
        if columns is None:
            self._whole[schema.name] = frame
        return frame

    def whole(self, name: str, make: Callable[[], Frame], columns: Sequence[str] | None) -> Frame:
        """A frame that is made as a whole, or some of its columns."""
        if name not in self._whole:
            self._whole[name] = make()
        return _chosen(self._whole[name], columns)

    def derived(self, key: Hashable, make: Callable[[], T]) -> T:
        """What a question made of the frames, made once."""
        if key not in self._derived:
            self._derived[key] = make()
        made: T = self._derived[key]
        return made

    def release(self) -> None:
        """Let go of everything; what is asked next is read again."""
        if not self.are_held:
            self.__init__()  # type: ignore[misc]

    def _keep(self, column: ColumnData) -> None:
        data = column.codes if isinstance(column, Labels) else column
        size = 0 if is_constant(data) else data.nbytes
        if self._kept_bytes + size <= KEPT_BYTES:
            self._kept.append(column)
            self._kept_bytes += size


class _Columns:
    """The columns of one frame that somebody uses, and the order of its rows."""

    def __init__(self, schema: Schema, order: str | None) -> None:
        self._schema = schema
        self._by = order
        self._known: WeakValueDictionary[str, ColumnData] = WeakValueDictionary()
        self._rows: NDArray[np.int32] | None = None
        self._is_ordered = False
        self._lock = threading.Lock()

    def frame(
        self, reader: Reader, wanted: Sequence[str], keep: Callable[[ColumnData], None]
    ) -> Frame:
        """The wanted columns; those that nobody uses are read."""
        if unknown := sorted(name for name in wanted if name not in self._schema):
            raise KeyError(f"{self._schema.name} has no column {', '.join(unknown)}")
        with self._lock:
            columns = {n: held for n in wanted if (held := self._known.get(n)) is not None}
            missing = [name for name in wanted if name not in columns]
            if missing:
                read = self._read(reader, missing)
                for column in read.values():
                    keep(column)
                columns |= read
        return Frame(columns).select(wanted)

    def _read(self, reader: Reader, missing: Sequence[str]) -> dict[str, ColumnData]:
        """The missing columns in the order of rows, which the first to be read give."""
        first = () if self._is_ordered else self._telling()
        raw = dict(reader(tuple(dict.fromkeys((*first, *missing)))))
        if not self._is_ordered:
            self._rows = None if self._by is None else self._order(reader, raw, self._by)
            self._is_ordered = True
        made: dict[str, ColumnData] = {}
        for name in list(raw):
            column = raw.pop(name)  # one after the other, so that no two orders of all are held
            if self._rows is not None:
                column = _taken(column, self._rows)
            made[name] = self._known[name] = column
        return made

    def _order(
        self, reader: Reader, raw: Mapping[str, ColumnData], by: str
    ) -> NDArray[np.int32] | None:
        """The rows in the order of Frame.ordered; None where they are already."""

        def keys() -> Iterator[NDArray[Any]]:
            for name in sorted(self._schema.names, key=lambda name: name != "end_ns"):
                column = raw[name] if name in raw else reader((name,))[name]
                yield sort_key(name, column)

        rows = time_order(Frame(raw).ints(by), keys())
        return None if rows is None else rows.astype(np.int32)

    def _telling(self) -> tuple[str, ...]:
        """The columns that say which rows count, and in which order they are."""
        wanted = (self._by, "start_ns", "end_ns", "bytes")
        return tuple(name for name in self._schema.names if name in wanted)


def _taken(column: ColumnData, rows: NDArray[np.int32]) -> ColumnData:
    return column.take(rows) if isinstance(column, Labels) else taken(column, rows)


def _chosen(frame: Frame, columns: Sequence[str] | None) -> Frame:
    return frame if columns is None else frame.select(columns)
