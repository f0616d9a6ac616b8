"""Reports of which columns are kept answer like those of which none are."""

from __future__ import annotations

import gzip
import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from nsightpy.frames import SCHEMAS
from nsightpy.reports import system
from nsightpy.reports.system import LEAST_BYTES
from nsightpy.store.cache import cache_folder
from nsightpy.units import format_bytes
from tests.support.hostile_export import SECRET, hostile_report
from tests.support.reports import ROOT, ask
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


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
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
