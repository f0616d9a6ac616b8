"""What is compared with what, and how far apart they have to be. Add an entry to add one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.commands import (
    AGAIN,
    COMPARE,
    FEW,
    IMPORTS,
    MANY,
    MAPPED_IMPORTS,
    NCU,
    NCU_LOOP,
    RANKS,
    TRACE,
    TRACED_EXPORT,
    again,
    many,
    ncu_reports,
    small,
    tiny,
)
from harness.measure import Round

# They take long: measured only where they are asked for.
ON_REQUEST = ("many ranks", "traces")


@dataclass(frozen=True)
class Comparison:
    """One claim: `value` of the measured commands against `target`."""

    section: str
    claim: str
    commands: tuple[str, ...]
    value: Callable[[Round], float]
    target: float
    at_least: bool = False
    unit: str = "x"

    def met(self, value: float) -> bool:
        return value >= self.target if self.at_least else value <= self.target


def faster(section: str, ours: str, peer: str, factor: float) -> Comparison:
    """`ours` is at least `factor` times as fast as `peer`."""

    def value(samples: Round) -> float:
        return samples[peer].seconds / samples[ours].seconds

    claim = f"`{ours}` faster than `{peer}`"
    return Comparison(section, claim, (ours, peer), value, factor, at_least=True)


def within(section: str, ours: str, base: str, factor: float, times: int = 1) -> Comparison:
    """`ours` takes at most `factor` times as long as `base` so many times."""

    def value(samples: Round) -> float:
        return samples[ours].seconds / (times * samples[base].seconds)

    whole = f"{times} x `{base}`" if times > 1 else f"`{base}`"
    claim = f"time of `{ours}` / time of {whole}"
    return Comparison(section, claim, (ours, base), value, factor)


def memory_per_kernel(section: str, ours: str, base: str, kernels: int, limit: float) -> Comparison:
    """`ours` peaks at most `limit` bytes per kernel above `base`."""

    def value(samples: Round) -> float:
        return (samples[ours].peak_bytes - samples[base].peak_bytes) / kernels

    claim = f"peak memory of `{ours}` above `{base}`"
    return Comparison(section, claim, (ours, base), value, limit, unit=" B/kernel")


def page_size(section: str, ours: str, limit: float) -> Comparison:
    """`ours` writes at most `limit` MB."""

    def value(samples: Round) -> float:
        return samples[ours].output_bytes / 1e6

    return Comparison(section, f"size of `{ours}`", (ours,), value, limit, unit=" MB")


def store_size(section: str, ours: str, export: Path, most: float) -> Comparison:
    """What `ours` leaves is at most that part of an export."""

    def value(samples: Round) -> float:
        return samples[ours].output_bytes / export.stat().st_size

    claim = f"size of the store after `{ours}` / size of the export"
    return Comparison(section, claim, (ours,), value, most)


def comparisons(kernels: int, scale: int, export: Path) -> list[Comparison]:
    """Every claim; names are those of `harness.commands`, `export` is of so many kernels."""
    small_summary, all_kernels = small(MANY, 1, "summarize"), RANKS * kernels // 4
    return [
        within("first", "kernels", "sqlite3 GROUP BY", 1.0),
        faster("first", "kernels", "pandas JOIN", 10.0),
        within("first", "summarize", "sqlite3 GROUP BY", 4.0),
        within("first", tiny("kernels"), IMPORTS, 1.2),
        within("again", again("kernels"), MAPPED_IMPORTS, 3.0),
        within("again", again("summarize"), "summarize", 0.5),
        *(within("again", again(name), "kernels", 2.0) for name in AGAIN[2:]),
        *(
            memory_per_kernel("memory", again(name), again(tiny(name)), kernels, 120.0)
            for name in AGAIN
        ),
        store_size("store", again(AGAIN[-1]), export, 0.5),
        faster("nsys-ai", "summarize", "nsys-ai summary, first", 6.0),
        faster("nsys-ai", again("summarize"), "nsys-ai summary, again", 2.5),
        within("small ranks", small_summary, small(MANY, 1), 3.4),
        within("small ranks", again(small_summary), again(small(MANY, 1)), 3.4),
        within("timeline", "timeline page", "kernels, half", 10.0),
        page_size("timeline", "timeline page", 60.0),
        faster("ranks", "ranks, 2 workers", "ranks, 1 worker", 1.7),
        memory_per_kernel("ranks", "ranks, 2 workers", "ranks, 2 workers, tiny", all_kernels, 20.0),
        within("compare", COMPARE, "summarize, quarter", 1.3, times=RANKS),
        within("workers", small(FEW, 2), small(FEW, 1), 1.6),
        within("workers", small(MANY, 2), small(MANY, 1), 1.0),
        within("scale", f"kernels, {scale} x", "kernels", 6.0),
        within("help", "--help", "python -c pass", 6.0),
        *([within("ncu", NCU, NCU_LOOP, 1.5)] if ncu_reports() else []),
        within("many ranks", many("ranks", True), many("kernels", True), 2.0),
        within("many ranks", many("ranks", False), many("kernels", False), 4.0),
        within("many ranks", many("collectives", True), many("kernels", True), 2.0),
        within("many ranks", many("summarize", True), many("kernels", True), 5.0),
        faster("traces", TRACE, "HTA", 8.0),
        within("traces", again(TRACE), again(TRACED_EXPORT), 2.0),
    ]
