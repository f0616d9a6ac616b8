"""docs/clusters.md does what it says: its scripts run here, with stand-ins for srun and nsys."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.reports import ask

pytestmark = pytest.mark.slow

pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parent.parent.parent
STAND_INS = ROOT / "tests" / "stand_ins"
SAMPLES = ROOT / "sample_reports" / "training_4rank"
RANKS = 4
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
for ((i = 0; i < TASKS; i++)); do
  SLURM_PROCID=$i SLURM_LOCALID=$i SLURM_NTASKS=$TASKS "$@" &
done
wait
"""


def block(page: str, words: str) -> str:
    """The one shell block of a page in which these words stand."""
    text = (ROOT / page).read_text(encoding="utf-8")
    (found,) = (
        code for code in re.findall(r"^```bash\n(.*?)^```", text, re.M | re.S) if words in code
    )
    return str(found)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The folder that a job is submitted in; `srun` starts as many tasks as TASKS says."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "srun").write_text(SRUN)
    (tmp_path / "bin" / "srun").chmod(0o755)
    (tmp_path / "bin" / "nsys").symlink_to(STAND_INS / "nsys")
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    (tmp_path / "train.py").write_text("")
    return tmp_path


def submit(job: Path, script: str, tasks: int = RANKS, **variables: str) -> None:
    """Run a script as the batch system does; the first command that fails ends it."""
    paths = [str(job / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    found = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    done = subprocess.run(
        ["bash", "-e", "-u", "-c", script],
        cwd=job,
        env={
            **found,
            "PATH": os.pathsep.join(paths),
            "TMPDIR": str(job / "tmp"),
            "TASKS": str(tasks),
            **variables,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_capture_leaves_a_report_per_rank(job: Path) -> None:
    submit(job, block("docs/clusters.md", "nsys_per_rank.sh"), NSYS=str(STAND_INS / "nsys_profile"))
    reports = sorted(path.name for path in (job / "run1").iterdir())
    assert reports == [f"train_rank{rank}.nsys-rep" for rank in range(RANKS)]


def test_export_and_analysis(job: Path) -> None:
    (job / "run1").mkdir()
    (job / "tmp").mkdir()
    for rank in range(RANKS):
        export = SAMPLES / f"train_rank{rank}.sqlite"
        report = f"STAND-IN REPORT 2026.4\nexport={export}\nEND\n"
        (job / "run1" / f"train_rank{rank}.nsys-rep").write_text(report)
    submit(job, block("docs/clusters.md", "nsys export"), STAND_IN_NSYS_VERSION="2026.4")
    assert len(list((job / "run1").glob("*.sqlite"))) == RANKS

    submit(job, block("docs/clusters.md", "dask scheduler"), tasks=2)
    assert not list(job.glob("dask*.json"))
    assert "rank 2" in (job / "summary.txt").read_text(encoding="utf-8").lower()
    for name in ("info", "ranks", "collectives", "imbalance"):
        made = job / ("reports.csv" if name == "info" else f"{name}.csv")
        words = ("ranks", "--by", "kernel") if name == "imbalance" else (name,)
        here = ask(*words, job / "run1", "--format", "csv").text
        assert made.read_text(encoding="utf-8") == here
    with (job / "ranks.csv").open(encoding="utf-8") as file:
        assert [row["straggler"] for row in csv.DictReader(file)] == [
            "false",
            "false",
            "true",
            "false",
        ]


def test_the_readme_exports_the_same_way() -> None:
    readme = block("README.md", "nsys export")
    assert block("docs/clusters.md", "nsys export") in readme
