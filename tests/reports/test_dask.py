"""Reports read on a real Dask cluster: the same answers, failures named, only paths travel."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from simulator import PRESETS

from nsightpy.commands.headroom.command import headroom
from nsightpy.commands.info import info
from nsightpy.commands.kernels import kernels
from nsightpy.commands.memory_usage.command import memory_usage
from nsightpy.commands.ranks.command import ranks
from nsightpy.commands.roofline.command import roofline
from nsightpy.errors import UsageError
from nsightpy.report_sets.opening import open_ranks
from nsightpy.reports.profiles import NsysReport
from nsightpy.workers import dask as dask_workers
from tests.support.reports import ROOT, refused

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

SAMPLES = ROOT / "sample_reports"
NCU_PAGE = SAMPLES / "kernels_h100.ncu.csv"
SNAPSHOT = SAMPLES / "training_memory.pickle"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four ranks of a small job."""
    folder = tmp_path_factory.mktemp("job")
    PRESETS["pipeline_4"].write(folder)
    return folder


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of two worker processes on this machine; what kills one is not tried again."""
    sizes = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    folder = str(tmp_path_factory.mktemp("dask"))
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(**sizes, local_directory=folder) as cluster,
    ):
        yield str(cluster.scheduler_address)


def test_a_cluster_answers_as_one_process_does(job: Path, address: str) -> None:
    assert ranks(job, dask=address) == ranks(job, jobs=1)
    assert kernels(job, by="rank", dask=address) == kernels(job, by="rank", jobs=1)


def test_a_client_serves_again_and_broken_reports_are_named(job: Path, address: str) -> None:
    (job / "pipeline_4_rank9.sqlite").write_bytes(b"no database" * 1000)
    with distributed.Client(address) as client:
        for _ in range(2):
            found = open_ranks(job, dask=client)
            assert len(ranks(found)) == 4
            assert [Path(one.path).name for one in found.failures] == ["pipeline_4_rank9.sqlite"]
    (job / "pipeline_4_rank9.sqlite").unlink()


def test_reports_of_ncu_and_snapshots_too(address: str) -> None:
    assert roofline(NCU_PAGE, dask=address) == roofline(NCU_PAGE)
    assert memory_usage(SNAPSHOT, dask=address).rows == memory_usage(SNAPSHOT).rows
    commands: list[tuple[Callable[..., Any], Path]] = [
        (roofline, NCU_PAGE),
        (memory_usage, SNAPSHOT),
        (partial(headroom, ncu=NCU_PAGE), SAMPLES / "single_process.sqlite"),
        (info, NCU_PAGE),
    ]
    for command, report in commands:
        with pytest.raises(UsageError, match="no Dask scheduler answers at nonsense://x"):
            command(report, dask="nonsense://x")


def test_what_is_not_there(job: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for nobody in ("nonsense://x", str(job / "absent.json")):
        said = refused("ranks", job, "--dask", nobody, code=2)
        assert f"no Dask scheduler answers at {nobody}" in said
    monkeypatch.chdir(job.parent)
    said = refused("ranks", job.name, "--dask", address)
    assert "pipeline_4_rank0.sqlite: is not where the Dask worker looks for it" in said
    assert "absolute paths" in said


def test_workers_of_another_version(
    job: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = dask_workers.__version__
    monkeypatch.setattr(dask_workers, "__version__", "7.0")
    said = refused("ranks", job, "--dask", address, code=2)
    assert f"the Dask workers have nsightpy {ours}, not 7.0" in said


def test_a_scheduler_without_workers(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_workers, "WORKERS_PATIENCE_S", 0.5)
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None) as empty:
        address = empty.scheduler_address
        said = refused("ranks", job, "--dask", address, code=2)
    assert f"no worker came to the Dask scheduler {address}" in said


def die_of_rank_2(report: NsysReport) -> str:
    """Ends the process that reads rank 2, as a lack of memory does."""
    if "rank2" in report.path.name:
        os._exit(1)
    return report.path.name


def test_a_report_that_kills_its_worker_is_left_out(job: Path, address: str) -> None:
    # one for each worker: what waits on a worker that dies counts as a suspect, too
    paths = [job / f"pipeline_4_rank{rank}.sqlite" for rank in (1, 2)]
    mapped = open_ranks(paths, dask=address).map(die_of_rank_2)
    assert mapped.values == ["pipeline_4_rank1.sqlite"]
    (failure,) = mapped.failures
    assert Path(failure.path).name == "pipeline_4_rank2.sqlite"
    assert "the Dask workers that read it died" in str(failure)
