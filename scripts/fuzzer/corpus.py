"""Whole files to damage, and what is made of them for one case."""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fuzzer import export_damage, page_damage, text_damage
from fuzzer.child import Place, run

ROOT = Path(__file__).parents[2]
LARGEST = 1_200_000
TEXTS: dict[str, Callable[[bytes, random.Random], tuple[bytes, str]]] = {
    "torch": text_damage.trace,
    "snapshot": text_damage.snapshot,
    "ncu": page_damage.page,
    "baseline": text_damage.baseline,
}
KINDS = {
    ".sqlite": "nsys",
    ".json": "torch",
    ".json.gz": "torch",
    ".ncu-rep": "ncu",
    ".csv": "ncu",
    ".pickle": "snapshot",
}
# How often each kind is meant, of 40.
SHARES = {"nsys": 17, "torch": 6, "ncu": 9, "snapshot": 6, "baseline": 2}
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
    suffix: str = ""


def corpus(made: Path, report: str) -> list[Whole]:
    """The sample reports, a baseline, and small real files where NSIGHTPY_REPORTS is set."""
    ran = run(["compare", "--save-baseline", "baseline", report], Place(made, made, made))
    if ran.code:
        raise RuntimeError(f"no baseline: {ran.err}")
    found = [Whole(made / "baseline", "baseline")]
    folders = [ROOT / "sample_reports", *map(Path, filter(None, [os.getenv("NSIGHTPY_REPORTS")]))]
    for path in (path for folder in folders for path in sorted(folder.rglob("*"))):
        suffix = next((s for s in KINDS if path.name.endswith(s)), "")
        foreign = any(word in path.name for word in ("truth", "tracelens"))
        if suffix and not foreign and path.stat().st_size < LARGEST:
            found.append(Whole(path, KINDS[suffix], suffix))
    return found


def build(folder: Path, wholes: list[Whole], rng: random.Random) -> tuple[str, Path, str]:
    """Damaged files of one case in a folder: their kind, what to ask about, and what was done."""
    (kind,) = rng.choices(list(SHARES), list(SHARES.values()))
    whole = rng.choice([each for each in wholes if each.kind == kind])
    path = target = folder / (rng.choice(NAMES) + whole.suffix)
    data = whole.path.read_bytes()
    path.write_bytes(data)
    done = _damage(path, whole, rng)
    if whole.suffix and rng.random() < 0.25:
        # one damaged report among whole ones
        for number in range(rng.choice((1, 2))):
            (folder / f"whole_{number}{whole.suffix}").write_bytes(data)
        target = folder
    if rng.random() < 0.1:
        (folder / f"{path.name}-wal").write_bytes(b"stale")
    return kind, target, f"{whole.path.name}: {done}"


def _damage(path: Path, whole: Whole, rng: random.Random) -> str:
    """Damage a file in place, in its structure or only its bytes; says what was done."""
    chance = rng.random()
    if whole.kind == "nsys" and chance < 0.92:
        change = export_damage.change_tables if chance < 0.75 else export_damage.change_pages
        return change(path, rng)
    data, how = path.read_bytes(), "bytes"
    if whole.kind in TEXTS and whole.suffix != ".ncu-rep" and chance < 0.85:
        data, how = TEXTS[whole.kind](data, rng)
    else:
        data = text_damage.changed_bytes(data, rng)
    path.write_bytes(data)
    return how
