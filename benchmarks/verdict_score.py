"""Scores `findings` against what an expert concludes from real captures, by id.

    python benchmarks/verdict_score.py VERDICTS.json FOLDER

A must is found when a finding of any severity has its id. A warning is right when the expert has
its id, at any importance. It is wrong when the expert names it as a tempting wrong conclusion.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nsightpy import findings


@dataclass(frozen=True)
class Score:
    """Of one capture, or of all: ids that must be found, those found; warnings, those right."""

    name: str
    musts: int = 0
    missed: tuple[str, ...] = ()
    warnings: int = 0
    doubtful: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    def __add__(self, other: Score) -> Score:
        return Score(
            self.name,
            self.musts + other.musts,
            self.missed + other.missed,
            self.warnings + other.warnings,
            self.doubtful + other.doubtful,
            self.wrong + other.wrong,
        )

    @property
    def recall(self) -> float:
        """The share of the musts that were found."""
        return 1 - len(self.missed) / self.musts if self.musts else 1.0

    @property
    def precision(self) -> float:
        """The share of the warnings that are right."""
        return 1 - len(self.doubtful) / self.warnings if self.warnings else 1.0


def score(verdict: Mapping[str, Any], folder: Path) -> Score:
    """The findings of one capture beside its verdict."""
    rows = findings(folder / verdict["file"]).records()
    found = {row["id"] for row in rows}
    warned = [str(row["id"]) for row in rows if row["severity"] != "info"]
    right = {one["id"] for one in verdict["findings"]}
    musts = [one["id"] for one in verdict["findings"] if one["importance"] == "must"]
    tempting = {one["id"].split()[0] for one in verdict["not_findings"]} - right
    return Score(
        str(verdict["file"]).removesuffix(".sqlite"),
        len(musts),
        tuple(one for one in musts if one not in found),
        len(warned),
        tuple(one for one in warned if one not in right),
        tuple(one for one in warned if one in tempting),
    )


def table(scores: Sequence[Score]) -> list[str]:
    """The scores as lines, all together last."""
    return [_line(one) for one in (*scores, sum(scores, Score("all")))]


def _line(one: Score) -> str:
    kinds = f"missed {', '.join(one.missed) or '-'}; doubtful {', '.join(one.doubtful) or '-'}"
    found, right = one.musts - len(one.missed), one.warnings - len(one.doubtful)
    return (
        f"{one.name[:36]:36} musts {found:3}/{one.musts:<3} warnings {right:3}/{one.warnings:<3} "
        f"wrong {len(one.wrong)}  {kinds}"
    )


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    verdicts, folder = Path(arguments[0]), Path(arguments[1])
    every = json.loads(verdicts.read_text(encoding="utf-8"))
    print(*table([score(one, folder) for one in every]), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
