"""Names of an export: ids into StringIds become Labels, whichever ids were asked for before."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Any

import numpy as np

from nsightpy.frames import Ints, Labels, distinct
from nsightpy.names import NO_NAME
from nsightpy.readers.limits import NAMES, check_count
from nsightpy.readers.nsys.columns import numbered
from nsightpy.readers.sql import sa
from nsightpy.readers.sqlite import SqliteFile

_CHUNK = 500
_FEW = 10_000
# In place of NULL: the id of what must have a name, and of what may have none. An id 0 is neither:
# it names what the export says, and where that says nothing, it is none.
NAMELESS = -(2**62)
UNNAMED = NAMELESS + 1
_NO_IDS = {NAMELESS: NO_NAME, UNNAMED: "", 0: ""}
_ABSENT = re.compile(r"\[name -?\d+ is not in the export\]")


class Strings:
    """The string table of one export; an id without an entry is named by its number."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def labels(self, ids: Ints) -> Labels:
        """The names of a column of ids, as Labels."""
        unique, codes = distinct(ids)
        check_count(self._file.path, NAMES, len(unique))
        asked = unique.tolist()
        texts = self._texts_of(asked)
        return Labels(
            codes,
            tuple(
                texts[i] if i in texts else _NO_IDS.get(i, f"[name {i} is not in the export]")
                for i in asked
            ),
        )

    def absent(self, labels: Labels) -> int:
        """How many rows of such labels have a name that the export does not hold."""
        return int(np.count_nonzero(labels.where(_ABSENT.fullmatch)))

    def starting(self, *prefixes: str) -> dict[int, str]:
        """The strings that begin with one of these prefixes in any case, by id."""
        table = self._table
        if table is None:
            return {}
        patterns = (prefix.replace("_", r"\_") + "%" for prefix in prefixes)
        begins = (table.c.value.like(pattern, escape="\\") for pattern in patterns)
        query = sa.select(table.c.id, table.c.value).where(sa.or_(sa.false(), *begins))
        return _texts(self._file.rows(query))

    def named(self, texts: Collection[str]) -> dict[int, str]:
        """The strings that are one of these texts, by id."""
        table = self._table
        if table is None:
            return {}
        query = sa.select(table.c.id, table.c.value).where(table.c.value.in_(sorted(texts)))
        return _texts(self._file.rows(query))

    @cached_property
    def _few(self) -> dict[int, str] | None:
        """All strings, where they are few enough to be read at once."""
        table = self._table
        if table is None:
            return {}
        rows = self._file.rows(sa.select(table.c.id, table.c.value).limit(_FEW + 1))
        return None if len(rows) > _FEW else _texts(rows)

    @cached_property
    def _table(self) -> sa.TableClause | None:
        table = self._file.tables.get("StringIds")
        return table if table is not None and {"id", "value"} <= set(table.c.keys()) else None

    def _texts_of(self, ids: list[int]) -> dict[int, str]:
        """The strings of these ids, and maybe of others."""
        table = self._table
        if self._few is not None or table is None:
            return self._few or {}
        texts: dict[int, str] = {}
        for start in range(0, len(ids), _CHUNK):
            among = table.c.id.in_(ids[start : start + _CHUNK])
            texts |= _texts(self._file.rows(sa.select(table.c.id, table.c.value).where(among)))
        return texts


def _texts(rows: Iterable[tuple[Any, ...]]) -> dict[int, str]:
    return {i: str(value) for i, value in numbered(rows, 1) if value is not None}
