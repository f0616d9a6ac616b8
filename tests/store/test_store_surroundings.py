"""A cache that cannot be written costs a note, and nothing else; without one nothing is left."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nsightpy.reports import system
from nsightpy.store import cache, store
from tests.support.reports import ROOT, Answer, ask
from tests.support.stored import files, keep_small, leftovers, stores

pytestmark = pytest.mark.slow

SAMPLE = ROOT / "sample_reports" / "training_4rank" / "train_rank0.sqlite"
TRACE = ROOT / "sample_reports" / "torch_2rank" / "train_rank0.pt.trace.json.gz"
NOT_KEPT = b"What was read is not kept for the next question"
COMMANDS = ("kernels", "findings")
Expected = dict[Path, dict[str, Answer]]
POSIX = pytest.mark.skipif(os.name != "posix", reason="mounts, links and locks of POSIX")
reports = pytest.mark.parametrize("path", [SAMPLE, TRACE], ids=["export", "trace"])


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_small(monkeypatch, tmp_path / "cache")


def answered(path: Path) -> dict[str, Answer]:
    return {command: ask(command, path, "--format", "csv") for command in COMMANDS}


@pytest.fixture(scope="module")
def expected() -> Expected:
    """What is said of reports of which nothing is kept."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(system, "LEAST_BYTES", 2**62)
        return {path: answered(path) for path in (SAMPLE, TRACE)}


def assert_one_note(path: Path, expected: Expected, reason: str) -> None:
    """The same figures, and one note more."""
    for command, answer in answered(path).items():
        assert answer.stdout == expected[path][command].stdout
        assert answer.everything.count(NOT_KEPT) == 1
        assert reason in answer.stderr
    assert leftovers() == []


def fails(number: int, *_: object, **__: object) -> Any:
    raise OSError(number, os.strerror(number))


def the_cache_is_a_file(_path: Path) -> None:
    cache.cache_folder().parent.mkdir()
    cache.cache_folder().write_text("")


def a_store_is_a_file(path: Path) -> None:
    answered(path)
    (folder,) = stores()
    shutil.rmtree(folder)
    folder.write_text("")


@reports
@pytest.mark.parametrize("make", [the_cache_is_a_file, a_store_is_a_file])
def test_what_is_no_folder(path: Path, expected: Expected, make: Callable[[Path], None]) -> None:
    make(path)
    assert_one_note(path, expected, "File exists")


@reports
@pytest.mark.parametrize(
    "place, name, number",
    [
        (Path, "mkdir", errno.EROFS),
        (tempfile, "mkdtemp", errno.EACCES),
        (store, "write", errno.ENOSPC),
        (Path, "replace", errno.EDQUOT),
        pytest.param("fcntl", "flock", errno.ENOLCK, marks=POSIX),
    ],
)
def test_what_cannot_be_written(
    path: Path,
    place: Any,
    name: str,
    number: int,
    expected: Expected,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is there already is used; a damaged part of it and what is not costs a note."""
    answered(path)
    place = pytest.importorskip(place) if isinstance(place, str) else place
    monkeypatch.setattr(place, name, partial(fails, number))
    assert answered(path) == expected[path]
    kept = files()
    next(file for file in kept if file.name.startswith("kernels")).write_bytes(b"")
    assert_one_note(path, expected, os.strerror(number))
    shutil.rmtree(cache.cache_folder())
    assert_one_note(path, expected, os.strerror(number))
    assert files() == []


@POSIX
@reports
def test_without_mmap(path: Path, expected: Expected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mmap, "mmap", partial(fails, errno.ENODEV))
    for _ in range(2):
        assert answered(path) == expected[path]
    assert files()


# Runs at the start of each process, of workers as well: so much memory is free, and each folder
# that is made in its place is written down.
AT_START = """
import os
from nsightpy.reports import system

made = system.session_folder

def session_folder():
    with open(os.environ["LOG"], "a") as log:
        print(made(), file=log)
    return made()

system.LEAST_BYTES = 0
system.available_memory = lambda: int(os.environ["FREE"])
system.session_folder = session_folder
"""


@pytest.mark.parametrize("free, jobs, folders", [(2**40, 1, 0), (0, 1, 1), (0, 2, 2)])
def test_without_a_cache_nothing_is_left(
    tmp_path: Path, free: int, jobs: int, folders: int
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    ranks = [SAMPLE.with_name(f"train_rank{rank}.sqlite") for rank in range(2)]
    log = tmp_path / "log"
    log.touch()
    (tmp_path / "sitecustomize.py").write_text(AT_START)
    here = os.pathsep.join(map(str, (tmp_path, ROOT, ROOT / "scripts")))
    words = ["kernels", *map(str, ranks), "--format", "csv"]
    own = {"PYTHONPATH": here, "TMPDIR": str(temporary), "LOG": str(log), "FREE": str(free)}
    command = [sys.executable, "-m", "nsightpy", *words, "--jobs", str(jobs), "--no-cache"]
    ran = subprocess.run(command, env=os.environ | own, capture_output=True, check=True)
    assert ran.stdout == ask(*words, "--jobs", "1").stdout
    assert b"Traceback" not in ran.stderr
    assert len(set(log.read_text().split())) == folders
    assert list(temporary.iterdir()) == []
    assert len(stores()) == 2, "those of the question with a cache"
