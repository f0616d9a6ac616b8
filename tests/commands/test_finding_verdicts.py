"""Findings of the real captures against what an expert concludes from each (verdicts.json)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.verdict_score import Score, score, table
from tests.support.reports import NSYS, REPORTS, needs_reports

VERDICTS = Path(str(REPORTS)).parent / "reference" / "verdicts.json"


@needs_reports
@pytest.mark.skipif(not VERDICTS.exists(), reason="no verdicts beside the reports")
def test_findings_are_those_of_an_expert(capsys: pytest.CaptureFixture[str]) -> None:
    verdicts = json.loads(VERDICTS.read_text(encoding="utf-8"))
    scores = [score(verdict, NSYS) for verdict in verdicts]
    whole = sum(scores, Score("all"))
    with capsys.disabled():
        print("", *table(scores), sep="\n")
    assert len(scores) == len(verdicts) > 10
    assert whole.recall >= 0.95, whole
    assert whole.precision >= 0.9, whole
    assert len(whole.wrong) <= 1, whole.wrong
