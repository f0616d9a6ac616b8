"""Columns of a table that hold one value in all its rows, or in some: they need not be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from nsightpy.frames import Labels
from nsightpy.readers.sql import sa
from nsightpy.readers.sqlite import SqliteFile
from nsightpy.readers.sqlite_tables import row_number

# A table of so many rows is read outright: what is asked about it first costs more.
FEW_ROWS = 10_000


def constant_of_few(
    file: SqliteFile, source: sa.TableClause, names: Iterable[str]
) -> dict[str, int]:
    """Those of the columns that hold one integer in every row, by one scan of a small table."""
    names = [name for name in names if name in source.c]
    ends = (f(source.c[name]) for name in names for f in (sa.func.min, sa.func.max))
    counts = (sa.func.count(source.c[name]) for name in names)
    row = file.rows(sa.select(sa.func.count(), *ends, *counts).select_from(source))[0]
    rows, low, high, given = row[0], row[1::2], row[2::2], row[1 + 2 * len(names) :]
    return {
        name: low[n]
        for n, name in enumerate(names)
        if isinstance(low[n], int) and low[n] == high[n] and given[n] == rows
    }


def constant_columns(
    file: SqliteFile,
    source: sa.TableClause,
    names: Iterable[str],
    among: sa.ColumnElement[bool] | None = None,
) -> dict[str, int | None]:
    """Those of the columns that hold one integer, or NULL, in every row (`among` some)."""
    among = sa.true() if among is None else among
    values = constant_at_first(file, source, names, among)
    while values and not _never(file, source, sa.and_(among, differs(source, values))):
        kept = _still_one(file, source, values, among)
        if kept == values:  # a NOT NULL that is not true: SQLite finds no row that differs
            return {}
        values = kept
    return values


def constant_at_first(
    file: SqliteFile, source: sa.TableClause, names: Iterable[str], among: sa.ColumnElement[bool]
) -> dict[str, int | None]:
    """The same for the first rows, which tell at no cost of most columns that they vary."""
    asked = [name for name in names if name in source.c]
    if not asked:
        return {}
    first = file.rows(sa.select(*(source.c[n] for n in asked)).where(among).limit(1))
    values = dict(zip(asked, first[0], strict=True)) if first else {}
    values = {name: value for name, value in values.items() if isinstance(value, int | None)}
    bounds = file.row_bounds(source.name)
    if bounds is not None:
        last = min(bounds[0] + FEW_ROWS, 2**63 - 1)
        first_rows = sa.and_(among, row_number(source) < last)
        while values and (kept := _still_one(file, source, values, first_rows)) != values:
            values = kept
    return values


def differs(source: sa.TableClause, values: Mapping[str, int | None]) -> sa.ColumnElement[bool]:
    """Rows in which any of these columns holds another value."""
    return sa.or_(*(source.c[name].is_not(value) for name, value in values.items()))


def _still_one(
    file: SqliteFile,
    source: sa.TableClause,
    values: Mapping[str, int | None],
    among: sa.ColumnElement[bool],
) -> dict[str, int | None]:
    """The columns whose value the first row that differs in any has, too; all without one."""
    query = sa.select(*(source.c[name] for name in values))
    differing = file.rows(query.where(among, differs(source, values)).limit(1))
    seen = differing[0] if differing else tuple(values.values())
    pairs = zip(values.items(), seen, strict=True)
    return {name: value for (name, value), other in pairs if other == value}


def _never(file: SqliteFile, source: sa.TableClause, condition: sa.ColumnElement[bool]) -> bool:
    """Whether no row of a table meets a condition; the rows are read side by side."""
    query = sa.select(sa.func.count().label("rows")).select_from(source).where(condition)
    counts = file.arrays(query, split=source)["rows"]
    return not isinstance(counts, Labels) and not np.any(counts)
