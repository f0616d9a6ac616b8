"""The same export written otherwise: names under other numbers, rows in another order."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

# How StringIds may be numbered: the id of the nth string.
NUMBERINGS: dict[str, Callable[[int], int]] = {
    "from 0": lambda place: place,
    "negative": lambda place: -1 - place,
    "from 10": lambda place: 10 + place,
    "large": lambda place: 2**40 + 7_919 * place,
}
# The columns that hold ids into StringIds, where they are integers.
_IDS = {
    *("nameId", "endNameId", "textId", "jsonTextId", "filenameId", "contentId"),
    *("demangledName", "shortName", "mangledName", "kernelName", "symbol", "module"),
    *("funcName", "srcFile", "varName", "CpuInstruction"),
}


def rewritten(original: Path, path: Path, numbering: str, seed: int) -> Path:
    """A copy of an export: names numbered in an order of chance, rows of all tables shuffled."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(original, path)
    chance = random.Random(seed)
    with closing(sqlite3.connect(path)) as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM StringIds ORDER BY id")]
        chance.shuffle(ids)
        numbers = {old: NUMBERINGS[numbering](place) for place, old in enumerate(ids)}
        connection.create_function("chance", 0, chance.random)
        connection.create_function("renumbered", 1, lambda old: numbers.get(old, old))
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (table,) in tables.fetchall():
            _rewrite(connection, table)
        connection.commit()
    return path


def _rewrite(connection: sqlite3.Connection, table: str) -> None:
    declared = connection.execute(f'PRAGMA table_info("{table}")').fetchall()
    ids = {"id"} if table == "StringIds" else _IDS
    columns = ", ".join(
        f'renumbered("{name}")' if name in ids and kind == "INTEGER" else f'"{name}"'
        for _, name, kind, *_ in declared
    )
    connection.execute(
        f'CREATE TEMP TABLE shuffled AS SELECT {columns} FROM "{table}" ORDER BY chance()'
    )
    connection.execute(f'DELETE FROM "{table}"')
    connection.execute(f'INSERT INTO "{table}" SELECT * FROM shuffled')
    connection.execute("DROP TABLE shuffled")
