"""What is compared with what, and how far apart they have to be. Add an entry to add one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness import ncu
from harness.commands import COMPARE, FEW, IMPORTS, MANY, PER_KERNEL, RANKS, small, tiny
from harness.measure import Round

# How many times as long as `kernels` each may take.
PER_KERNEL_MOST = {
    "summarize": 2.5,
    "breakdown": 2.0,
    "nvtx": 2.0,
    "findings": 2.5,
    "iterations": 2.5,
    "collectives": 2.0,
}


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


def comparisons(kernels: int, scale: int) -> list[Comparison]:
    """Every claim; names are those of `harness.commands`."""
    return [
        faster("kernels", "kernels", "pandas JOIN", 12.0),
        within("kernels", "kernels", "sqlite3 GROUP BY", 1.0),
        within("kernels", tiny("kernels"), IMPORTS, 1.2),
        faster("summarize", "summarize", "nsys-ai summary, first", 6.0),
        faster("summarize", "summarize", "nsys-ai summary, again", 2.5),
        *(within("per kernel", name, "kernels", most) for name, most in PER_KERNEL_MOST.items()),
        within("per kernel", "findings", "breakdown", 1.5),
        *(
            memory_per_kernel("memory", name, tiny(name), kernels, 200.0)
            for name in ("kernels", *PER_KERNEL)
        ),
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
