"""Names of an export: ids into StringIds become Labels, looked up only for the ids that occur."""

from __future__ import annotations

from functools import cached_property

import sqlalchemy as sa

from nsightpy.frames import Ints, Labels, distinct
from nsightpy.readers.sqlite import SqliteFile

_CHUNK = 500
_NO_NAME = 0


class Strings:
    """The string table of one export; an id without an entry is named by its number."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._known: dict[int, str] = {}

    def labels(self, ids: Ints) -> Labels:
        """The names of a column of ids, as Labels; id 0 without an entry is the empty name."""
        unique, codes = distinct(ids)
        self._fetch([int(i) for i in unique if int(i) not in self._known])
        return Labels(codes, tuple(self._known[int(i)] for i in unique))

    def matching(self, prefix: str) -> list[int]:
        """The ids of the strings that begin with a prefix."""
        table = self._table
        if table is None:
            return []
        pattern = prefix.replace("_", r"\_") + "%"
        found = self._file.rows(
            sa.select(table.c.id).where(table.c.value.like(pattern, escape="\\"))
        )
        return [int(row[0]) for row in found]

    @cached_property
    def _table(self) -> sa.TableClause | None:
        table = self._file.tables.get("StringIds")
        return table if table is not None and {"id", "value"} <= set(table.c.keys()) else None

    def _fetch(self, ids: list[int]) -> None:
        table = self._table
        if table is not None:
            for start in range(0, len(ids), _CHUNK):
                wanted = ids[start : start + _CHUNK]
                query = sa.select(table.c.id, table.c.value).where(table.c.id.in_(wanted))
                self._known.update((int(i), str(value)) for i, value in self._file.rows(query))
        for i in ids:
            self._known.setdefault(i, "" if i == _NO_NAME else f"[name {i} is not in the export]")
