"""Damage reports, ask every command about them, and say what went wrong.

    python -m fuzzer --seconds 120 --seed 1
    python -m fuzzer --case 1:417          # one case again, with what it says

Every case is made from its seed and number alone. NSIGHTPY_REPORTS adds real files.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fuzzer.child import run, warm_up
from fuzzer.corpus import Whole, build, corpus
from fuzzer.judge import complaints, state_of
from fuzzer.requests import request

# An ending that names what nobody foresaw is a message all the same; --strict counts it.
TOLERATED = "unforeseen"
REQUESTS = 3


def case(name: str, wholes: list[Whole], folder: Path, *, shows: bool) -> list[tuple[str, str]]:
    """The complaints about one case, each with the command line that it is about."""
    rng = random.Random(name)
    files, cache = folder / "files", folder / "private"
    files.mkdir()
    cache.mkdir()
    kind, target, done = build(files, wholes, rng)
    before, found = state_of(files), []
    for number in range(REQUESTS):
        words, suffix = request(kind, rng)
        output = f"made{number}{suffix}" if suffix else ""
        # "--" would hide the options behind it
        asked = f"./{target.relative_to(files)}" if target != files else "."
        reports = [asked] * 2 if words[0] == "compare" else [asked]
        line = [*words, *reports, *(["-o", output] if output else [])]
        ran = run(line, files, cache)
        wrong = list(complaints(ran, line, files, before, output, cache))
        if shows:
            print(f"{done}\n$ nsightpy {line}\n{ran.out[-4000:]}{ran.err[-6000:]}")
            print(f"exit code {ran.code}, {ran.seconds:.1f} s, {ran.peak_bytes / 1e6:.0f} MB")
        found += [(each, f"{done} | {' '.join(line)[:300]!r}") for each in wrong]
        if output:
            (files / output).unlink(missing_ok=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--cases", type=int, default=sys.maxsize, help="this many at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", metavar="SEED:N", help="only this case, and show what it says")
    parser.add_argument("--strict", action="store_true", help="what nobody foresaw fails, too")
    asked = parser.parse_args()
    warm_up()
    wholes, end = corpus(), time.monotonic() + asked.seconds
    kinds: Counter[str] = Counter()
    number = 0
    while time.monotonic() < end and number < asked.cases:
        name = asked.case or f"{asked.seed}:{number}"
        folder = Path(tempfile.mkdtemp(prefix="nsightpy-fuzz-"))
        try:
            for complaint, line in case(name, wholes, folder, shows=bool(asked.case)):
                kinds[complaint] += 1
                if kinds[complaint] <= 2:
                    print(f"{name}: {complaint}\n    {line}", flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        number += 1
        if asked.case:
            break
    print(f"{number} cases, {number * REQUESTS} commands; {sum(kinds.values())} complaints")
    for complaint, count in kinds.most_common():
        print(f"{count:6} {complaint}")
    serious = [each for each in kinds if asked.strict or not each.startswith(TOLERATED)]
    return 1 if serious else 0


if __name__ == "__main__":
    sys.exit(main())
