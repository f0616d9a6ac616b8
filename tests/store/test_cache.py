"""The cache of exports: its place, its limit, what is removed first and what never."""

import errno
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import platformdirs
import pytest

from nsightpy.errors import ReportError, UsageError
from nsightpy.readers.export.nsys_export import sqlite_of
from nsightpy.store import cache as export_cache
from nsightpy.store.cache import (
    CacheUsage,
    cache_folder,
    cache_limit,
    cache_usage,
    clear_cache,
    is_locked,
    lock_of,
    locked,
    trim_cache,
)
from tests.support.nsys_stand_in import Bench, set_up


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return set_up(tmp_path, monkeypatch)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NSIGHTPY_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("NSIGHTPY_CACHE_SIZE", raising=False)
    monkeypatch.setattr(export_cache, "_handed_out", set())
    folder = tmp_path / "exports"
    folder.mkdir()
    return folder


def entry(cache: Path, number: int, hours: float = 0, size: int = 1000) -> Path:
    """An export last used so many hours ago."""
    path = cache / f"report-{number:024x}.sqlite"
    path.write_bytes(b"x" * size)
    used = time.time() - 3600 * hours
    os.utime(path, (used, used))
    return path


def names(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir())


def test_folder_and_limit(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == cache
    assert cache_limit() == 20 * 2**30
    sizes = {"50G": 50 * 2**30, "1.5 MiB": 3 * 2**19, "800kb": 800 * 1024, "0": 0}
    for text, size in sizes.items():
        monkeypatch.setenv("NSIGHTPY_CACHE_SIZE", text)
        assert cache_limit() == size
    for text in ("much", "-1", "5X", "G", "nan"):
        monkeypatch.setenv("NSIGHTPY_CACHE_SIZE", text)
        with pytest.raises(UsageError, match="NSIGHTPY_CACHE_SIZE"):
            cache_limit()
    monkeypatch.delenv("NSIGHTPY_CACHE_DIR")
    assert cache_folder() == platformdirs.user_cache_path("nsightpy") / "exports"


def test_usage_counts_exports_only(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_usage() == CacheUsage(cache, 0, 0, 20 * 2**30)
    entry(cache, 1, size=10)
    entry(cache, 2, size=32)
    (cache / "README.txt").write_text("of the user")
    assert (cache_usage().files, cache_usage().bytes) == (2, 42)
    monkeypatch.setenv("NSIGHTPY_CACHE_DIR", str(cache / "none"))
    assert (cache_usage().files, clear_cache().files) == (0, 0)
    assert not (cache / "none").exists()


def test_what_is_no_file_in_a_store_is_counted(cache: Path) -> None:
    store = cache / f"report-{1:024x}.columns"
    store.mkdir()
    (store / "kernels.columns").write_bytes(b"x" * 1000)
    for name, target in (("circle", "circle"), ("nowhere", "none"), ("large", "/proc/kcore")):
        (store / name).symlink_to(target)
    usage = cache_usage()
    assert (usage.files, 1000 <= usage.bytes < 2000) == (1, True)
    assert clear_cache() == replace(usage, removed=True)
    assert names(cache) == []


def test_unused_for_longest_goes_first(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSIGHTPY_CACHE_SIZE", "2500")
    new = entry(cache, 0)
    kept = [entry(cache, 1, hours=1), new]
    entry(cache, 2, hours=3)
    entry(cache, 3, hours=2)
    trim_cache(keep=new)
    assert names(cache) == sorted(path.name for path in kept)
    trim_cache(keep=new)
    assert len(names(cache)) == 2


def test_many_small_writers_keep_the_limit(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process writes next to nothing, and there is no end of processes."""
    monkeypatch.setenv("NSIGHTPY_CACHE_SIZE", "20000")
    random.seed(1)
    for number in range(400):
        written = entry(cache, number, hours=9, size=200)
        trim_cache(keep=written, written=200)
    assert cache_usage().bytes < 25_000


def test_what_is_in_use_stays(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSIGHTPY_CACHE_SIZE", "0")
    just_made = entry(cache, 1, hours=9)
    handed_out = entry(cache, 2, hours=9)
    export_cache._handed_out.add(handed_out)
    recent = entry(cache, 3, hours=0.1)
    held = entry(cache, 4, hours=9)
    entry(cache, 5, hours=9)
    with locked(lock_of(held)):
        trim_cache(keep=just_made)
    assert names(cache) == sorted(each.name for each in (just_made, handed_out, recent, held))


def test_reading_counts_as_use(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSIGHTPY_CACHE_SIZE", "1")
    first = sqlite_of(bench.report).path
    changed = first.stat().st_mtime_ns
    os.utime(first, ns=(0, changed))
    sqlite_of(bench.report)
    assert first.stat().st_atime_ns > changed
    assert first.stat().st_mtime_ns == changed
    bench.write_report("2020.1.1.1", "another")
    second = sqlite_of(bench.report).path
    assert first.exists()
    os.utime(first, (0, 0))
    monkeypatch.setattr(export_cache, "_handed_out", set())
    bench.write_report("2020.1.1.1", "a third one")
    third = sqlite_of(bench.report).path
    assert bench.listing(bench.cache) == sorted([second.name, third.name])


def test_clear(cache: Path) -> None:
    entry(cache, 1, size=10)
    held = entry(cache, 2, size=20)
    in_work = cache / f"{held.name}.abc.part"
    orphan = cache / f"report-{1:024x}.sqlite.abc.part"
    for part in (in_work, orphan):
        part.mkdir()
        (part / "export.sqlite").touch()
    (cache / f"report-{3:024x}.sqlite.lock").touch()
    (cache / "README.txt").write_text("of the user")
    with locked(lock_of(held)):
        assert clear_cache().bytes == 10
        left = sorted(["README.txt", held.name, f"{held.name}.lock", in_work.name])
        assert names(cache) == left
    assert clear_cache().bytes == 20
    assert names(cache) == ["README.txt"]


def test_who_waits_says_so_once_and_a_released_lock_is_gone(tmp_path: Path) -> None:
    path, waits = tmp_path / "lock", list[str]()
    assert not is_locked(path)

    def second() -> None:
        with locked(path, lambda: waits.append("waits")):
            assert is_locked(path)
            assert waits == ["waits"]

    with ThreadPoolExecutor(1) as pool:
        with locked(path, lambda: pytest.fail("nobody to wait for")):
            waiter = pool.submit(second)
            while not waits:
                time.sleep(0.01)
            with pytest.raises(TimeoutError):
                waiter.result(timeout=0.5)
        waiter.result(timeout=10)
    assert not path.exists()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_locks_nothing_is_taken_from_others(
    cache: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def no_locks(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", no_locks)
    path = entry(cache, 1, hours=9)
    path.with_name(f"{path.name}.lock").touch()
    monkeypatch.setenv("NSIGHTPY_CACHE_SIZE", "0")
    trim_cache(keep=cache / "other")
    assert path.exists()
    part = cache / f"{path.name}.old.part"
    part.mkdir()
    with pytest.raises(ReportError, match="cannot be written there"), export_cache.alone(path):
        pytest.fail("nobody knows who else is there")
    assert part.exists()
