"""nsightpy compare on the sample reports, as people and machines see it."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from terminal import run_in_terminal

from nsightpy.output.escape import display_width
from tests.support.reports import ROOT, ask

SAMPLES = ROOT / "sample_reports"
FIRST, OTHER = (SAMPLES / "training_4rank" / f"train_rank{rank}.sqlite" for rank in (0, 2))
TRACE = SAMPLES / "torch_2rank" / "train_rank0.pt.trace.json.gz"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 160])
def test_the_answer_stands_in_the_first_five_lines(columns: int) -> None:
    shown = ESCAPE.sub("", run_in_terminal(["compare", str(FIRST), str(OTHER)], columns))
    lines = shown.splitlines()
    assert lines[4].startswith("Answer   Cannot tell whether the step changed: 12.88 -> 12.86 ms")
    commands = lines[lines.index("Next") + 1 :]
    assert all(line.startswith("  nsightpy ") for line in commands)
    assert max(map(display_width, lines[: -len(commands)])) <= columns
    assert "Parts of the step: their changes add up" in lines


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "begins"),
    [
        (".md", b"**Cannot tell"),
        (".xml", b"<?xml"),
        (".csv", b"name,before_ns,after_ns"),
        (".json", b"{"),
        (".png", b"\x89PNG"),
        (".svg", b"<?xml"),
        (".pdf", b"%PDF"),
    ],
)
def test_the_suffix_says_the_format(suffix: str, begins: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"change{suffix}"
    ask("compare", "-q", "-o", path, FIRST, OTHER)
    written = path.read_bytes()
    assert written.startswith(begins)
    assert "exists already" in ask("compare", "-q", "-o", path, FIRST, OTHER, expect=1).stderr
    assert path.read_bytes() == written


def test_junit_is_for_compare_alone(tmp_path: Path) -> None:
    suites = ET.fromstring(ask("compare", "--format", "junit", FIRST, OTHER).stdout)
    assert suites.get("tests") == "1"
    assert "junit" in ask("kernels", "--format", "junit", FIRST, expect=2).stderr
    said_of = {each: f"kernels writes no {each}; it writes .csv" for each in (".xml", ".png")}
    for suffix, words in said_of.items():
        path = tmp_path / f"kernels{suffix}"
        said = ask("kernels", FIRST, "-o", path, expect=2).stderr
        assert words in said
        assert not path.exists()


@pytest.mark.parametrize("outside", [("--to", "-1"), ("--from", "1e18")])
def test_times_outside_of_a_capture_are_said(outside: tuple[str, str]) -> None:
    assert "there is nothing to compare" in ask("compare", *outside, TRACE, TRACE, expect=1).stderr


def test_top_is_of_each_section_in_every_format() -> None:
    document = ask("compare", "--format", "json", "--top", "1", FIRST, OTHER).json
    assert [row["section"] for row in document["rows"]][-3:] == ["collective", "range", "category"]
    names = [[row["name"] for row in document[which]] for which in ("rows", "details")]
    assert names[0] == names[1]
    assert len(names[0]) < document["total_rows"]
    assert document["truncated"]
    text = ask("compare", "--top", "1", FIRST, OTHER).text
    assert "AllReduce 33.6 MB" in text
    assert "AllReduce 10.5 MB" not in text
    text = ask("compare", FIRST, OTHER).text
    assert "flash::Flash_bwd_params)" in text
    assert "…" not in text
