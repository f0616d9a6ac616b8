"""The measured numbers as a Markdown page."""

import os
import platform
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version

from harness.measure import Round, medians
from harness.peers import NSYS_AI
from harness.suite import Comparison

PACKAGES = "nsightpy, numpy, pandas, sqlalchemy, pyarrow, adbc-driver-sqlite, click, rich"
_CLAIMS = ("section", "comparison", "target", "measured", "over the rounds", "in CPU s", "verdict")
_TIMES = ("command", "median s", "s", "CPU s", "anonymous MB")
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
    values: tuple[float, ...]
    by_cpu: bool

    @property
    def met(self) -> bool:
        return self.comparison.met(self.cpu_value if self.by_cpu else self.value)

    def row(self) -> tuple[str, ...]:
        claim, unit = self.comparison, self.comparison.unit
        return (
            claim.section,
            claim.claim,
            f"{'≥' if claim.at_least else '≤'} {claim.target:g}{unit}",
            f"**{self.value:.2f}{unit}**",
            f"{min(self.values):.2f} to {max(self.values):.2f}",
            f"{self.cpu_value:.2f}{unit}",
            "met" if self.met else "MISSED",
        )


def judge(
    comparisons: Sequence[Comparison], rounds: Sequence[Round], by_cpu: bool
) -> list[Outcome]:
    """Every comparison of measured commands, on the medians, with the range over the rounds."""
    middle = medians(rounds)
    cpu = {name: replace(one, seconds=one.cpu_seconds) for name, one in middle.items()}
    return [
        Outcome(one, one.value(middle), one.value(cpu), tuple(map(one.value, rounds)), by_cpu)
        for one in comparisons
        if middle.keys() >= {command.name for command in one.commands}
    ]


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _times(rounds: Sequence[Round]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, middle in medians(rounds).items():
        seconds = [one[name].seconds for one in rounds]
        figures = (f"{middle.seconds:.3f}", f"{min(seconds):.3f} to {max(seconds):.3f}")
        more = (f"{middle.cpu_seconds:.3f}", f"{middle.peak_bytes / 1e6:.0f}")
        rows.append((f"`{name}`", *figures, *more))
    return rows


def _versions() -> str:
    found = [f"Python {platform.python_version()}", f"SQLite {sqlite3.sqlite_version}"]
    for package in PACKAGES.split(", "):
        with suppress(PackageNotFoundError):
            found.append(f"{package} {version(package)}")
    return ", ".join(found) + f"; peer: {', '.join(NSYS_AI)}"


def page(
    command: str, kernels: int, load: float, outcomes: Sequence[Outcome], rounds: Sequence[Round]
) -> str:
    """The page: ratios first, the times behind them below, and how to get them again."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = f"{os.cpu_count()} cores, {memory:.0f} GiB of memory, {platform.system()}"
    return f"""# Results

Written by `{command}`; do not edit. How it measures: [README](README.md).

{kernels:,} kernels per export, medians of {len(rounds)} rounds after a warm-up, whole processes,
all commands in turn in one run. Ratios carry over to other machines, times do not.
{_CLOCK[any(outcome.by_cpu for outcome in outcomes)]}

{_table(_CLAIMS, [outcome.row() for outcome in outcomes])}

## What was measured

{_table(_TIMES, _times(rounds))}

Machine: {machine}; load average at the start {load:.1f}.

Versions: {_versions()}.
"""
