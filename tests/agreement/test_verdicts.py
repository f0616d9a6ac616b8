"""Findings and iterations of the real captures against what an expert says of each (verdicts.json).

A must is found when a finding of any severity has its id. A warning is right when the expert has
its id, at any importance; it is wrong when the expert names it as a tempting wrong conclusion.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nsightpy
from tests.support.reports import NSYS, REPORTS, needs_reports

VERDICTS = Path(str(REPORTS)).parent / "reference" / "verdicts.json"
WITHIN = 0.1
pytestmark = [
    needs_reports,
    pytest.mark.skipif(not VERDICTS.exists(), reason="no verdicts beside the reports"),
]


@pytest.fixture(scope="module")
def verdicts() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(VERDICTS.read_text(encoding="utf-8"))
    assert len(found) > 10
    return found


def test_findings_are_those_of_an_expert(verdicts: list[dict[str, Any]]) -> None:
    musts = warnings = 0
    missed: list[tuple[str, str]] = []
    doubtful: list[tuple[str, str]] = []
    wrong: list[tuple[str, str]] = []
    for verdict in verdicts:
        rows = nsightpy.findings(NSYS / verdict["file"]).records()
        found = {str(row["id"]) for row in rows}
        warned = [str(row["id"]) for row in rows if row["severity"] != "info"]
        right = {one["id"] for one in verdict["findings"]}
        needed = [one["id"] for one in verdict["findings"] if one["importance"] == "must"]
        tempting = {one["id"].split()[0] for one in verdict["not_findings"]} - right
        musts, warnings = musts + len(needed), warnings + len(warned)
        missed += [(verdict["file"], one) for one in needed if one not in found]
        doubtful += [(verdict["file"], one) for one in warned if one not in right]
        wrong += [(verdict["file"], one) for one in warned if one in tempting]
    assert len(missed) <= 0.05 * musts, missed
    assert len(doubtful) <= 0.1 * warnings, doubtful
    assert len(wrong) <= 1, wrong


def test_iterations_are_those_of_an_expert(verdicts: list[dict[str, Any]]) -> None:
    """Where the verdict itself cannot tell (a slice of one pass), none may be claimed."""
    assert [wrong for wrong in map(unlike, verdicts) if wrong] == []


def unlike(verdict: dict[str, Any]) -> str:
    """How the iterations of a capture differ from the verdict's by more than a tenth."""
    wanted, rows = verdict["iterations"], nsightpy.iterations(NSYS / verdict["file"]).records()
    if rows:
        device = verdict["window"].get("device")
        first = (rows[0]["rank"], rows[0]["device"] if device is None else device)
        rows = [row for row in rows if (row["rank"], row["device"]) == first]
    steady = [row["duration_ns"] / 1e6 for row in rows if row["phase"] == "steady"]  # type: ignore[operator]
    median = float(np.median(steady)) if steady else 0.0
    pairs = [
        (len(rows), wanted["count_total"], 1),
        (len(steady), wanted["count_steady"], 1),
        (median, wanted["median_ms"], 0),
    ]
    if not wanted["present"]:
        pairs = [(len(rows), 0, 0)]
    far = [
        (found, true)
        for found, true, least in pairs
        if true is not None and abs(found - true) > max(WITHIN * true, least)
    ]
    return f"{verdict['file']}: {far}" if far else ""
