"""Batches of rows become columns: in order, and constant where they are."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
import sqlalchemy as sa
from hypothesis import given, strategies as st

from nsightpy.errors import ReportError
from nsightpy.frames import Labels, is_constant, joined
from nsightpy.readers import arrow, limits
from nsightpy.readers.arrow import NotIntegersError, columns_of_batches, columns_of_rows
from nsightpy.readers.sqlite import SqliteFile

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


def test_texts_of_batches_are_decoded() -> None:
    arrived = [batch(text=[b"a"]), batch(text=[b"b", b"\xff", b"a"])]
    texts = joined(columns_of_batches(["text"], {"text"}, arrived)["text"])
    assert isinstance(texts, Labels)
    assert list(texts) == ["a", "b", "\ufffd", "a"]
    assert len(texts.values) == 3


def test_columns_of_rows_are_those_of_batches() -> None:
    rows = [(7, n, text) for n, text in enumerate((b"a", b"b", b"\xff", b"a"))]
    found = columns_of_rows(["same", "n", "text"], {"text"}, rows)
    assert list(found["same"]) == [7] * 4
    assert list(found["n"]) == [0, 1, 2, 3]
    assert list(found["text"]) == ["a", "b", "\ufffd", "a"]
    for wrong in (1.5, None, "1", b"1"):
        with pytest.raises(NotIntegersError):
            columns_of_rows(["n"], set(), [(1,), (wrong,)])


def test_no_rows_have_columns_of_their_kind() -> None:
    parts = columns_of_batches(["n", "text"], {"text"}, [])
    found = {name: joined(data) for name, data in parts.items()}
    for columns in (found, columns_of_rows(["n", "text"], {"text"}, [])):
        assert isinstance(columns["text"], Labels)
        assert len(columns["text"]) == len(columns["n"]) == 0


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


def test_memory_of_the_driver_grows_with_the_columns() -> None:
    (_, none), (_, number), (_, text) = (arrow.driver_memory(*n) for n in ((0, 0), (1, 0), (0, 1)))
    assert 0 < none < number < text
