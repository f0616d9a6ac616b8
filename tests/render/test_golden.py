"""What people see, kept: the sample reports on an 80- and a 160-column terminal, and piped."""

from __future__ import annotations

import re

import pytest
from terminal import ROOT, run_in_terminal

from nsightpy.cli.main import run
from nsightpy.output.escape import display_width
from tests.support.golden import check_golden

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
TRAINING = "sample_reports/training_4rank"
SINGLE = "sample_reports/single_process.sqlite"


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 160])
@pytest.mark.parametrize(("name", "report"), [("training", TRAINING), ("single", SINGLE)])
def test_summary_on_a_terminal(name: str, report: str, columns: int) -> None:
    shown = run_in_terminal(["summarize", report], columns, NO_COLOR="1")
    check_golden(f"summarize_{name}_{columns}.txt", ESCAPE.sub("", shown))
    # a command to copy is never cut
    lines = [line for line in ESCAPE.sub("", shown).splitlines() if "nsightpy " not in line]
    assert max(map(display_width, lines)) <= columns


@pytest.mark.parametrize("command", ["kernels", "breakdown", "memory", "launches"])
def test_piped_tables(
    command: str, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert run([command, SINGLE, "--format", "csv"]) == 0
    check_golden(f"{command}_single.csv", capsysbinary.readouterr().out.decode())


@pytest.mark.slow
def test_colour_on_terminals_only() -> None:
    assert "\x1b[32m" in run_in_terminal(["summarize", TRAINING], 80)
    plain = run_in_terminal(["summarize", TRAINING], 80, NO_COLOR="1")
    assert not re.search(r"\x1b\[(?:3|4|9)[0-9]", plain)
