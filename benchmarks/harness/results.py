"""The measured numbers as a Markdown page."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from harness.comparisons import Comparison
from harness.measure import Round, medians
from harness.nsys_ai import REQUIREMENTS

PACKAGES = (
    "nsightpy",
    "numpy",
    "pandas",
    "sqlalchemy",
    "pyarrow",
    "adbc-driver-sqlite",
    "click",
    "rich",
)


@dataclass(frozen=True)
class Outcome:
    """A comparison and what was measured for it: of the medians, and of each round."""

    comparison: Comparison
    value: float
    least: float
    most: float

    @property
    def met(self) -> bool:
        return self.comparison.met(self.value)

    def row(self) -> tuple[str, ...]:
        sign = "≥" if self.comparison.at_least else "≤"
        unit = self.comparison.unit
        return (
            self.comparison.section,
            self.comparison.claim,
            f"{sign} {self.comparison.target:g}{unit}",
            f"**{self.value:.2f}{unit}**",
            f"{self.least:.2f} to {self.most:.2f}",
            "met" if self.met else "MISSED",
        )


def judge(comparisons: Sequence[Comparison], rounds: Sequence[Round]) -> list[Outcome]:
    """Every comparison of measured commands, on the medians, with the range over the rounds."""
    middle = medians(rounds)
    outcomes = []
    for comparison in comparisons:
        if not middle.keys() >= set(comparison.commands):
            continue
        values = [comparison.value(one) for one in rounds]
        outcomes.append(Outcome(comparison, comparison.value(middle), min(values), max(values)))
    return outcomes


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _measured(rounds: Sequence[Round]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, middle in medians(rounds).items():
        seconds = [one[name].seconds for one in rounds]
        spread = f"{min(seconds):.3f} to {max(seconds):.3f}"
        peak = f"{middle.peak_bytes / 1e6:.0f}"
        cpu = f"{middle.cpu_seconds:.3f}"
        rows.append((f"`{name}`", f"{middle.seconds:.3f}", spread, cpu, peak))
    return rows


def _versions() -> str:
    found = [f"Python {platform.python_version()}", f"SQLite {sqlite3.sqlite_version}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found) + f"; peer: {', '.join(REQUIREMENTS)}"


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB of memory, {platform.system()}"


def page(
    command: str,
    kernels: int,
    load: float,
    outcomes: Sequence[Outcome],
    rounds: Sequence[Round],
) -> str:
    """The page: ratios first, the times behind them below, and how to get them again."""
    claims = _table(
        ("section", "comparison", "target", "measured", "over the rounds", "verdict"),
        [outcome.row() for outcome in outcomes],
    )
    times = _table(("command", "median s", "s", "CPU s", "peak MB"), _measured(rounds))
    return f"""# Results

Written by `{command}`; do not edit. How it measures: [README](README.md).

{kernels:,} kernels per export, medians of {len(rounds)} rounds after a warm-up, whole processes,
all commands in turn in one run. Ratios carry over to other machines, times do not.

{claims}

## What was measured

{times}

Machine: {_machine()}; load average at the start {load:.1f}.

Versions: {_versions()}.
"""
