"""Names of exports: whatever their ids, and whichever were asked for before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nsightpy.readers.nsys.tables import Strings
from nsightpy.readers.sqlite import SqliteFile
from tests.support.full_export import changed, full

FEW, MANY = 10, 11_000


def strings(path: Path, count: int, first: int) -> Strings:
    insert = (
        f"WITH numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count - 1}) "
        f"INSERT INTO StringIds SELECT {first} + n, 'name ' || n FROM numbers"
    )
    whole = full(path / "full.sqlite").write()
    statements = [
        "DROP TABLE StringIds",
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)",
        f"INSERT INTO StringIds VALUES ({first - 2}, NULL)",
        insert,
    ]
    made = changed(whole, path / "a.sqlite", statements)
    return Strings(SqliteFile(made))


@pytest.mark.parametrize("count", [FEW, MANY])
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
