"""Every command on a terminal of 80 columns: what can be said of all their answers."""

import contextlib
import io
import itertools
import re
from collections.abc import Collection
from pathlib import Path

import pytest

from nsightpy.cli.main import run
from nsightpy.output.escape import display_width
from tests.support.reports import REPORTS, ROOT, needs_reports
from tests.support.same_answers import QUESTIONS

WIDTH = 80
SAMPLES = "sample_reports"
# What several ranks and a trace answer otherwise than one report of nsys; None: every question.
JOBS = {
    "single_process.sqlite": None,
    "training_4rank": ("ranks", "collectives", "iterations", "gaps", "headroom"),
    "torch_2rank": ("operators", "iterations", "gaps", "graphs"),
}
REAL = (
    "nsys/ddp_2rank_nccl_rtx3090_2026.3.sqlite",
    "nsys/cudagraph_a100_2024.6.sqlite",
    "nsys/saxpy_mpi_rank0_a100_2022.2.sqlite",
    "kineto/vllm_piecewise_graphs.json.gz",
    "ncu/a40_2022.1.ncu-rep",
    "nsys/trixi_v100_2023.1.sqlite",
)
# Screens that are no table, or begin with something else.
SCREENS = ("summarize", "info", "findings", "compare", "roofline")
# Other splits than those of the script.
SPLITS = (
    *("gaps --by gap", "graphs --by replay", "graphs --by node", "collectives --by node"),
    *("breakdown --bins 200", "instances --of *forward*", "kernels --by stream,grid"),
    *("memory --by device,memory", "operators --by shape", "stats -r cuda_gpu_sum"),
)
ASKED = [words for words in (*QUESTIONS, *map(str.split, SPLITS)) if words[0] != "compare"]
TYPED = re.compile(r"nsightpy |ncu |`|[\w.-]+/[\w./-]{30}")
TINY = re.compile(r"\b0\.000\d* (?:s|ms|us)\b")
WRONG = re.compile(r"\b(?:None|nan|NaN|\w+_ns|\w+_pct|gb per s)\b")


class Screen(io.StringIO):
    """A stream that says of itself that it is a terminal."""

    def isatty(self) -> bool:
        return True


def asked(words: list[str]) -> tuple[list[str], list[str], int]:
    """The lines of stdout and of stderr on a terminal, and the exit code."""
    out, err = Screen(), Screen()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
    said = re.sub(r"[^\n]*\r\x1b\[2K", "", err.getvalue())
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    return plain.splitlines(), said.splitlines(), code


def looked_at(
    report: str, monkeypatch: pytest.MonkeyPatch, commands: Collection[str] | None = None
) -> list[str]:
    """What is wrong with the answers to all questions about one report."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    return [
        f"{command} {more}: {fault}"
        for command, *more in ASKED
        if commands is None or command in commands
        for fault in faults(command, *asked([command, report, *more, "--jobs", "1"]))
    ]


def faults(command: str, lines: list[str], said: list[str], code: int) -> list[str]:
    """What is wrong with one answer."""
    # what can be copied is never cut
    wide = [x for x in (*lines, *said) if display_width(x) > WIDTH and not TYPED.search(x)]
    found = [f"too wide: {line}" for line in wide]
    if code:
        helped = code == 1 and len(said) > 1 and said[0].startswith("nsightpy: ")
        return found + ([] if helped else [f"left with {code}: {said}"])
    found += [f"odd: {line}" for line in lines if TINY.search(line) or WRONG.search(line)]
    if sum(line.startswith("note: ") for line in said) > 7:
        found.append("more notes than anybody reads")
    rules = [number for number, line in enumerate(lines[:5]) if line.startswith("─")]
    has_rows = bool(rules) and rules[0] < len(lines) - 1
    if command not in SCREENS and lines != ["no rows"] and not has_rows:
        found.append(f"no answer in the first five lines: {lines[:5]}")
    if lines == ["no rows"] and not said:
        found.append("nothing, and no word why")
    if command not in (*SCREENS, "stats", "graphs", "launches"):  # names that were cut alike
        pairs = itertools.pairwise(lines)
        found += [f"one row like another: {b}" for a, b in pairs if b and a == b]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS)
def test_answers_fit_a_terminal(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked_at(f"{SAMPLES}/{job}", monkeypatch, JOBS[job]) == []


@needs_reports
@pytest.mark.parametrize("path", REAL, ids=lambda path: Path(path).stem)
def test_answers_on_real_reports_fit_a_terminal(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked_at(str(REPORTS / path), monkeypatch) == []
