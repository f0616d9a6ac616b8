"""What cannot be answered: exit code 1 or 2 and one message that says which, what, and what to do.

And what must be answered although its name is strange.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nsightpy.readers.nsys.tables import EXPORT_TABLES
from tests.support.full_export import small
from tests.support.reports import (
    COMMANDS,
    REPORTS,
    Answer,
    ask,
    needs_reports,
    refused,
    rows_of,
    state,
)

EXPORT = "nsys export --type sqlite"
OTHER_KIND = f"is no report of a kind that|{EXPORT}"
NO_TRACE = f"is JSON, but does not begin as a trace|{EXPORT}"
CUT = "is truncated|copy or export it again"


@pytest.fixture(scope="session")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small(tmp_path_factory.mktemp("good") / "good.sqlite").write()


@pytest.fixture(autouse=True)
def _no_tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NSIGHTPY_CACHE_DIR", str(tmp_path / "cache"))


def named(path: Path | str, *words: str, command: str = "kernels") -> None:
    """The request about a path is refused with a message that names it and says these words."""
    message = refused(command, path)
    for word in (str(path), *words):
        assert word in message


# What is no report


@pytest.mark.parametrize(
    ("asked", "made", "content", "words"),
    [
        ("rank*.sqlite", "", b"", "matches no file|check the pattern"),
        ("empty", "empty/", b"", "holds no Nsight Systems report|nsys export --type sqlite"),
        ("runs", "runs/first/nsys/r.sqlite", 1.0, "holds no Nsight Systems report|runs/first/nsys"),
        *((name, name, b"", "is empty|export it again") for name in ("e.sqlite", "e.db", "e")),
        ("notes.txt", "notes.txt", b"SQLite format 4? No: plain text.\n" * 99, OTHER_KIND),
        ("noname", "noname", b"x" * 99, OTHER_KIND),
        ("t.sqlite", "t.sqlite", b'{"a": 1}' * 99, f"is not an SQLite file, whatever its|{EXPORT}"),
        ("n.json", "n.json", '\ufeff {"name": "x"}'.encode() * 99, NO_TRACE),
        ("list.json", "list.json", b"[1, 2]" * 99, NO_TRACE),
        *(("cut.sqlite", "cut.sqlite", share, CUT) for share in (0.01, 0.5, 0.999)),
        *(("cut.sqlite", "cut.sqlite", size, "is not an SQLite file") for size in (1, 15)),
        *(("cut.sqlite", "cut.sqlite", size, "is truncated") for size in (16, 99, 100, 4096)),
    ],
)
def test_what_is_no_report(
    asked: str, made: str, content: bytes | float, words: str, tmp_path: Path, export: Path
) -> None:
    """`content` is what the file holds: bytes, so many bytes of an export, or a share of it."""
    path = tmp_path / made
    (path if made.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
    if not path.is_dir():
        whole = export.read_bytes()
        length = int(content * len(whole)) if isinstance(content, float) else content
        path.write_bytes(length if isinstance(length, bytes) else whole[:length])
    named(tmp_path / asked, *words.split("|"))


@pytest.mark.parametrize("command", COMMANDS)
def test_database_of_something_else(tmp_path: Path, command: str) -> None:
    other = tmp_path / "places.sqlite"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE kernels (name TEXT)")
    named(other, "no Nsight Systems export", "nsys export --type sqlite", command=command)
    named(tmp_path / "gone.sqlite", "no such file", "check the path", command=command)


def test_any_table_of_an_export_is_enough(tmp_path: Path) -> None:
    """With `nsys export --tables` everything that does not match is left out."""
    for place, table in enumerate(("NVTX_EVENTS", "OSRT_API", "StringIds", "GPU_METRICS")):
        assert table.startswith(EXPORT_TABLES)
        path = tmp_path / f"{place}.sqlite"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"CREATE TABLE {table} (start INT, end INT, eventType INT)")
            connection.commit()
        assert "no GPU work" in ask("kernels", path).stderr


def test_nsight_compute_reports_belong_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "kernels.ncu-rep").write_bytes(b"NVR\x00")
    for command in set(COMMANDS) - {"info"}:
        named(tmp_path / "kernels.ncu-rep", "Nsight Compute", "Nsight Systems", command=command)


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


def denied(error: type[Exception], *words: object) -> Callable[..., Any]:
    """What refuses to open a file, as root may open all of them."""

    def refuse(*_: object, **__: object) -> None:
        raise error(*words)

    return refuse


@pytest.mark.parametrize(
    ("place", "name", "refuse", "said"),
    [
        (Path, "open", denied(PermissionError, 13, "Permission denied"), "check its permissions"),
        (
            sqlite3,
            "connect",
            denied(sqlite3.OperationalError, "unable to open"),
            "cannot be opened",
        ),
    ],
)
def test_what_may_not_be_opened(
    export: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: object,
    name: str,
    refuse: Callable[..., Any],
    said: str,
) -> None:
    monkeypatch.setattr(place, name, refuse)
    named(export, said)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
@pytest.mark.parametrize("name", ["pipe", "pipe.sqlite", "pipe.nsys-rep", "pipe.csv"])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    found: list[Answer] = []

    def wait() -> None:
        found.append(ask("kernels", tmp_path / name, expect=1))

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(10)
    assert found, "it waits for ever"
    assert "is a pipe or a device" in found[0].stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no devices there")
def test_devices_are_refused() -> None:
    for name in ("/dev/null", "/dev/zero"):
        named(name, "is a pipe or a device")


def test_symbolic_links(tmp_path: Path, export: Path) -> None:
    (tmp_path / "broken.sqlite").symlink_to(tmp_path / "nowhere.sqlite")
    named(tmp_path / "broken.sqlite", "no such file")
    (tmp_path / "link.sqlite").symlink_to(export)
    assert ask("kernels", tmp_path / "link.sqlite").stdout == ask("kernels", export).stdout


# Names that must work


STRANGE = [
    *("100% %41%00", "what?mode=rw#1", "ünïcödé 日本語 🙂", 'it\'s "q"', "[1-2]*", "$HOME;a&b"),
    *("back\\slash", "-dash", "two\nlines\tab", "~", "x.nsys-rep", "esc\x1b[31m\u202eleft"),
]


@pytest.mark.slow
@pytest.mark.parametrize("stem", STRANGE)
def test_strange_names_work(tmp_path: Path, export: Path, stem: str) -> None:
    path = tmp_path / f"{stem}.sqlite"
    shutil.copy(export, path)
    assert len(ask("kernels", path, "--format", "csv").csv) == 4
    assert rows_of("info", path)[0]["report"] == str(path)
    for command, form in (("summarize", "table"), ("info", "csv"), ("info", "markdown")):
        said = ask(command, path, "--format", form).everything
        assert b"\x1b" not in said
        assert "\u202e".encode() not in said
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux only")
def test_names_that_are_no_utf8_work(tmp_path: Path, export: Path) -> None:
    path = tmp_path / os.fsdecode(b"latin-\xe9\xff.sqlite")
    shutil.copy(export, path)
    for form in ("table", "csv", "json", "markdown"):
        ask("info", path, "--format", form)
    ask("info", path, "--format", "parquet", "-o", tmp_path / "info.parquet")
    os.truncate(path, 5000)
    assert "is truncated" in refused("kernels", path)


def test_error_messages_escape_names(tmp_path: Path) -> None:
    message = refused("kernels", tmp_path / "esc\x1b[31m\u202e.sqlite")
    assert "\\x1b[31m\\u202e" in message
    assert not re.search("[\x1b\u202e]", message)


@needs_reports
def test_hints_name_the_command_that_reads_it_and_keep_the_folder() -> None:
    memory, nsys, ncu = (REPORTS / name for name in ("torch_memory", "nsys", "ncu/gene6rank"))
    assert f"`nsightpy memory-usage {memory}`" in ask("kernels", memory, expect=1).stderr
    assert f"`nsightpy roofline {ncu}`" in ask("kernels", ncu, expect=1).stderr
    assert f"`nsightpy summarize {nsys}`" in ask("roofline", nsys, expect=1).stderr
    snapshot = memory / "train_ctx128_bf16.pickle"
    assert rows_of("info", snapshot)[0]["kind"] == "snapshot"
