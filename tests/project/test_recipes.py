"""docs/ci.md and docs/clusters.md do what they say: recipes parse, scripts run here.

nsys, srun and gh are stand-ins.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.support.reports import ROOT, ask

PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
YAML = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
SAMPLES = ROOT / "sample_reports" / "training_4rank"
SAMPLE = SAMPLES / "train_rank0.sqlite"
STAND_INS = ROOT / "tests" / "stand_ins"
RANKS = 4
NSYS = """#!/bin/bash
if [ "$1" != profile ]; then exec "$STAND_INS/nsys" "$@"; fi
"$STAND_INS/nsys_profile" "$@" || exit
for word in "$@"; do
  case "$word" in
    --output=*) printf 'STAND-IN REPORT 2024.2\\nexport=%s\\nEND\\n' "$SAMPLE" \\
      > "${word#--output=}.nsys-rep" ;;
  esac
done
"""
GH = """#!/bin/bash
echo "$@" > gh.txt
"""
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
for ((i = 0; i < TASKS; i++)); do
  SLURM_PROCID=$i SLURM_LOCALID=$i SLURM_NTASKS=$TASKS "$@" &
done
wait
"""


def jobs() -> tuple[dict[Any, Any], dict[Any, Any]]:
    yaml = pytest.importorskip("yaml")
    github, gitlab = (yaml.safe_load(text) for text in YAML)
    return github, gitlab["gpu-performance"]


def scripts(name: str) -> list[str]:
    """The shell scripts of a recipe, in their order."""
    github, gitlab = jobs()
    if name == "GitLab":
        return ["\n".join(gitlab["script"])]
    return [step["run"] for step in github["jobs"]["compare"]["steps"] if "run" in step]


def programs(folder: Path, **scripts: str) -> None:
    """Programs of these names in the folder's bin, and the program that is profiled."""
    (folder / "bin").mkdir()
    for name, text in scripts.items():
        path = folder / "bin" / name
        path.write_text(text)
        path.chmod(0o755)
    (folder / "train.py").write_text("")


def run_script(folder: Path, script: str, **variables: str) -> int:
    """Run a script as a batch system or CI does; the first command that fails ends it."""
    paths = [str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    own = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    own |= {"PATH": os.pathsep.join(paths), "PYTHONPATH": str(ROOT), "STAND_INS": str(STAND_INS)}
    ran = subprocess.run(
        ["bash", "-e", "-u", "-c", script],
        cwd=folder,
        env={**own, "TMPDIR": str(folder / "tmp"), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert ran.returncode in {0, 3}, ran.stdout + ran.stderr
    return ran.returncode


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a baseline."""
    programs(tmp_path, nsys=NSYS, gh=GH)
    (tmp_path / "perf").mkdir()
    (tmp_path / "tmp").mkdir()
    runs = [shutil.copy(SAMPLE, tmp_path / f"run{number}.sqlite") for number in range(4)]
    ask("compare", "--save-baseline", tmp_path / "perf" / "baseline.json", *runs)
    return tmp_path


def faster_before(path: Path) -> None:
    """The baseline as if all of it had taken three quarters of its time."""
    document = json.loads(path.read_text())
    for unit in (unit for run in document["runs"] for unit in run["units"].values()):
        samples = [[3 * part // 4 for part in row[1:]] for row in unit["samples"]]
        unit["samples"] = [[sum(row), *row] for row in samples]
        unit["parts"] = [3 * part // 4 for part in unit["parts"]]
        unit["duration_ns"] = sum(unit["parts"])
    path.write_text(json.dumps(document))


@pytest.mark.slow
@pytest.mark.parametrize("slower", [False, True], ids=["same", "slower"])
@pytest.mark.parametrize("name", ["GitHub", "GitLab"])
def test_the_jobs_profile_and_gate(checkout: Path, name: str, slower: bool) -> None:
    if slower:
        faster_before(checkout / "perf" / "baseline.json")
    variables = {
        "SAMPLE": str(SAMPLE),
        "STAND_IN_NSYS_LOG": str(checkout / "log"),
        "NSIGHTPY_CACHE_DIR": str(checkout / "cache"),
        "GITHUB_STEP_SUMMARY": str(checkout / "summary.md"),
        "PULL_REQUEST": "17",
    }
    codes = [run_script(checkout, script, **variables) for script in scripts(name)]
    assert max(codes) == (3 if slower else 0)
    assert len(list((checkout / "after").glob("run*.nsys-rep"))) == 5
    comment = (checkout / "comment.md").read_text(encoding="utf-8")
    assert ("Gate **failed**" in comment) == slower
    suites = ET.parse(checkout / "compare.xml").getroot()
    assert suites.get("failures") == f"{slower:d}"
    if name == "GitHub":
        assert (checkout / "summary.md").read_text(encoding="utf-8") == comment
        assert (checkout / "gh.txt").read_text().split()[:3] == ["pr", "comment", "17"]


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
    programs(tmp_path, srun=SRUN)
    (tmp_path / "bin" / "nsys").symlink_to(STAND_INS / "nsys")
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    return tmp_path


def submit(job: Path, script: str, tasks: int = RANKS, **variables: str) -> None:
    assert run_script(job, script, TASKS=str(tasks), **variables) == 0


@pytest.mark.slow
def test_export_and_analysis(job: Path) -> None:
    pytest.importorskip("distributed")
    for name in ("run1", "tmp"):
        (job / name).mkdir()
    for rank in range(RANKS):
        export = SAMPLES / f"train_rank{rank}.sqlite"
        report = f"STAND-IN REPORT 2026.4\nexport={export}\nEND\n"
        (job / "run1" / f"train_rank{rank}.nsys-rep").write_text(report)
    exporting = block("docs/clusters.md", "nsys export")
    assert exporting in block("README.md", "nsys export")
    submit(job, exporting, STAND_IN_NSYS_VERSION="2026.4")
    assert len(list((job / "run1").glob("*.sqlite"))) == RANKS

    submit(job, block("docs/clusters.md", "dask scheduler"), tasks=2)
    assert not list(job.glob("dask*.json"))
    assert "rank 2" in (job / "summary.txt").read_text(encoding="utf-8").lower()
    asked = {"reports": "info", "imbalance": "ranks --by kernel"}
    for file, words in {"ranks": "ranks", "collectives": "collectives", **asked}.items():
        here = ask(*words.split(), job / "run1", "--format", "csv").text
        assert (job / f"{file}.csv").read_text(encoding="utf-8") == here
