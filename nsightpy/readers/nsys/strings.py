"""Names of an export: ids into StringIds become Labels, looked up only for the ids that occur."""

from __future__ import annotations

from collections.abc import Collection

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

    def labels(self, ids: Ints) -> Labels:
        """The names of a column of ids, as Labels; id 0 without an entry is the empty name."""
        unique, codes = distinct(ids)
        check_count(self._file.path, NAMES, len(unique))
        self._fetch([int(i) for i in unique if int(i) not in self._known])
        return Labels(codes, tuple(self._known[int(i)] for i in unique))

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
        rows = self._file.rows(query)
        return {i: str(value) for i, value in numbered(rows, 1)}

    def named(self, texts: Collection[str]) -> dict[int, str]:
        """The strings that are one of these texts, by id."""
        table = self._table
        if table is None:
            return {}
        if self._few is not None:
            return {i: text for i, text in self._few.items() if text in texts}
        query = sa.select(table.c.id, table.c.value).where(table.c.value.in_(sorted(texts)))
        return {i: str(value) for i, value in numbered(self._file.rows(query), 1)}

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
        rows = self._file.rows(sa.select(table.c.id, table.c.value))
        return {i: str(value) for i, value in numbered(rows, 1)}

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
                rows = numbered(self._file.rows(query), 1)
                self._known.update((i, str(value)) for i, value in rows)
        for i in ids:
            self._known.setdefault(i, "" if i == _NO_NAME else f"[name {i} is not in the export]")
