"""Batches of rows become columns, in order; names are those of their ids, whatever was asked."""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import sqlalchemy as sa
from hypothesis import given, strategies as st

from nsightpy.errors import ReportError
from nsightpy.frames import Labels, is_constant, joined
from nsightpy.readers import limits, sql
from nsightpy.readers.nsys.tables import Strings
from nsightpy.readers.sql import NotIntegersError, columns_of_batches, columns_of_rows
from nsightpy.readers.sqlite import SqliteFile
from tests.support.full_export import changed, full

NUMBERS = st.lists(st.lists(st.sampled_from([0, 7, 2**62]), max_size=5), max_size=4)


def batch(**columns: list[int] | list[bytes]) -> pa.RecordBatch:
    arrays = [
        pa.array(values, pa.int64() if name != "text" else pa.binary())
        for name, values in columns.items()
    ]
    return pa.RecordBatch.from_arrays(arrays, list(columns))


@given(NUMBERS)
def test_batches_stand_in_their_order(parts: list[list[int]]) -> None:
    found = joined(columns_of_batches(["n"], set(), [batch(n=values) for values in parts])["n"])
    expected = [value for values in parts for value in values]
    assert not isinstance(found, Labels)
    assert found.tolist() == expected
    assert not expected or is_constant(found) == (len(set(expected)) == 1)


@pytest.mark.parametrize("texts", [[], [b"a", b"b", b"\xff", b"a"]])
def test_columns_of_rows_are_those_of_batches(texts: list[bytes]) -> None:
    rows = [(7, n, text) for n, text in enumerate(texts)]
    same, numbers = [7] * len(texts), list(range(len(texts)))
    cut = [slice(1), slice(1, None)] if texts else []
    batches = [batch(same=same[part], n=numbers[part], text=texts[part]) for part in cut]
    names = ["same", "n", "text"]
    parts = columns_of_batches(names, {"text"}, batches)
    for found in (
        {name: joined(data) for name, data in parts.items()},
        columns_of_rows(names, {"text"}, rows),
    ):
        assert isinstance(found["text"], Labels)
        decoded = [text.decode("utf-8", "replace") for text in texts]
        assert [list(found[name]) for name in names] == [same, numbers, decoded]
        assert len(found["text"].values) == len(set(texts))


@pytest.mark.parametrize("wrong", [1.5, None, "1", b"1"])
def test_what_is_no_whole_number_of_a_row(wrong: object) -> None:
    with pytest.raises(NotIntegersError):
        columns_of_rows(["n"], set(), [(1,), (wrong,)])


@pytest.mark.parametrize("step", [1, 2, 1000, 10**15])
def test_tables_with_row_numbers_far_apart_are_read_whole(tmp_path: Path, step: int) -> None:
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("CREATE TABLE t (n INTEGER)")
        file.executemany(
            "INSERT INTO t (rowid, n) VALUES (?, ?)", [(1 + step * row, row) for row in range(5000)]
        )
    reader = SqliteFile(path)
    table = reader.tables["t"]
    number = sa.cast(table.c.n, sa.Integer).label("n")
    for query in (sa.select(number), sa.select(number).where(table.c.n % 7 == 0)):
        expected = [row[0] for row in reader.rows(query)]
        assert list(reader.arrays(query, split=table)["n"]) == expected


@pytest.mark.parametrize(("left", "threads"), [(97, 0), (98, 1), (130, 2), (2_000, 4), (None, 4)])
def test_the_driver_is_not_asked_where_it_would_die(
    monkeypatch: pytest.MonkeyPatch, left: int | None, threads: int
) -> None:
    monkeypatch.setattr(limits, "memory_left", lambda: None if left is None else left * 2**20)
    needed = (80 * 2**20, 18 * 2**20)
    if threads:
        assert limits.threads_in_memory("a.sqlite", 4, *needed) == threads
        return
    with pytest.raises(ReportError, match=r"needs 98 MiB of memory .* leave 97 MiB"):
        limits.threads_in_memory("a.sqlite", 4, *needed)
    (_, none), (_, number), (_, text) = (sql.driver_memory(*n) for n in ((0, 0), (1, 0), (0, 1)))
    assert 0 < none < number < text


def strings(path: Path, count: int, first: int) -> Strings:
    insert = (
        f"WITH numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count - 1}) "
        f"INSERT INTO StringIds SELECT {first} + n, 'name ' || n FROM numbers"
    )
    whole = full(path / "full.sqlite").write()
    create = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)"
    unnamed = f"INSERT INTO StringIds VALUES ({first - 2}, NULL)"
    statements = ["DROP TABLE StringIds", create, unnamed, insert]
    return Strings(SqliteFile(changed(whole, path / "a.sqlite", statements)))


@pytest.mark.parametrize("count", [10, 11_000])
@pytest.mark.parametrize("first", [10, 2**40, -5])
def test_a_name_is_the_same_whichever_was_asked_for_before(
    tmp_path: Path, count: int, first: int
) -> None:
    held = strings(tmp_path, count, first)
    last = first + count - 1
    ids = np.asarray([first, first + 5, last, first - 1, first])
    none = f"[name {first - 1} is not in the export]"
    expected = ["name 0", "name 5", f"name {count - 1}", none, "name 0"]
    assert list(held.labels(ids[1:2])) == expected[1:2]
    assert list(held.labels(ids)) == expected
    assert list(held.labels(ids[::-1])) == expected[::-1]
    if first > 0:
        assert list(held.labels(np.asarray([0]))) == [""], "0 is none where it names nothing"
