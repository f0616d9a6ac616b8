"""Reports read on a real Dask cluster: the same answers, failures named, only paths travel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from reports import refused
from simulator import PRESETS

from nsightpy.rank_set import open_ranks
from nsightpy.verbs.kernels import kernels
from nsightpy.verbs.ranks import ranks

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four ranks of a small job."""
    folder = tmp_path_factory.mktemp("job")
    PRESETS["pipeline_4"].write(folder)
    return folder


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of two worker processes on this machine."""
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        local_directory=str(tmp_path_factory.mktemp("dask")),
    ) as cluster:
        yield str(cluster.scheduler_address)


@pytest.mark.filterwarnings("default")
def test_a_cluster_answers_as_one_process_does(job: Path, address: str) -> None:
    assert ranks(job, dask=address) == ranks(job, jobs=1)
    assert kernels(job, by="rank", dask=address) == kernels(job, by="rank", jobs=1)


@pytest.mark.filterwarnings("default")
def test_a_client_serves_again_and_broken_reports_are_named(job: Path, address: str) -> None:
    (job / "pipeline_4_rank9.sqlite").write_bytes(b"no database" * 1000)
    with distributed.Client(address) as client:
        for _ in range(2):
            found = open_ranks(job, dask=client)
            assert len(ranks(found)) == 4
            assert [Path(one.path).name for one in found.failures] == ["pipeline_4_rank9.sqlite"]
    (job / "pipeline_4_rank9.sqlite").unlink()


@pytest.mark.filterwarnings("default")
def test_nobody_at_the_address(job: Path, tmp_path: Path) -> None:
    said = refused("ranks", job, "--dask", "nonsense://x", code=2)
    assert "no Dask scheduler answers at nonsense://x" in said
    said = refused("ranks", job, "--dask", tmp_path / "absent.json", code=2)
    assert "absent.json" in said
