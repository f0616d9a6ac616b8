"""What is compared with what, and how far apart they have to be. Add an entry to add one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness import ncu
from harness.commands import (
    AGAIN,
    COMPARE,
    FEW,
    IMPORTS,
    MANY,
    MAPPED_IMPORTS,
    RANKS,
    again,
    small,
    tiny,
)
from harness.measure import Round

# Of these the second time is compared with something of their own.
_IN_FULL = ("kernels", "summarize")


@dataclass(frozen=True)
class Comparison:
    """One claim: `value` of the measured commands against `target`."""

    section: str
    claim: str
    commands: tuple[str, ...]
    value: Callable[[Round], float]
    target: float
    at_least: bool
    unit: str = "x"

    def met(self, value: float) -> bool:
        return value >= self.target if self.at_least else value <= self.target


def faster(section: str, ours: str, peer: str, factor: float) -> Comparison:
    """`ours` is at least `factor` times as fast as `peer`."""
    return Comparison(
        section,
        f"`{ours}` faster than `{peer}`",
        (ours, peer),
        lambda samples: samples[peer].seconds / samples[ours].seconds,
        factor,
        at_least=True,
    )


def within(section: str, ours: str, base: str, factor: float) -> Comparison:
    """`ours` takes at most `factor` times as long as `base`."""
    return Comparison(
        section,
        f"time of `{ours}` / time of `{base}`",
        (ours, base),
        lambda samples: samples[ours].seconds / samples[base].seconds,
        factor,
        at_least=False,
    )


def within_as_many(section: str, ours: str, base: str, times: int, factor: float) -> Comparison:
    """`ours` takes at most `factor` times as long as `base` so many times."""
    return Comparison(
        section,
        f"time of `{ours}` / time of {times} x `{base}`",
        (ours, base),
        lambda samples: samples[ours].seconds / (times * samples[base].seconds),
        factor,
        at_least=False,
    )


def memory_per_kernel(section: str, ours: str, base: str, kernels: int, limit: float) -> Comparison:
    """`ours` peaks at most `limit` bytes per kernel above `base`."""
    return Comparison(
        section,
        f"peak memory of `{ours}` above `{base}`",
        (ours, base),
        lambda samples: (samples[ours].peak_bytes - samples[base].peak_bytes) / kernels,
        limit,
        at_least=False,
        unit=" B/kernel",
    )


def smaller(section: str, ours: str, limit: float) -> Comparison:
    """`ours` writes at most `limit` MB."""
    return Comparison(
        section,
        f"size of `{ours}`",
        (ours,),
        lambda samples: samples[ours].output_bytes / 1e6,
        limit,
        at_least=False,
        unit=" MB",
    )


def of_file(section: str, ours: str, path: Path, most: float) -> Comparison:
    """What `ours` leaves is at most that part of a file."""
    return Comparison(
        section,
        f"size of the store after `{ours}` / size of the export",
        (ours,),
        lambda samples: samples[ours].output_bytes / path.stat().st_size,
        most,
        at_least=False,
    )


def comparisons(kernels: int, scale: int, export: Path) -> list[Comparison]:
    """Every claim; names are those of `harness.commands`, `export` is of so many kernels."""
    return [
        within("first", "kernels", "sqlite3 GROUP BY", 1.0),
        faster("first", "kernels", "pandas JOIN", 10.0),
        within("first", "summarize", "sqlite3 GROUP BY", 4.0),
        within("first", tiny("kernels"), IMPORTS, 1.2),
        within("again", again("kernels"), MAPPED_IMPORTS, 3.0),
        within("again", again("summarize"), "summarize", 0.5),
        *(within("again", again(n), "kernels", 2.0) for n in AGAIN if n not in _IN_FULL),
        *(
            memory_per_kernel("memory", again(name), again(tiny(name)), kernels, 120.0)
            for name in AGAIN
        ),
        of_file("store", again(AGAIN[-1]), export, 0.5),
        faster("nsys-ai", "summarize", "nsys-ai summary, first", 6.0),
        faster("nsys-ai", again("summarize"), "nsys-ai summary, again", 2.5),
        within("small ranks", small(MANY, 1, "summarize"), small(MANY, 1), 3.4),
        within("small ranks", again(small(MANY, 1, "summarize")), again(small(MANY, 1)), 3.4),
        within("timeline", "timeline page", "kernels, half", 10.0),
        smaller("timeline", "timeline page", 60.0),
        faster("ranks", "ranks, 2 workers", "ranks, 1 worker", 1.7),
        memory_per_kernel(
            "ranks", "ranks, 2 workers", "ranks, 2 workers, tiny", RANKS * kernels // 4, 20.0
        ),
        within_as_many("compare", COMPARE, "summarize, quarter", RANKS, 1.3),
        within("workers", small(FEW, 2), small(FEW, 1), 1.6),
        within("workers", small(MANY, 2), small(MANY, 1), 1.0),
        within("scale", f"kernels, {scale} x", "kernels", 6.0),
        within("help", "--help", "python -c pass", 6.0),
        *([within("ncu", ncu.OURS, ncu.PEER, 1.5)] if ncu.reports() else []),
    ]
