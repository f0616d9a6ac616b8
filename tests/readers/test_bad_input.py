"""What cannot be answered: exit code 1 or 2 and one message that says which, what, and what to do.

And what must be answered although its name is strange.
"""

import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nsightpy.readers.nsys.tables import EXPORT_TABLES
from tests.support.full_export import full
from tests.support.reports import REPORTS, ask, needs_reports, refused, rows_of, state

EXPORT = "nsys export --type sqlite"
OTHER_KIND = f"is no report of a kind that|{EXPORT}"
CUT = "is truncated|copy or export it again"
SPECIAL = "is a pipe, a device"


@pytest.fixture(scope="session")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return full(tmp_path_factory.mktemp("good") / "good.sqlite").write()


def database(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def named(path: Path | str, *words: str) -> None:
    """The request about a path is refused with a message that names it and says these words."""
    message = refused("kernels", path)
    for word in (str(path), *words):
        assert word in message


# What is no report

Content = bytes | float | Callable[[Path], object]


@pytest.mark.parametrize(
    ("asked", "made", "content", "words"),
    [
        ("rank*.sqlite", "", b"", "matches no file|check the pattern"),
        ("gone.sqlite", "", b"", "no such file|check the path"),
        ("empty", "empty/", b"", f"holds no Nsight Systems report|{EXPORT}"),
        ("runs", "runs/first/nsys/r.sqlite", 1.0, f"holds no Nsight Systems report|{EXPORT}"),
        *((name, name, b"", "is empty|export it again") for name in ("e.sqlite", "e.db", "e")),
        ("notes.txt", "notes.txt", b"SQLite format 4? No: plain text.\n" * 99, OTHER_KIND),
        ("noname", "noname", b"x" * 99, OTHER_KIND),
        ("t.sqlite", "t.sqlite", b'{"a": 1}' * 99, OTHER_KIND),
        ("n.json", "n.json", '\ufeff {"name": "x"}'.encode() * 99, OTHER_KIND),
        ("list.json", "list.json", b"[1, 2]" * 99, OTHER_KIND),
        ("k.ncu-rep", "k.ncu-rep", b"NVR\0", "Nsight Compute|Nsight Systems"),
        *(("cut.sqlite", "cut.sqlite", share, CUT) for share in (0.01, 0.5, 0.999)),
        *(("cut.sqlite", "cut.sqlite", size, "is no report") for size in (1, 15)),
        *(("cut.sqlite", "cut.sqlite", size, "is truncated") for size in (16, 99, 100, 4096)),
        ("places.sqlite", "places.sqlite", lambda path: database(path, "CREATE TABLE kernels (n)"),
         f"no Nsight Systems export|{EXPORT}"),
        ("x.sqlite", "x.sqlite", lambda path: path.symlink_to("nowhere.sqlite"), "no such file"),
        *((name, "", b"", SPECIAL) for name in ("/dev/null", "/dev/zero")),
    ],
)  # fmt: skip
def test_what_is_no_report(
    asked: str, made: str, content: Content, words: str, tmp_path: Path, export: Path
) -> None:
    """`content`: the file's bytes, so many bytes or a share of an export, or what makes it."""
    path = tmp_path / made
    (path if made.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
    if callable(content):
        content(path)
    elif not path.is_dir():
        whole = export.read_bytes()
        length = int(content * len(whole)) if isinstance(content, float) else content
        path.write_bytes(length if isinstance(length, bytes) else whole[:length])
    named(tmp_path / asked, *words.split("|"))


@pytest.mark.parametrize("table", ["NVTX_EVENTS", "OSRT_API", "StringIds", "GPU_METRICS"])
def test_any_table_of_an_export_is_enough(table: str, tmp_path: Path) -> None:
    """With `nsys export --tables` everything that does not match is left out."""
    assert table.startswith(EXPORT_TABLES)
    create = f"CREATE TABLE {table} (start INT, end INT, eventType INT)"
    assert "no GPU work" in ask("kernels", database(tmp_path / "a.sqlite", create)).stderr


# What others do to it


def test_locked_by_a_writer(tmp_path: Path, export: Path) -> None:
    path = Path(shutil.copy(export, tmp_path / "locked.sqlite"))
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        named(path, "is locked by another program", "wait")
        writer.execute("ROLLBACK")
    ask("kernels", path)


def test_pending_changes_in_a_write_ahead_log(tmp_path: Path, export: Path) -> None:
    path = Path(shutil.copy(export, tmp_path / "wal.sqlite"))
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE extra (a)")
        before = state(path)
        named(path, "wal.sqlite-wal", "close the program that writes it")
        assert state(path) == before
    before = state(path)
    ask("kernels", path)
    assert state(path) == before, "reading a WAL database leaves no -wal and no -shm"


@pytest.mark.parametrize(
    ("place", "name", "error", "said"),
    [
        (Path, "open", PermissionError(13, "Permission denied"), "check its permissions"),
        (sqlite3, "connect", sqlite3.OperationalError("unable to open"), "cannot be opened"),
    ],
)
def test_what_may_not_be_opened(
    export: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: Any,
    name: str,
    error: Exception,
    said: str,
) -> None:
    """Root may open all files."""

    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(place, name, refuse)
    named(export, said)


# Names


STRANGE = [
    *("100% %41%00", "what?mode=rw#1", "ünïcödé 日本語 🙂", 'it\'s "q"', "[1-2]*", "$HOME;a&b"),
    *("back\\slash", "-dash", "two\nlines\tab", "~", "x.nsys-rep", "esc\x1b[31m\u202eleft"),
    os.fsdecode(b"latin-\xe9\xff"),
]


@pytest.mark.slow
@pytest.mark.parametrize("stem", STRANGE)
def test_strange_names_work_and_are_escaped(tmp_path: Path, export: Path, stem: str) -> None:
    path, link = tmp_path / f"{stem}.sqlite", tmp_path / "link.sqlite"
    shutil.copy(export, path)
    link.symlink_to(path)
    answer = ask("kernels", path, "--format", "csv")
    assert len(answer.csv) == 4
    assert ask("kernels", link, "--format", "csv").text == answer.text
    assert rows_of("info", path)[0]["report"] == str(path)
    ask("info", path, "-o", tmp_path / "info.parquet")
    for command, form in (("summarize", "table"), ("info", "csv"), ("info", "markdown")):
        assert not re.search("[\x1b\u202e]", ask(command, path, "--format", form).text)
    assert {*tmp_path.iterdir()} == {path, link, tmp_path / "info.parquet"}
    os.truncate(path, 5000)
    message = ask("kernels", path, expect=1).stderr
    assert "is truncated" in message
    assert not re.search("[\x1b\u202e]", message)


@needs_reports
def test_hints_name_the_command_that_reads_it_and_keep_the_folder() -> None:
    memory, nsys, ncu = (REPORTS / name for name in ("torch_memory", "nsys", "ncu/gene6rank"))
    assert f"`nsightpy memory-usage {memory}`" in ask("kernels", memory, expect=1).stderr
    assert f"`nsightpy roofline {ncu}`" in ask("kernels", ncu, expect=1).stderr
    assert f"`nsightpy summarize {nsys}`" in ask("roofline", nsys, expect=1).stderr
    snapshot = memory / "train_ctx128_bf16.pickle"
    assert rows_of("info", snapshot)[0]["kind"] == "snapshot"
