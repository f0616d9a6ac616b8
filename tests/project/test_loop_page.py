"""The tour of the loop runs as it is written."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.reports import ROOT, ask

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "loop.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```bash\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [line for block in BLOCKS for line in block.splitlines() if line]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_of_the_tour_run(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sample_reports").symlink_to(ROOT / "sample_reports")
    monkeypatch.chdir(tmp_path)
    program, *words = shlex.split(line)
    assert program == "nsightpy"
    answer = ask(*words)
    if "-o" in words:
        assert (tmp_path / words[words.index("-o") + 1]).stat().st_size > 500
    else:
        assert answer.stdout


def test_the_tour_walks_the_whole_loop() -> None:
    walked = list(dict.fromkeys(shlex.split(line)[1] for line in COMMANDS))
    assert walked == ["summarize", "ranks", "timeline", "select", "roofline", "headroom"]


def test_the_readme_walks_the_same_loop() -> None:
    section = README.partition("**The loop to Nsight Compute.**")[2].partition("\n**")[0]
    lines = re.findall(r"^    (nsightpy .*)$", section, re.MULTILINE)
    words = [shlex.split(line, comments=True) for line in lines]
    walked = [shlex.split(line) for line in COMMANDS]
    assert [each for each in words if each not in walked and each[1] != "select"] == []
    assert [each[1] for each in words] == ["select", "roofline", "headroom"]


def test_the_quoted_command_is_the_printed_one() -> None:
    (quoted,) = re.findall(r"^    (ncu .*?)\n\n", PAGE, re.DOTALL | re.MULTILINE)
    (line,) = (line for line in COMMANDS if "-- python train.py --steps" in line)
    printed = ask(*shlex.split(line)[1:]).text.splitlines()
    assert shlex.split(quoted.replace("\\\n", " ")) in [
        shlex.split(each) for each in printed if each.startswith("ncu ")
    ]


def test_the_tour_quotes_the_figures_of_its_sample() -> None:
    rows = ask(
        *("headroom", ROOT / "sample_reports" / "training_4rank", "--format", "json"),
        *("--ncu", ROOT / "sample_reports" / "training_4rank.ncu.csv"),
    ).json["rows"]
    first = rows[0]
    said = (
        f"is {100 * first['share']:.1f} % of the step",
        f"runs at {100 * first['roof_fraction']:.0f} % of its roof",
        f"at most {100 * first['ceiling_share']:.1f} % to gain",
    )
    plain = " ".join(PAGE.replace("\n>", "\n").split())
    assert [text for text in said if text not in plain] == []
    assert all(row["matched_by"] == "function" for row in rows if row["matched_by"])
