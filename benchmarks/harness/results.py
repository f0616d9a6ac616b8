"""The measured numbers as a Markdown page."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
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

_CLOCK = {
    False: "The wall clock decides.",
    True: "Processor seconds decide: others used the machine, and the wall clock says nothing.",
}


@dataclass(frozen=True)
class Outcome:
    """A comparison and what was measured for it: of the medians, and of each round.

    `cpu_value` is the same in processor seconds; `by_cpu` says that this decides.
    """

    comparison: Comparison
    value: float
    cpu_value: float
    least: float
    most: float
    by_cpu: bool

    @property
    def met(self) -> bool:
        return self.comparison.met(self.cpu_value if self.by_cpu else self.value)

    def row(self) -> tuple[str, ...]:
        sign = "≥" if self.comparison.at_least else "≤"
        unit = self.comparison.unit
        return (
            self.comparison.section,
            self.comparison.claim,
            f"{sign} {self.comparison.target:g}{unit}",
            f"**{self.value:.2f}{unit}**",
            f"{self.least:.2f} to {self.most:.2f}",
            f"{self.cpu_value:.2f}{unit}",
            "met" if self.met else "MISSED",
        )


def judge(
    comparisons: Sequence[Comparison], rounds: Sequence[Round], *, by_cpu: bool = False
) -> list[Outcome]:
    """Every comparison of measured commands, on the medians, with the range over the rounds."""
    middle = medians(rounds)
    cpu = {name: replace(one, seconds=one.cpu_seconds) for name, one in middle.items()}
    outcomes = []
    for comparison in comparisons:
        if not middle.keys() >= set(comparison.commands):
            continue
        values = [comparison.value(one) for one in rounds]
        value, cpu_value = comparison.value(middle), comparison.value(cpu)
        outcomes.append(Outcome(comparison, value, cpu_value, min(values), max(values), by_cpu))
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
        ("section", "comparison", "target", "measured", "over the rounds", "in CPU s", "verdict"),
        [outcome.row() for outcome in outcomes],
    )
    times = _table(("command", "median s", "s", "CPU s", "anonymous MB"), _measured(rounds))
    return f"""# Results

Written by `{command}`; do not edit. How it measures: [README](README.md).

{kernels:,} kernels per export, medians of {len(rounds)} rounds after a warm-up, whole processes,
all commands in turn in one run. Ratios carry over to other machines, times do not.
{_CLOCK[any(outcome.by_cpu for outcome in outcomes)]}

{claims}

## What was measured

{times}

Machine: {_machine()}; load average at the start {load:.1f}.

Versions: {_versions()}.
"""
