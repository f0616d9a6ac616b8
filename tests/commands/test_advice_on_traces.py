"""What PyTorch's profiler could have recorded is asked of it, and not of `nsys profile`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nsightpy.command_table import COMMANDS
from nsightpy.commands.stats.command import REPORTS
from nsightpy.commands.stats.operations import LIBRARIES
from tests.support.reports import ROOT, ask

SAMPLES = ROOT / "sample_reports"
MORE = {"instances": ("--of", "*"), "headroom": ("--ncu", str(SAMPLES / "kernels_h100.ncu.csv"))}
# Answers of which no part is about what a capture holds.
WITHOUT_REPORTS = ("mcp", "cache")
QUESTIONS = [
    *((name, *MORE.get(name, ())) for name in COMMANDS if name not in (*WITHOUT_REPORTS, "stats")),
    *(("api", "--library", name) for name in LIBRARIES),
    *(("stats", "-r", name) for name in REPORTS),
    ("collectives", "--by", "pair"),
    ("kernels", "--nvtx", "no such range"),
    ("kernels", "--iteration", "4"),
    ("timeline", "--iteration", "4"),
]
# It is right to name the other tool where PyTorch's never records what is missing.
OF_THE_OTHER = "PyTorch's profiler never does; `nsys profile"
OF_NSYS = ("nsys profile", "-t cuda", "--include-json", "of Nsight Systems", "nsys 20")


def of_the_host(folder: Path) -> Path:
    """A trace without GPU work."""
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 5}
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("trace", ["of two ranks", "without GPU work"])
def test_no_command_asks_for_a_capture_of_nsys_where_the_profiler_would_do(
    trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = SAMPLES / "torch_2rank" if trace == "of two ranks" else of_the_host(tmp_path)
    monkeypatch.chdir(tmp_path)
    said = [
        (question, line.strip())
        for question in QUESTIONS
        for line in ask(*_words(question, path), expect=None).stderr.splitlines()
        if any(words in line for words in OF_NSYS) and OF_THE_OTHER not in line
    ]
    assert said == []


def _words(question: tuple[str, ...], path: Path) -> tuple[str | Path, ...]:
    return (*question, path, "--", path) if question[0] == "compare" else (*question, path)


@pytest.mark.parametrize("question", ["api --library mpi", "stats -r osrt_sum", "ranks --by call"])
def test_what_no_trace_holds_is_told_as_such(question: str) -> None:
    said = ask(*question.split(), SAMPLES / "torch_2rank").stderr
    assert "PyTorch's profiler never does; `nsys profile -t " in said
