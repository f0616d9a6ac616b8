"""The same export written otherwise gives the same bytes, whatever the question."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from nsightpy.command_table import COMMANDS
from tests.support.full_export import full
from tests.support.reports import ROOT, ask
from tests.support.rewritten import rewritten

# What is typed at least; the listings that nsys stats has, which pair and sort rows of their own.
MORE = {
    "headroom": ("--ncu", str(ROOT / "sample_reports" / "training_4rank.ncu.csv")),
    "instances": ("--of", "*"),
    "stats": ("-r", "nvtx_sum"),
    "compare": (str(ROOT / "sample_reports" / "training_4rank"), "--"),
}
LISTINGS = (
    *("cuda_gpu_trace", "cuda_api_trace", "cuda_kern_exec_trace", "nvtx_gpu_proj_trace"),
    *("nvtx_pushpop_trace", "mpi_event_trace"),
)
QUESTIONS = [
    (command.name, *MORE.get(command.name, ())) for command in COMMANDS.values() if command.answers
] + [
    *(("stats", "-r", listing) for listing in LISTINGS),
    *(("ranks", "--by", by) for by in ("kernel", "stage", "call")),
    *(("gaps", "--by", by) for by in ("cause", "call")),
    ("operators", "--by", "module"),
    ("nvtx", "--metrics"),
    ("launches", "--by", "stream"),
    ("breakdown", "--bins", "50"),
    ("instances", "--of", "*", "--bins", "20"),
]
SAMPLE = ROOT / "sample_reports" / "single_process.sqlite"


@pytest.fixture(scope="module", params=["sample", "two equal processes"])
def originals(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an export; of equal processes every row has another of the same time."""
    folder = tmp_path_factory.mktemp("original")
    if request.param == "sample":
        shutil.copy(SAMPLE, folder / "a.sqlite")
    else:
        full(folder / "a.sqlite").write()
    return folder


@pytest.fixture(scope="module", params=("from 0", "negative"))
def other(request: pytest.FixtureRequest, originals: Path) -> Path:
    """The same export under the same name in another folder."""
    folder: Path = originals / str(request.param)
    rewritten(originals / "a.sqlite", folder / "a.sqlite", request.param, len(request.param))
    return folder


def answers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, ...], bytes]:
    monkeypatch.chdir(folder)
    asked = {question: (*question, "a.sqlite", "--format", "json") for question in QUESTIONS}
    return {question: ask(*words, expect=None).everything for question, words in asked.items()}


def written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Every frame as export writes it."""
    monkeypatch.chdir(folder)
    ask("export", "a.sqlite", "--format", "csv", "-o", "frames", "--force")
    files = (path for path in Path("frames").rglob("*.csv"))
    return {os.fspath(path): path.read_bytes() for path in files}


def test_every_command_gives_the_same_bytes(
    originals: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, found = (answers(folder, monkeypatch) for folder in (originals, other))
    assert [question for question in QUESTIONS if found[question] != expected[question]] == []


def test_every_frame_has_the_same_rows_in_the_same_order(
    originals: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, found = (written(folder, monkeypatch) for folder in (originals, other))
    assert len(expected) > 5
    assert found == expected
