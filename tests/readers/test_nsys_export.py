"""sqlite_of: which export is read, when it is made anew, what it never touches."""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from nsightpy.errors import ReportError, ToolNotFoundError
from nsightpy.readers.export.nsys_export import export_fault, last_words, sqlite_of
from tests.support.nsys_stand_in import Bench, set_up


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return set_up(tmp_path, monkeypatch)


def make_sqlite(path: Path, table: str = "StringIds") -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE {table} (id INTEGER, value TEXT)")
        connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", enumerate(["text " * 99] * 99))
        connection.commit()
    return path


def age(path: Path, seconds: float) -> None:
    state = path.stat()
    os.utime(path, (state.st_atime - seconds, state.st_mtime - seconds))


def made_by(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("SELECT version FROM STAND_IN").fetchone()[0])


def test_exports_once_then_reads_the_cache(bench: Bench) -> None:
    first = sqlite_of(bench.report)
    again = sqlite_of(bench.report)
    assert first == again
    assert first.notes == ()
    assert first.path.parent == bench.cache
    assert first.path.name.startswith("train.rank0-")
    assert made_by(first.path) == "2024.2"
    assert [run[-1] for run in bench.runs()] == [str(bench.report)] * 2  # once with --include-json
    assert bench.listing(bench.cache) == [first.path.name]


@pytest.mark.parametrize(
    ("version", "tries", "kept"),
    [
        ("2020.4", 3, set()),
        ("2022.4", 2, {"--lazy=true"}),
        ("2024.2", 2, {"--lazy=true"}),
        ("2026.4", 1, {"--lazy=true", "--include-json=true"}),
    ],
)
def test_options_that_nsys_is_too_old_for_are_left_out(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, version: str, tries: int, kept: set[str]
) -> None:
    monkeypatch.setenv("STAND_IN_NSYS_VERSION", version)
    assert made_by(sqlite_of(bench.report).path) == version
    tried = [{"--lazy=true", "--include-json=true"} & set(run) for run in bench.runs()]
    assert (len(tried), len(tried[0]), tried[-1]) == (tries, 2, kept)


@pytest.mark.parametrize(
    "name",
    [b"old.qdrep", b"a b#c?d%20.nsys-rep", b"-f.nsys-rep", b'it\'s "q".qdrep', b"\xff.nsys-rep"],
)
def test_odd_names(bench: Bench, monkeypatch: pytest.MonkeyPatch, name: bytes) -> None:
    report = bench.report.rename(bench.report.with_name(os.fsdecode(name)))
    found = sqlite_of(report)
    assert export_fault(found.path) is None
    monkeypatch.chdir(report.parent)
    assert sqlite_of(Path(report.name)) == found


def test_a_changed_report_is_exported_again(bench: Bench) -> None:
    paths = {sqlite_of(bench.report).path}
    bench.write_report("2020.1.1.1", "other content")
    paths.add(sqlite_of(bench.report).path)
    age(bench.report, 3600)
    paths.add(sqlite_of(bench.report).path)
    # Same size and time, another file: as after `mv` of a new report onto the old.
    state = bench.report.stat()
    other = bench.report.with_name("other")
    other.write_bytes(bench.report.read_bytes().replace(b"other", b"OTHER"))
    os.utime(other, ns=(state.st_atime_ns, state.st_mtime_ns))
    paths.add(sqlite_of(other.replace(bench.report)).path)
    assert len(paths) == 4


