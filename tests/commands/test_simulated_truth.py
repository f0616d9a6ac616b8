"""Simulated jobs: every command finds what is true about them, to the nanosecond."""

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from simulator import PRESETS

from nsightpy import frames
from nsightpy.commands.breakdown.command import BUDGET as BUDGET_FIELDS, breakdown
from nsightpy.commands.info import info
from nsightpy.commands.kernels import kernels
from nsightpy.commands.launches import launches
from nsightpy.commands.memory import memory
from nsightpy.report_sets.opening import open_ranks
from nsightpy.report_sets.rank_set import RankSet
from tests.support.reports import REQUESTS, ask, state

# The jobs, and the evidence by which each tells its ranks.
EVIDENCE = {
    "training_4rank": "NCCL communicator",
    "single_process": "file name",
    "small": "NCCL communicator",
    "ranks_2": "NCCL communicator",
    "pipeline_4": "NCCL communicator",
    "one_report_2rank": "NCCL communicator",
    "graph_nodes": "file name",
    "slurm_zero": "NCCL communicator",
    "stripped": "file name",
    "mpi": "MPI_RANKS",
    "edges": "NCCL communicator",
    "autograd": "NCCL communicator",
    "one_device": "NCCL communicator",
    "no_nvtx": "environment RANK",
    "old": "file name",
    "mid": "environment RANK",
}
SECRET = "do-not-print"
KINDS = {"HtoD": "Host-to-Device", "DtoH": "Device-to-Host", "DtoD": "Device-to-Device"}

Truth = dict[str, Any]
Job = tuple[list[Path], Truth]


BUDGET = [field.name for field in BUDGET_FIELDS]


@pytest.fixture(scope="session")
def job(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Job]:
    """Writes a job once: its reports and its truth."""
    made: dict[str, Job] = {}

    def written(name: str) -> Job:
        if name not in made:
            made[name] = PRESETS[name].write(tmp_path_factory.mktemp(name))
        return made[name]

    return written


each_job = pytest.mark.parametrize("name", EVIDENCE)


@pytest.mark.slow
@each_job
def test_ranks_are_found(name: str, job: Callable[[str], Job]) -> None:
    paths, truth = job(name)
    found = {
        (report.path.name, row["pid"]): row["rank"]
        for report in open_ranks(paths)
        for row in report.processes.to_dict("records")
    }
    assert found == {(rank["report"], rank["pid"]): rank["rank"] for rank in truth["ranks"]}
    hosts = {rank["report"]: rank["host"] for rank in truth["ranks"]}
    for row, path in zip(info(paths).records(), paths, strict=True):
        assert row["rank_source"] == EVIDENCE[name]
        ranks = [rank["rank"] for rank in truth["ranks"] if rank["report"] == path.name]
        assert row["rank"] == (ranks[0] if len(ranks) == 1 else ",".join(map(str, ranks)))
        assert row["host"] == (None if name == "old" else hosts[path.name])


@each_job
def test_time_budget(name: str, job: Callable[[str], Job]) -> None:
    paths, truth = job(name)
    rows = {(row["rank"], row["device"]): row for row in breakdown(paths).records()}
    expected = {(rank["rank"], rank["device"]): rank["budget"] for rank in truth["ranks"]}
    assert rows.keys() == expected.keys()
    for place, budget in expected.items():
        for part in BUDGET:
            assert rows[place][part] == budget[part], (place, part)
    for rank in truth["ranks"]:
        row, idle = rows[rank["rank"], rank["device"]], rank["idle"] or {}
        assert {wait: row[wait] for wait in idle} == idle


@each_job
def test_kernels_of_every_rank_and_of_all(name: str, job: Callable[[str], Job]) -> None:
    """Merged over ranks counts and totals add up, and medians are those of all executions."""
    paths, truth = job(name)
    rows = {(row["rank"], row["Name"]): row for row in kernels(paths, by="rank").records()}
    assert len(rows) == sum(len(rank["kernels"]) for rank in truth["ranks"])
    totals, counts = Counter[str](), Counter[str]()
    for rank in truth["ranks"]:
        for kernel in rank["kernels"]:
            row = rows[rank["rank"], kernel["name"]]
            figures = (row["Instances"], row["Total Time (ns)"], row["Med (ns)"])
            assert figures == (kernel["instances"], kernel["total_ns"], kernel["median_ns"])
            totals[kernel["name"]] += kernel["total_ns"]
            counts[kernel["name"]] += kernel["instances"]
    merged = kernels(paths).records()
    assert {row["Name"]: row["Total Time (ns)"] for row in merged} == totals
    assert {row["Name"]: row["Instances"] for row in merged} == counts
    assert [row["Name"] for row in merged] == sorted(totals, key=lambda n: (-totals[n], n))
    tables = pd.concat([report.kernels.astype({"name": str}) for report in open_ranks(paths)])
    lengths = (tables["end_ns"] - tables["start_ns"]).groupby(tables["name"])
    assert {row["Name"]: row["Med (ns)"] for row in merged} == lengths.median().to_dict()


