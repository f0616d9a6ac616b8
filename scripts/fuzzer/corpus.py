"""Whole files to damage, and what is made of them for one case."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fuzzer import bytes_damage, export_damage, page_text_damage, text_damage

ROOT = Path(__file__).parents[2]
LARGEST = 1_200_000
TEXTS: dict[str, Callable[[bytes, random.Random], tuple[bytes, str]]] = {
    "torch": text_damage.trace,
    "snapshot": text_damage.snapshot,
    "ncu": page_text_damage.page,
}
KINDS = {
    ".sqlite": "nsys",
    ".json": "torch",
    ".json.gz": "torch",
    ".ncu-rep": "ncu",
    ".csv": "ncu",
    ".pickle": "snapshot",
}
# Names as people give them: dates, ranks, and what a terminal or a shell would act on.
NAMES = (
    *("a", "a", "a", "rank_3", "bench_r20240131", "run.rank=99999999", "_r7", "a b", "é\u202e"),
    *("x\x1b[31m", "$(touch hacked)", "-rf", "<b>bold<b>", "=1+1", "n" * 240),
)


@dataclass(frozen=True)
class Whole:
    """A whole file: its kind, and its suffix."""

    path: Path
    kind: str
    suffix: str


def corpus() -> list[Whole]:
    """The sample reports, and small real ones where NSIGHTPY_REPORTS is set."""
    folders = [ROOT / "sample_reports"]
    if real := os.environ.get("NSIGHTPY_REPORTS"):
        folders.append(Path(real))
    found = []
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            suffix = next((s for s in KINDS if path.name.endswith(s)), "")
            foreign = ("truth", "tracelens")
            if (
                suffix
                and path.stat().st_size < LARGEST
                and not any(f in path.name for f in foreign)
            ):
                found.append(Whole(path, KINDS[suffix], suffix))
    return found


def build(
    folder: Path, wholes: list[Whole], rng: random.Random, *, stored: bool = False
) -> tuple[str, Path, str]:
    """Damaged files of one case in a folder: their kind, what to ask about, and what was done.

    `stored`: of a kind whose columns are kept, and mostly whole.
    """
    kinds = ("nsys", "nsys", "nsys", "torch", "ncu", "ncu", "snapshot")
    kind = rng.choice(kinds[:4] if stored else kinds)
    whole = rng.choice([each for each in wholes if each.kind == kind])
    name = rng.choice(NAMES) + whole.suffix
    path = folder / name
    data = whole.path.read_bytes()
    path.write_bytes(data)
    done = "whole" if stored and rng.random() < 0.7 else _damage(path, whole, rng)
    target = path
    if rng.random() < 0.25:
        # one damaged report among whole ones
        for number in range(rng.choice((1, 2))):
            (folder / f"whole_{number}{whole.suffix}").write_bytes(data)
        target = folder
    if rng.random() < 0.1:
        (folder / f"{name}-wal").write_bytes(b"stale")
    return kind, target, f"{whole.path.name}: {done}"


def _damage(path: Path, whole: Whole, rng: random.Random) -> str:
    """Damage a file in place, in its structure or only its bytes; says what was done."""
    chance = rng.random()
    if whole.kind == "nsys" and chance < 0.92:
        if chance < 0.01:
            return export_damage.to_utf16(path, rng)
        change = export_damage.change_tables if chance < 0.75 else export_damage.change_pages
        return change(path, rng)
    data, how = path.read_bytes(), "bytes"
    if whole.kind in TEXTS and whole.suffix != ".ncu-rep" and chance < 0.85:
        data, how = TEXTS[whole.kind](data, rng)
    else:
        data = bytes_damage.damaged(data, rng)
    path.write_bytes(data)
    return how
