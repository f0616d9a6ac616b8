"""Iterations of the real captures against what an expert found in each (verdicts.json)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nsightpy import iterations
from tests.support.reports import NSYS, REPORTS, needs_reports

VERDICTS = Path(str(REPORTS)).parent / "reference" / "verdicts.json"
WITHIN = 0.1


@dataclass(frozen=True)
class Score:
    """What was found in one capture beside what is true; times in ms."""

    name: str
    wanted: dict[str, Any]
    count: int
    steady: int
    median_ms: float | None

    @property
    def right(self) -> bool:
        """Found where they are, as many and as long within a tenth; none where there are none."""
        if not self.wanted["present"]:
            return self.count == 0
        counts = (
            (self.count, self.wanted["count_total"]),
            (self.steady, self.wanted["count_steady"]),
        )
        if any(abs(n - true) > max(WITHIN * true, 1) for n, true in counts if true is not None):
            return False
        true = self.wanted["median_ms"]
        return self.median_ms is not None and abs(self.median_ms - true) <= WITHIN * true

    def __str__(self) -> str:
        wanted = self.wanted
        return (
            f"{self.name[:34]:34} {'right' if self.right else 'WRONG':5} "
            f"wanted {wanted['count_total']!s:>5} {wanted['count_steady']!s:>5} "
            f"{wanted['median_ms']!s:>8}  found {self.count:5} {self.steady:5} {self.median_ms}"
        )


def score(verdict: dict[str, Any]) -> Score:
    found = iterations(NSYS / verdict["file"]).records()
    device = verdict["window"].get("device")
    first = [
        row
        for row in found
        if (row["rank"], row["device"])
        == (found[0]["rank"], found[0]["device"] if device is None else device)
    ]
    steady = [row["duration_ns"] / 1e6 for row in first if row["phase"] == "steady"]
    median = float(np.median(steady)) if steady else None
    return Score(verdict["file"], verdict["iterations"], len(first), len(steady), median)


@needs_reports
@pytest.mark.skipif(not VERDICTS.exists(), reason="the verdicts are not here")
def test_iterations_are_those_of_the_verdicts() -> None:
    """Where the verdict itself cannot tell (a slice of one pass), none may be claimed."""
    scores = [score(verdict) for verdict in json.loads(VERDICTS.read_text())]
    table = "\n".join(map(str, scores))
    print(table)
    assert [one.name for one in scores if not one.right] == [], table
