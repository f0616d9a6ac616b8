"""The capture wrapper: one report per wanted rank, the bare application in all others."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
WRAPPER = ROOT / "scripts" / "nsys_per_rank.sh"
NSYS = ROOT / "tests" / "stand_ins" / "nsys_profile"
RANKS = 4
STOP = "--capture-range-end=stop"
ANY_NAME = "--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0"


class Job:
    """Four ranks on two nodes, each started as a launcher starts it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.application = folder / "app lication"
        self.application.write_text('#!/bin/bash\nprintf "%s|" "$@" >> ran; echo >> ran\nexit 5\n')
        self.application.chmod(0o755)

    def rank(self, rank: int, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
        launched = ("SLURM_", "OMPI_", "PMI", "PALS_", "RANK", "LOCAL_RANK")
        own = {name: text for name, text in os.environ.items() if not name.startswith(launched)}
        own["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        own |= {"NSYS": str(NSYS), "STAND_IN_NSYS_LOG": str(self.folder / "log")}
        own |= {"TMPDIR": str(self.folder / "tmp")}
        own |= {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank % 2), **more}
        return subprocess.run(
            [str(WRAPPER), *options, str(self.application), "it's", "-o", "a b"],
            cwd=self.folder,
            env=own,
            capture_output=True,
            text=True,
            check=False,
        )

    def all(self, *options: str) -> list[int]:
        """The ranks that were profiled; every one has run the application once."""
        for rank in range(RANKS):
            ran = self.rank(rank, *options)
            assert ran.returncode == 5, ran.stderr
        assert (self.folder / "ran").read_text().splitlines() == ["it's|-o|a b|"] * RANKS
        return sorted(int(path.stem[-1]) for path in self.folder.rglob("*.nsys-rep"))

    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "log").read_text().splitlines()]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


@pytest.mark.parametrize(
    ("options", "ranks"),
    [
        ("", [0, 1, 2, 3]),
        ("--below 2", [0, 1]),
        ("--only 0,3", [0, 3]),
        ("--one-per-node", [0, 2]),
        ("--one-per-node --below 2", [0]),
        ("--only 7", []),
    ],
)
def test_wanted_ranks_write_a_report_each(job: Job, options: str, ranks: list[int]) -> None:
    assert job.all(*options.split()) == ranks


def test_reports_carry_their_rank_and_temporary_files_their_own_folder(job: Job) -> None:
    job.all("-o", "out/run 1", "--below", "2", "--")
    assert sorted(path.name for path in (job.folder / "out").iterdir()) == [
        "run 1_rank0.nsys-rep",
        "run 1_rank1.nsys-rep",
    ]
    folders = [entry["tmp"] for entry in job.log()]
    assert len(set(folders)) == 2
    assert all(Path(folder).parent == job.folder / "tmp" for folder in folders)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--capture", "cudaProfilerApi"], ["--capture-range=cudaProfilerApi", STOP]),
        (
            ["--capture", "train step@ml"],
            ["--capture-range=nvtx", "--nvtx-capture=train step@ml", STOP, ANY_NAME],
        ),
        (
            ["--trace", "cuda,nvtx,mpi", "--nsys-option", "--cuda-graph-trace=node"],
            ["--trace=cuda,nvtx,mpi", "--cuda-graph-trace=node"],
        ),
    ],
)
def test_words_for_nsys(job: Job, words: list[str], options: list[str]) -> None:
    job.all(*words, "--only", "1")
    (entry,) = job.log()
    assert {*options} <= {f"{name}={value}" for name, value in entry["options"].items()}


def test_reports_are_written_over_on_request_only(job: Job) -> None:
    job.rank(0)
    assert "already exists" in job.rank(0).stderr
    assert job.rank(0, "--force").returncode == 5


@pytest.mark.parametrize(
    "variables",
    [
        {"OMPI_COMM_WORLD_RANK": "2"},
        {"RANK": "2", "OMPI_COMM_WORLD_RANK": "3"},
        {"PALS_RANKID": "2"},
        {"PMI_RANK": "2"},
    ],
    ids=str,
)
def test_an_inner_launcher_knows_better(job: Job, variables: dict[str, str]) -> None:
    job.rank(0, **variables)
    assert (job.folder / "profile_rank2.nsys-rep").exists()


@pytest.mark.parametrize(
    ("options", "variables", "said"),
    [
        ("--below many", {}, "needs a number"),
        ("--only 0-3", {}, "needs ranks as"),
        ("--frobnicate", {}, "unknown option --frobnicate"),
        ("", {"SLURM_PROCID": ""}, "no rank"),
        ("--one-per-node", {"SLURM_LOCALID": ""}, "does not tell which rank of its node"),
    ],
)
def test_wrong_usage_runs_nothing(
    job: Job, options: str, variables: dict[str, str], said: str
) -> None:
    ran = job.rank(0, *options.split(), **variables)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert not (job.folder / "ran").exists()
