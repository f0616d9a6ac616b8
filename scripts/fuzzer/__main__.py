"""Damage reports, ask every command about them, and say what went wrong.

    python -m fuzzer --seconds 120 --seed 1
    python -m fuzzer --case 1:417          # one case again, with what it says

Every case is made from its seed and number alone. NSIGHTPY_REPORTS adds real files.
"""

from __future__ import annotations

import argparse
import functools
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fuzzer import stores, text_damage, totals
from fuzzer.child import run, warm_up
from fuzzer.corpus import ROOT, Whole, build, corpus
from fuzzer.judge import complaints, state_of
from fuzzer.page_text_damage import CEILINGS
from fuzzer.requests import request
from fuzzer.surroundings import EVERY, PLAIN, Place

REQUESTS = 2
# What goes with a damaged file where a command wants two kinds.
SYSTEM_REPORT = ROOT / "sample_reports/training_4rank/train_rank0.sqlite"
NCU = ROOT / "sample_reports/kernels_h100.ncu.csv"
# The share of cases that compare a report with a damaged baseline, and its name.
BASELINES, BASELINE = 0.05, "baseline"
# The share of cases that ask twice, with damage to what was kept in between.
STORES = 0.2
# So often it says how far it is.
PROGRESS = 250


@dataclass(frozen=True)
class Way:
    """How cases are run: the shares in odd surroundings and of damaged stores, in new processes or
    in copies."""

    surroundings: float
    stores: float
    new: bool
    shows: bool


@functools.cache
def whole_baseline() -> bytes:
    """What `compare --save-baseline` writes of a report."""
    with tempfile.TemporaryDirectory(prefix="nsightpy-fuzz-") as name:
        folder = Path(name)
        line = ["compare", "--save-baseline", "baseline", str(SYSTEM_REPORT)]
        ran = run(line, Place(folder, SYSTEM_REPORT, folder))
        if ran.code:
            raise RuntimeError(f"{' '.join(line)} ended with {ran.code}: {ran.err}")
        return (folder / "baseline").read_bytes()


def case(name: str, wholes: list[Whole], folder: Path, way: Way) -> list[tuple[str, str]]:
    """The complaints about one case, each with the command line that it is about."""
    rng = random.Random(name)
    files, cache = folder / "files", folder / "private"
    files.mkdir()
    cache.mkdir()
    stored = rng.random() < way.stores
    kind, target, done = build(files, wholes, rng, stored=stored)
    if stored:
        return _stored(kind, Place(files, target, cache), done, rng)
    ceilings = files / "ceilings"
    if kind == "ncu" and rng.random() < 0.2:
        ceilings.write_bytes(rng.choice(CEILINGS).encode("utf-8", "surrogatepass"))
    given = "./ceilings" if ceilings.exists() else ""
    if kind in ("nsys", "torch") and rng.random() < BASELINES:
        (files / BASELINE).write_bytes(text_damage.baseline(whole_baseline(), rng))
    compared = (files / BASELINE).exists()
    place, before, found = Place(files, target, cache), state_of(files), []
    for number in range(REQUESTS):
        words, suffix = request(kind, rng, given, only="compare" if compared else "")
        output = f"made{number}{suffix}" if suffix else ""
        odd = rng.random() < way.surroundings
        around = rng.choice(EVERY) if odd else PLAIN
        if odd and around.changes_files and number < REQUESTS - 1:
            around = PLAIN
        line = _line(kind, words, target, files, output)
        ran = run(line, place, around, new=way.new)
        wrong = list(complaints(ran, line, place, before, output, around))
        if way.shows:
            print(f"{done} | {around.name}\n$ nsightpy {line}\n{ran.out[-4000:]}{ran.err[-6000:]}")
            print(f"exit code {ran.code}, {ran.seconds:.1f} s, {ran.peak_bytes / 1e6:.0f} MB")
        words_of_case = f"{done} | {around.name} | {' '.join(line)[:300]!r}"
        found += [(each, words_of_case) for each in wrong]
        if output:
            (files / output).unlink(missing_ok=True)
        if around.changes_files:
            return found
    if kind in ("nsys", "torch") and target.is_file():
        found += [(each, done) for each in _totals(place, way)]
    return found


def _stored(kind: str, place: Place, done: str, rng: random.Random) -> list[tuple[str, str]]:
    """The complaints about a question that is asked twice."""
    words, suffix = request(kind, rng)
    output = f"made{suffix}" if suffix else ""
    line = _line(kind, words, place.target, place.folder, output)
    words_of_case = f"{done} | {' '.join(line)[:300]!r}"
    found = stores.complaints_about(line, place, output, rng)
    return [(each, words_of_case) for each in found]


def _line(kind: str, words: list[str], target: Path, files: Path, output: str) -> list[str]:
    # "--" would hide the options behind it
    asked = f"./{target.relative_to(files)}" if target != files else "."
    given = [asked]
    if words[0] == "headroom":
        given = (
            [str(SYSTEM_REPORT), "--ncu", asked] if kind == "ncu" else [asked, "--ncu", str(NCU)]
        )
    elif words[0] == "compare":
        baseline = (files / BASELINE).exists()
        given = ["--baseline", f"./{BASELINE}", str(SYSTEM_REPORT)] if baseline else [asked, asked]
    return [*words, *given, *(["-o", output] if output else [])]


def _totals(place: Place, way: Way) -> Iterator[str]:
    """What is wrong with the sums of `kernels`."""
    ran = run(_line("", ["kernels", "--format", "json"], place.target, place.folder, ""), place)
    if ran.code == 0:
        yield from totals.check(ran.out, place.target)
    if way.shows:
        print(f"kernels: {ran.out[:1500]}\n{ran.err[:2000]}")
        print(f"expected: {totals.expected(place.target)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--cases", type=int, default=sys.maxsize, help="this many at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", metavar="SEED:N", help="only this case, and show what it says")
    parser.add_argument(
        "--surroundings", type=float, default=0.1, metavar="SHARE", help="in odd surroundings [0.1]"
    )
    parser.add_argument(
        "--stores", type=float, default=STORES, metavar="SHARE", help="of damaged stores [0.2]"
    )
    parser.add_argument("--new", action="store_true", help="each in a new Python, not in a copy")
    asked = parser.parse_args()
    warm_up()
    way = Way(asked.surroundings, asked.stores, asked.new, bool(asked.case))
    wholes, end = corpus(), time.monotonic() + asked.seconds
    kinds: Counter[str] = Counter()
    number = 0
    while time.monotonic() < end and number < asked.cases:
        name = asked.case or f"{asked.seed}:{number}"
        folder = Path(tempfile.mkdtemp(prefix="nsightpy-fuzz-"))
        try:
            for complaint, line in case(name, wholes, folder, way):
                kinds[complaint] += 1
                if kinds[complaint] <= 2:
                    print(f"{name}: {complaint}\n    {line}", flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        number += 1
        if number % PROGRESS == 0:
            print(f"{number} cases, {sum(kinds.values())} complaints", file=sys.stderr, flush=True)
        if asked.case:
            break
    print(f"{number} cases, {number * REQUESTS} commands; {sum(kinds.values())} complaints")
    for complaint, count in kinds.most_common():
        print(f"{count:6} {complaint}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
