"""Some rows of a stored column are those rows of the whole column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nsightpy.frames import ColumnData, Labels
from nsightpy.store.column_file import ColumnFile, Rows, narrow, write

COLUMNS: dict[str, ColumnData] = {
    "times": np.arange(10, dtype=np.int64) * 2**40,
    "small": np.arange(10, dtype=np.int64) + 5_000,
    "same": np.full(10, 7, dtype=np.int64),
    "measured": np.linspace(0, 1, 10),
    "names": Labels.of("abcabcabca"),
    "one name": Labels.of("a" * 10),
}
MASK = np.asarray([True, False] * 5)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("rows", [slice(2, 5), slice(0), MASK, ~MASK, np.zeros(10, dtype=bool)])
def test_some_rows(tmp_path: Path, name: str, rows: Rows) -> None:
    path = tmp_path / "frame.columns"
    write(path, {}, {name: narrow(COLUMNS[name])})
    column, wanted = ColumnFile(path).column(name), np.arange(10)[rows]
    given = COLUMNS[name]
    if isinstance(given, Labels):
        assert list(column.data(rows)) == list(given.take(wanted))
    else:
        assert_array_equal(np.asarray(column.data(rows)), given[wanted], strict=True)