@each_job
def test_copies_and_memory_sets(name: str, job: Callable[[str], Job]) -> None:
    paths, truth = job(name)
    expected: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for rank in truth["ranks"]:
        parts = [(f"[CUDA memcpy {KINDS[copy['kind']]}]", copy) for copy in rank["copies"]]
        for operation, part in [*parts, ("[CUDA memset]", rank["memsets"])]:
            if part["count"]:
                for place, figure in enumerate(("count", "bytes", "total_ns")):
                    expected[operation][place] += part[figure]
    rows = {str(row["Operation"]): row for row in memory(paths).records()}
    assert rows.keys() == expected.keys()
    for operation, (count, size, total) in expected.items():
        row = rows[operation]
        assert (row["Count"], row["Total Time (ns)"]) == (count, total)
        assert row["Total (MB)"] == pytest.approx(size / 1e6, abs=5e-4)
        assert row["throughput_gb_per_s"] == pytest.approx(size / total, abs=5e-4)
    operations = pd.concat([report.memory_operations for report in open_ranks(paths)])
    assert int(operations["bytes"].sum()) == sum(size for _, size, _ in expected.values())


@each_job
def test_every_call_is_there_and_every_kernel_has_its_launch(
    name: str, job: Callable[[str], Job]
) -> None:
    paths, truth = job(name)
    calls = sum(len(report.frame("api_calls")["start_ns"]) for report in open_ranks(paths))
    table = launches(paths)
    found: Counter[Any] = Counter()
    for row in table.records():
        found[row["rank"]] += int(str(row["count"]))
    orphans = PRESETS[name].orphan_kernels
    assert calls == sum(rank["calls"] - orphans for rank in truth["ranks"])
    for rank in truth["ranks"]:
        instances = sum(kernel["instances"] for kernel in rank["kernels"])
        assert found[rank["rank"]] == instances - orphans
    left_out = [note for note in table.notes if "no recorded launch call" in note]
    assert bool(left_out) == bool(orphans)


def test_order_of_the_arguments_changes_nothing(job: Callable[[str], Job]) -> None:
    paths, _ = job("training_4rank")
    forward = ask("kernels", *paths, "--by", "rank", "--format", "csv").stdout
    assert ask("kernels", *paths[::-1], "--by", "rank", "--format", "csv").stdout == forward
    assert ask("kernels", paths[0].parent, "--by", "rank", "--format", "csv").stdout == forward


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one_report_2rank", "mid"])
def test_nothing_of_the_environment_gets_out(
    name: str, job: Callable[[str], Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NSIGHTPY_CACHE_DIR", str(tmp_path / "cache"))
    paths, _ = job(name)
    assert any(SECRET.encode() in path.read_bytes() for path in paths), "the secret is in there"
    before = [state(path) for path in paths]
    for request in REQUESTS:
        said = ask(*request, *paths, "--format", "json", "-v").everything
        assert SECRET.encode() not in said
        assert b"SECRET_TOKEN" not in said
    assert SECRET not in all_frames(open_ranks(paths))
    assert [state(path) for path in paths] == before
    assert not (tmp_path / "cache").exists(), "an SQLite export needs no cache"


def all_frames(ranks: RankSet) -> str:
    """Everything that the library shows of some reports, as text."""
    shown = [repr(ranks), str(ranks.notes)]
    for report in ranks:
        shown += [repr(report), repr(report.session), repr(report.evidence)]
        for frame in frames.SCHEMAS:
            table = getattr(report, frame, None)
            if isinstance(table, pd.DataFrame):
                shown.append(table.to_csv())
    return "\n".join(shown)
