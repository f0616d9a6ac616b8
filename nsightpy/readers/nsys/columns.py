"""The columns of an export's tables as SQL expressions: numbers, texts, processes and threads."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast

from nsightpy.frames import Ints, Labels, distinct
from nsightpy.readers.sql import sa

_DIGITS = re.compile(r" *[-+]?[0-9]{1,19} *")
NO_END = -(2**63)
# -2**63 is no SQLite integer literal
NO_END_SQL = f"({NO_END + 1} - 1)"

Expression: TypeAlias = Callable[["sa.TableClause"], "sa.ColumnElement[Any] | None"]


def no_bytes() -> sa.ColumnElement[bytes]:
    """The empty text as SQL; its type says so where a query finds no row."""
    return sa.literal_column("x''", sa.LargeBinary)


def column(name: str) -> Expression:
    """A table's column as an integer; None where the table lacks it."""

    def expression(table: sa.TableClause) -> sa.ColumnElement[Any] | None:
        return sa.cast(table.c[name], sa.Integer) if name in table.c else None

    return expression


def first_of(*names: str) -> Expression:
    """The first of these columns that is not NULL, as an integer."""

    def expression(table: sa.TableClause) -> sa.ColumnElement[Any] | None:
        present = [sa.cast(table.c[name], sa.Integer) for name in names if name in table.c]
        return sa.func.coalesce(*present) if len(present) > 1 else next(iter(present), None)

    return expression


def product(*names: str) -> Expression:
    """The product of columns; None where the table lacks one."""

    def expression(table: sa.TableClause) -> sa.ColumnElement[Any] | None:
        if any(name not in table.c for name in names):
            return None
        # what is beyond an integer, or a fraction, becomes one
        whole = math.prod((table.c[name] for name in names), start=sa.literal_column("1"))
        return whole.op("|")(sa.literal_column("0"))

    return expression


def process_of(global_id: str) -> Expression:
    """The process inside a serialized global id: bits 24 to 47."""

    def expression(table: sa.TableClause) -> sa.ColumnElement[Any] | None:
        if global_id not in table.c:
            return None
        return sa.cast(table.c[global_id], sa.Integer).op(">>")(24).op("&")(0xFFFFFF)

    return expression


def thread_of(*global_ids: str) -> Expression:
    """The thread inside the first of these global ids that is set: bits 0 to 23."""

    def expression(table: sa.TableClause) -> sa.ColumnElement[Any] | None:
        present = first_of(*global_ids)(table)
        return None if present is None else present.op("&")(0xFFFFFF)

    return expression


SPAN: Mapping[str, Expression] = {"start_ns": column("start"), "end_ns": column("end")}


def number(
    table: sa.TableClause, name: str, expression: Expression, missing: int
) -> sa.ColumnElement[Any]:
    """An integer column under its frame's name; NULL means `missing` there, but for an end."""
    value = expression(table)
    if value is None:
        return sa.literal_column(str(missing)).label(name)
    null = NO_END if name == "end_ns" else missing
    return sa.func.coalesce(value, _literal(null)).label(name)


def stored(
    table: sa.TableClause, name: str, expression: Expression, null: int, *, careful: bool
) -> sa.ColumnElement[Any]:
    """A column as the table stores it; `null` stands for NULL.

    SqliteFile.arrays raises NotIntegersError where it holds anything but integers. A `careful`
    query never does: whole numbers written as texts or fractions count, `null` stands for others.
    """
    value = expression(table)
    if value is None:
        return _literal(null).label(name)
    made = sa.sql.visitors.replacement_traverse(value, {}, _whole_number if careful else _as_stored)
    return sa.func.coalesce(made, _literal(null)).label(name)


def whole_number(value: object) -> int | None:
    """The whole number that a stored value is, 12 as a text or a fraction, too; else None."""
    if isinstance(value, str):
        value = int(value) if _DIGITS.fullmatch(value) else None
    elif isinstance(value, float):
        value = int(value) if value.is_integer() else None
    return value if isinstance(value, int) and abs(value) < 2**63 else None


def numbered(rows: Iterable[tuple[Any, ...]], count: int) -> list[tuple[Any, ...]]:
    """Rows that begin with so many whole numbers; others, of damaged files, name nothing."""
    made = ((*map(whole_number, row[:count]), *row[count:]) for row in rows)
    return [row for row in made if None not in row[:count]]


def whole(table: sa.TableClause, name: str, *, careful: bool) -> sa.ColumnElement[Any]:
    """A column as the table stores it, or `careful` the integers that its values are, or NULL."""
    made = sa.cast(table.c[name], sa.Integer)
    return cast("sa.ColumnElement[Any]", (_whole_number if careful else _as_stored)(made))


def _literal(value: int) -> sa.ColumnElement[Any]:
    return sa.literal_column(NO_END_SQL if value == NO_END else str(value))


def _as_stored(element: Any, **_more: object) -> Any:
    return element.clause if isinstance(element, sa.Cast) else None


def _whole_number(element: Any, **_more: object) -> Any:
    """In place of a cast: the integer that a value is; NULL for what is none.

    SQLite casts "12abc" to 12 and any other text, infinity and blobs to a number, too.
    """
    if not isinstance(element, sa.Cast):
        return None
    value: sa.ColumnElement[Any] = element.clause
    kind, digits = sa.func.typeof(value), sa.func.trim(value, " ")
    is_whole = sa.and_(
        kind == "real", value.between(-_LARGEST, _LARGEST), value == sa.cast(value, sa.Integer)
    )
    is_digits = sa.and_(
        kind == "text",
        sa.func.length(digits).between(1, _MOST_DIGITS),
        sa.func.substr(digits, 1, 1).op("GLOB")("[-+0-9]"),
        sa.func.substr(digits, 2).op("NOT GLOB")("*[^0-9]*"),
        digits.not_in(("-", "+")),
    )
    return sa.case(
        (kind == "integer", value), (sa.or_(is_whole, is_digits), sa.cast(value, sa.Integer))
    )


# Digits of a text that is an int64 for certain, and a number just below 2**63.
_MOST_DIGITS = 18
_LARGEST = 9_223_372_036_854_774_784


def text(table: sa.TableClause, name: str) -> sa.ColumnElement[Any]:
    """A text column as bytes, so that no encoding can fail; NULL or absent is the empty text."""
    if name not in table.c:
        return no_bytes().label(name)
    blob = sa.cast(table.c[name], sa.LargeBinary)
    return sa.func.coalesce(blob, no_bytes()).label(name)


def coded(codes: Ints, names: Mapping[int, str]) -> Labels:
    """Labels of enumerated values; an unknown value is named by its number."""
    unique, places = distinct(codes)
    return Labels(places, tuple(names.get(code, f"Unknown ({code})") for code in unique.tolist()))
