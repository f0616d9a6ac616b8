"""docs/ci.md does what it says: its YAML parses, its options exist, its jobs run and gate."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from nsightpy.cli.main import cli
from tests.support.reports import ROOT, ask

PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
YAML = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
SHELL = re.findall(r"^```bash\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
SAMPLE = ROOT / "sample_reports" / "training_4rank" / "train_rank0.sqlite"
STAND_INS = ROOT / "tests" / "stand_ins"
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


def commands_in(text: str) -> list[list[str]]:
    """The words of every nsightpy command, without what the shell makes of its end."""
    whole = text.replace("\\\n", " ")
    lines = re.findall(r"(?:^|\s)(nsightpy [^\n|`]*)", whole)
    return [shlex.split(line) for line in lines]


@pytest.mark.parametrize("words", commands_in(PAGE), ids=" ".join)
def test_options_of_the_page_exist(words: list[str]) -> None:
    if len(words) < 3:
        return
    command = cli.get_command(None, words[1])  # type: ignore[arg-type]
    assert command is not None, words
    known = {option for parameter in command.params for option in parameter.opts}
    own = words[: words.index("--")] if "--" in words else words
    assert [word for word in own if word.startswith("-") and word not in known] == []


def jobs() -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml")
    return [yaml.safe_load(text) for text in YAML]


def test_the_recipes_parse() -> None:
    github, gitlab = jobs()
    steps = github["jobs"]["compare"]["steps"]
    # YAML 1.1 reads the key `on` as true
    assert github[True] == "pull_request"
    assert [("run" in step) != ("uses" in step) for step in steps] == [True] * len(steps)
    assert gitlab["gpu-performance"]["artifacts"]["reports"] == {"junit": "compare.xml"}
    assert gitlab["gpu-performance"]["artifacts"]["when"] == "always"


def scripts(name: str) -> list[str]:
    """The shell scripts of a recipe, in their order."""
    github, gitlab = jobs()
    if name == "GitLab":
        return ["\n".join(gitlab["gpu-performance"]["script"])]
    return [step["run"] for step in github["jobs"]["compare"]["steps"] if "run" in step]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the program and a baseline; nsys, gh and the program stand in."""
    (tmp_path / "bin").mkdir()
    for name, text in (("nsys", NSYS), ("gh", GH)):
        path = tmp_path / "bin" / name
        path.write_text(text)
        path.chmod(0o755)
    (tmp_path / "train.py").write_text("")
    (tmp_path / "perf").mkdir()
    for place in range(4):
        shutil.copy(SAMPLE, tmp_path / f"run{place}.sqlite")
    runs = [tmp_path / f"run{place}.sqlite" for place in range(4)]
    ask("compare", "--save-baseline", tmp_path / "perf" / "baseline.json", *runs)
    return tmp_path


def run_job(checkout: Path, script: str) -> int:
    paths = [str(checkout / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=checkout,
        env={
            **os.environ,
            "PATH": os.pathsep.join(paths),
            "PYTHONPATH": str(ROOT),
            "STAND_INS": str(STAND_INS),
            "SAMPLE": str(SAMPLE),
            "STAND_IN_NSYS_LOG": str(checkout / "log"),
            "NSIGHTPY_CACHE_DIR": str(checkout / "cache"),
            "GITHUB_STEP_SUMMARY": str(checkout / "summary.md"),
            "PULL_REQUEST": "17",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode in {0, 3}, done.stdout + done.stderr
    return done.returncode


def faster_before(path: Path) -> None:
    """The baseline as if all of it had taken three quarters of its time."""
    document = json.loads(path.read_text())
    for run in document["runs"]:
        for unit in run["units"].values():
            unit["parts"] = [3 * part // 4 for part in unit["parts"]]
            unit["duration_ns"] = sum(unit["parts"])
            unit["samples"] = [
                [sum(3 * one // 4 for one in row[1:]), *(3 * one // 4 for one in row[1:])]
                for row in unit["samples"]
            ]
    path.write_text(json.dumps(document))


@pytest.mark.slow
@pytest.mark.parametrize("slower", [False, True], ids=["same", "slower"])
@pytest.mark.parametrize("name", ["GitHub", "GitLab"])
def test_the_jobs_profile_and_gate(checkout: Path, name: str, slower: bool) -> None:
    if slower:
        faster_before(checkout / "perf" / "baseline.json")
    codes = [run_job(checkout, script) for script in scripts(name)]
    assert max(codes) == (3 if slower else 0)
    assert len(list((checkout / "after").glob("run*.nsys-rep"))) == 5
    comment = (checkout / "comment.md").read_text(encoding="utf-8")
    assert ("Gate **failed**" in comment) == slower
    suites = ET.parse(checkout / "compare.xml").getroot()
    assert suites.get("failures") == f"{slower:d}"
    if name == "GitHub":
        assert (checkout / "summary.md").read_text(encoding="utf-8") == comment
        assert (checkout / "gh.txt").read_text().split()[:3] == ["pr", "comment", "17"]
