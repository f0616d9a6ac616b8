"""Names of an export: ids into StringIds become Labels, looked up only for the ids that occur."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from nsightpy.frames import Ints, Labels, distinct
from nsightpy.names import NO_NAME
from nsightpy.readers.limits import NAMES, check_count
from nsightpy.readers.nsys.columns import numbered
from nsightpy.readers.sql import sa
from nsightpy.readers.sqlite import SqliteFile
from nsightpy.side_by_side import shared_property

_CHUNK = 500
_FEW = 10_000
_NO_NAME = 0
# Stands for the name of what must have one and has none.
NAMELESS = -(2**62)


class Strings:
    """The string table of one export; an id without an entry is named by its number."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._known: dict[int, str] = {NAMELESS: NO_NAME}
        self._absent: set[int] = set()

    def labels(self, ids: Ints) -> Labels:
        """The names of a column of ids, as Labels; id 0 without an entry is the empty name."""
        unique, codes = distinct(ids)
        check_count(self._file.path, NAMES, len(unique))
        self._fetch([int(i) for i in unique if int(i) not in self._known])
        return Labels(codes, tuple(self._known[int(i)] for i in unique))

    def absent(self, labels: Labels) -> int:
        """How many rows of such labels have a name that the export does not hold."""
        if not self._absent:
            return 0
        numbers = set(map(_numbered, self._absent))
        lost = [value in numbers for value in labels.values]
        return int(np.count_nonzero(np.asarray(lost, dtype=np.bool_)[labels.codes]))

    def starting(self, *prefixes: str) -> dict[int, str]:
        """The strings that begin with one of these prefixes in any case, by id."""
        table = self._table
        if table is None:
            return {}
        if self._few is not None:
            low = tuple(prefix.lower() for prefix in prefixes)
            return {i: text for i, text in self._few.items() if text.lower().startswith(low)}
        patterns = (prefix.replace("_", r"\_") + "%" for prefix in prefixes)
        begins = (table.c.value.like(pattern, escape="\\") for pattern in patterns)
        query = sa.select(table.c.id, table.c.value).where(sa.or_(sa.false(), *begins))
        return _texts(self._file.rows(query))

    def named(self, texts: Collection[str]) -> dict[int, str]:
        """The strings that are one of these texts, by id."""
        table = self._table
        if table is None:
            return {}
        if self._few is not None:
            return {i: text for i, text in self._few.items() if text in texts}
        query = sa.select(table.c.id, table.c.value).where(table.c.value.in_(sorted(texts)))
        return _texts(self._file.rows(query))

    def matching(self, *prefixes: str) -> list[int]:
        """The ids of the strings that begin with one of these prefixes, ascending."""
        return sorted(self.starting(*prefixes))

    @shared_property
    def _few(self) -> dict[int, str] | None:
        """All strings, where they are few enough to be read at once."""
        table = self._table
        bounds = None if table is None else self._file.row_bounds(table.name)
        if table is None or bounds is None or bounds[1] - bounds[0] >= _FEW:
            return None
        return _texts(self._file.rows(sa.select(table.c.id, table.c.value)))

    @shared_property
    def _table(self) -> sa.TableClause | None:
        table = self._file.tables.get("StringIds")
        return table if table is not None and {"id", "value"} <= set(table.c.keys()) else None

    def _fetch(self, ids: list[int]) -> None:
        table = self._table
        if self._few is not None:
            self._known.update((i, self._few[i]) for i in ids if i in self._few)
        elif table is not None:
            for start in range(0, len(ids), _CHUNK):
                wanted = ids[start : start + _CHUNK]
                query = sa.select(table.c.id, table.c.value).where(table.c.id.in_(wanted))
                self._known.update(_texts(self._file.rows(query)))
        self._known.setdefault(_NO_NAME, "")
        self._absent.update(i for i in ids if i not in self._known)
        self._known.update((i, _numbered(i)) for i in self._absent)


def _texts(rows: Iterable[tuple[Any, ...]]) -> dict[int, str]:
    return {i: str(value) for i, value in numbered(rows, 1) if value is not None}


def _numbered(number: int) -> str:
    return f"[name {number} is not in the export]"
