"""Reports of which columns are kept answer like those of which none are, on any disk."""

import errno
import gzip
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from nsightpy.frames import SCHEMAS
from nsightpy.reports import system
from nsightpy.reports.system import LEAST_BYTES
from nsightpy.store import store
from nsightpy.store.cache import cache_folder
from nsightpy.units import format_bytes
from tests.support.hostile_export import SECRET, hostile_report
from tests.support.reports import ROOT, Answer, ask
from tests.support.stored import (
    everything,
    files,
    keep_small,
    leftovers,
    odd_export,
    opened,
    rows,
    stores,
)

TRACES = sorted((ROOT / "sample_reports" / "torch_2rank").glob("*.json.gz"))
FRAMES = ("kernels", "memory_operations", "api_calls", "nvtx_ranges", "mpi_calls", "os_calls")
SAMPLE = ROOT / "sample_reports" / "training_4rank" / "train_rank0.sqlite"
NOT_KEPT = b"What was read is not kept for the next question"
COMMANDS = ("kernels", "findings")
Expected = dict[Path, dict[str, Answer]]
reports = pytest.mark.parametrize("path", [SAMPLE, TRACES[0]], ids=["export", "trace"])


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_small(monkeypatch, tmp_path / "cache")


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("odd")
    return [odd_export(folder / f"{n}.sqlite", seed=n) for n in range(2)]


@pytest.fixture(params=["export", "trace"])
def pair(request: pytest.FixtureRequest, exports: list[Path]) -> list[Path]:
    """Two reports of one kind."""
    return exports if request.param == "export" else TRACES


def test_what_is_kept_says_the_same_and_is_the_users_own(pair: list[Path]) -> None:
    mask = os.umask(0)
    try:
        said = everything(pair[0])
    finally:
        os.umask(mask)
    assert len(files()) > 10
    assert said == everything(pair[0]) == everything(pair[0], use_cache=False)
    assert len(stores()) == 1
    assert leftovers() == []
    modes = {stat.S_IMODE(path.stat().st_mode) for path in files()}
    assert modes == {0o600}
    folders = [cache_folder(), *stores()]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


questions = st.sampled_from(FRAMES).flatmap(
    lambda frame: st.tuples(
        st.just(frame),
        st.lists(st.sampled_from(SCHEMAS[frame].names), min_size=1, max_size=4, unique=True),
    )
)


@pytest.mark.slow
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=st.lists(st.tuples(questions, st.booleans()), min_size=1, max_size=6))
def test_rows_do_not_depend_on_what_was_asked_before(
    exports: list[Path], asked: list[tuple[tuple[str, list[str]], bool]]
) -> None:
    whole = opened(exports[0], use_cache=False)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("NSIGHTPY_CACHE_DIR", folder)
        report = opened(exports[0])
        for (frame, columns), again in asked:
            report = opened(exports[0]) if again else report
            expected = rows(whole.frame(frame).select(columns))
            assert rows(report.frame(frame, columns)) == expected
        assert everything(exports[0]) == everything(exports[0], use_cache=False)


@pytest.mark.parametrize("kind", ["export", "trace"])
def test_no_secret_is_kept(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"{SECRET}_host_41.1.pt.trace.json"
    if kind == "export":
        path = hostile_report(tmp_path)
    else:
        trace = gzip.decompress(TRACES[0].read_bytes()).decode()
        named = f'{{"traceName": "/home/{SECRET}", "INFO": {{"user": "{SECRET}"}},'
        path.write_text(trace.replace("{", named, 1))
    assert SECRET.encode() in path.read_bytes()
    everything(path)
    assert files()
    assert [file for file in files() if SECRET.encode() in bytes(file) + file.read_bytes()] == []


def test_small_reports_are_not_kept(exports: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "LEAST_BYTES", LEAST_BYTES)
    for path in (exports[0], TRACES[0]):
        assert path.stat().st_size < LEAST_BYTES
        everything(path)
    assert not cache_folder().exists()


def test_stores_are_entries_of_the_cache(exports: list[Path]) -> None:
    for path in exports:
        everything(path)
    size = sum(file.stat().st_size for file in files())
    shown = ask("cache").text
    assert ": 2 entries, " in shown
    assert format_bytes(size) in shown
    assert "removed 2 entries" in ask("cache", "--clear").text
    assert list(cache_folder().iterdir()) == []


# A cache that cannot be written costs a note, and nothing else; without one nothing is left


def answered(path: Path) -> dict[str, Answer]:
    return {command: ask(command, path, "--format", "csv") for command in COMMANDS}


@pytest.fixture(scope="module")
def expected() -> Expected:
    """What is said of reports of which nothing is kept."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(system, "LEAST_BYTES", 2**62)
        return {path: answered(path) for path in (SAMPLE, TRACES[0])}


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
    cache_folder().parent.mkdir()
    cache_folder().write_text("")


def a_store_is_a_file(path: Path) -> None:
    answered(path)
    (folder,) = stores()
    shutil.rmtree(folder)
    folder.write_text("")


@pytest.mark.slow
@reports
@pytest.mark.parametrize("make", [the_cache_is_a_file, a_store_is_a_file])
def test_what_is_no_folder(path: Path, expected: Expected, make: Callable[[Path], None]) -> None:
    make(path)
    assert_one_note(path, expected, "File exists")


@pytest.mark.slow
@reports
@pytest.mark.parametrize(
    "place, name, number",
    [
        (Path, "mkdir", errno.EROFS),
        (tempfile, "mkdtemp", errno.EACCES),
        (store, "write", errno.ENOSPC),
        (Path, "replace", errno.EDQUOT),
        ("fcntl", "flock", errno.ENOLCK),
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
    shutil.rmtree(cache_folder())
    assert_one_note(path, expected, os.strerror(number))
    assert files() == []


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


@pytest.mark.slow
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