@pytest.mark.parametrize("left", ["cut", "folder", "-journal", "-wal"])
def test_what_lies_in_the_place_of_a_cache_entry_is_replaced(bench: Bench, left: str) -> None:
    entry = sqlite_of(bench.report).path
    os.truncate(entry, entry.stat().st_size // 2 if left == "cut" else 0)
    if left == "folder":
        entry.unlink()
        (entry / "folder").mkdir(parents=True)
    elif left != "cut":
        entry.with_name(entry.name + left).write_bytes(b"x" * 600)
    assert sqlite_of(bench.report).path == entry
    assert export_fault(entry) is None
    assert bench.listing(bench.cache) == [entry.name]


def test_fresh_export_beside_the_report(bench: Bench) -> None:
    beside = make_sqlite(bench.report.with_suffix(".sqlite"))
    for use_cache in (True, False):
        found = sqlite_of(bench.report, use_cache=use_cache)
        assert (found.path, found.notes) == (beside, ())
    assert bench.runs() == []
    assert not bench.cache.exists()


def test_broken_exports_beside_the_report(bench: Bench) -> None:
    beside = bench.report.with_suffix(".sqlite")
    journal = beside.with_name(beside.name + "-journal")
    whole = make_sqlite(bench.root / "whole").read_bytes()
    other = make_sqlite(bench.root / "other", "Alien").read_bytes()
    for content, why in [
        (b"", "is empty"),
        (b"plain text, no database", "is no report of a kind"),
        (other, "no such table: StringIds"),
        (whole[: len(whole) // 2], "is truncated"),
        (whole, "was not written to its end"),
        (whole, "is older than the report"),
    ]:
        beside.write_bytes(content)
        if why.endswith("end"):
            journal.write_bytes(b"journal")
        if why.endswith("report"):
            age(beside, 60)
        (note,) = sqlite_of(bench.report).notes
        assert f"{beside.name} beside the report was not used: " in note
        assert why in note
    beside.unlink()
    beside.mkdir()
    assert "or a directory" in sqlite_of(bench.report).notes[0]


def test_without_nsys(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = sqlite_of(bench.report)
    monkeypatch.setenv("NSIGHTPY_NSYS", str(bench.root / "gone"))
    assert sqlite_of(bench.report) == entry, "the cache still serves"
    with pytest.raises(ToolNotFoundError, match="NSIGHTPY_NSYS is set to"):
        sqlite_of(bench.report, use_cache=False)
    monkeypatch.delenv("NSIGHTPY_NSYS")
    monkeypatch.setenv("PATH", str(bench.temporary))
    with pytest.raises(ToolNotFoundError) as caught:
        sqlite_of(bench.report, use_cache=False)
    message = str(caught.value)
    assert message.startswith(f"{bench.report}: nsys was not found\n")
    for words in (
        "it is looked for in PATH",
        "Install Nsight Systems, or set NSIGHTPY_NSYS",
        f"nsys export --type sqlite {bench.report.name}",
    ):
        assert words in message


@pytest.mark.parametrize(
    ("name", "problem"),
    [("missing", "no such file"), ("", "is a pipe, a device"), ("empty", "is empty")],
)
def test_what_is_no_report(bench: Bench, name: str, problem: str) -> None:
    (bench.report.parent / "empty.nsys-rep").touch()
    with pytest.raises(ReportError, match=problem) as caught:
        sqlite_of(bench.report.parent / (name and f"{name}.nsys-rep"))
    assert caught.value.advice
    assert bench.runs() == []


def test_nothing_is_written_beside_the_report(bench: Bench) -> None:
    folder = bench.report.parent
    age(make_sqlite(folder / "train.rank0.sqlite"), 60)

    def seen() -> list[tuple[Path, int, int]]:
        held = [folder, *sorted(folder.rglob("*"))]
        return [(path, path.stat().st_mtime_ns, path.stat().st_size) for path in held]

    before = seen()
    sqlite_of(bench.report)
    sqlite_of(bench.report, use_cache=False)
    assert seen() == before


IN_A_FORK = """
import multiprocessing
def work():
    assert sqlite_of(report, use_cache=False).path.exists()
worker = multiprocessing.get_context("fork").Process(target=work)
worker.start(); worker.join(); assert worker.exitcode == 0
"""
TWICE = """
first, second = (sqlite_of(report, use_cache=False).path for _ in range(2))
assert first == second and first.exists()
"""


@pytest.mark.parametrize("code", [TWICE, IN_A_FORK], ids=["itself", "a fork of it"])
def test_without_cache_until_the_process_ends(bench: Bench, code: str) -> None:
    assert bench.start(code).wait() == 0
    assert not bench.cache.exists()
    assert bench.listing(bench.temporary) == []
    assert len(bench.runs()) == 2


def test_progress_and_silence(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    told: list[tuple[float | None, str]] = []
    sqlite_of(bench.report, progress=lambda fraction, text: told.append((fraction, text)))
    doing = "exporting train.rank0.nsys-rep with nsys 2024.2.3.38"
    assert told == [(None, doing), (1.0, doing)]
    assert capfd.readouterr() == ("", "")


def test_last_words() -> None:
    said = "Exporting\n\nNo\x07 luck [1/2]\r\n\n" + "x" * 999
    assert last_words(said) == ["Exporting", "No  luck [1/2]", "x" * 300]
    assert len(last_words("\n".join(map(str, range(99))))) == 15


def test_exports_are_private(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exports hold the environment of the profiled job; ours is in nothing that we write."""
    monkeypatch.setenv("SOME_TOKEN", "hunter2-hunter2")
    entry = sqlite_of(bench.report).path
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    assert stat.S_IMODE(bench.cache.stat().st_mode) == 0o700
    files = [path for path in bench.root.rglob("*") if path.is_file()]
    assert entry in files
    assert not [path for path in files if b"hunter2" in path.read_bytes()]
