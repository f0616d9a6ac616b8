"""Damage reports, ask every command about them, and say what went wrong.

    python -m fuzzer --seconds 120 --seed 1
    python -m fuzzer --case 1:417          # one case again, with what it says

Every case is made from its seed and number alone. NSIGHTPY_REPORTS adds real files.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from fuzzer import totals
from fuzzer.child import Place, run, warm_up
from fuzzer.corpus import ROOT, Whole, build, corpus
from fuzzer.judge import complaints, state_of
from fuzzer.requests import request

REQUESTS = 2
# What goes with a damaged file where a command wants two kinds.
SYSTEM_REPORT = str(ROOT / "sample_reports/training_4rank/train_rank0.sqlite")
NCU = str(ROOT / "sample_reports/kernels_h100.ncu.csv")
# So often it says how far it is.
PROGRESS = 250


def case(name: str, wholes: list[Whole], folder: Path, *, show: bool) -> Iterator[tuple[str, str]]:
    """The complaints about one case, each with the command line that it is about."""
    rng = random.Random(name)
    files, cache = folder / "files", folder / "private"
    files.mkdir()
    cache.mkdir()
    kind, target, done = build(files, wholes, rng)
    place, before = Place(files, target, cache), state_of(files)
    for number in range(REQUESTS):
        words, suffix = request(kind, rng)
        output = f"made{number}{suffix}" if suffix else ""
        line = _line(kind, words, place, output)
        ran = run(line, place)
        if show:
            print(f"{done}\n$ nsightpy {line}\n{ran.out[-4000:]}{ran.err[-6000:]}")
            print(f"exit code {ran.code}, {ran.seconds:.1f} s, {ran.peak_bytes / 1e6:.0f} MB")
        for each in complaints(ran, line, place, before, output):
            yield each, f"{done} | {' '.join(line)[:300]!r}"
        if output:
            (files / output).unlink(missing_ok=True)
    if kind in ("nsys", "torch") and target.is_file():
        ran = run(_line(kind, ["kernels", "--format", "json"], place, ""), place)
        if ran.code == 0:
            yield from ((each, done) for each in totals.check(ran.out, target))


def _line(kind: str, words: list[str], place: Place, output: str) -> list[str]:
    # "--" would hide the options behind it
    asked = "." if place.target == place.folder else f"./{place.target.relative_to(place.folder)}"
    given = [asked]
    if kind == "baseline":
        given = ["--baseline", asked, SYSTEM_REPORT]
    elif words[0] == "headroom":
        given = [SYSTEM_REPORT, "--ncu", asked] if kind == "ncu" else [asked, "--ncu", NCU]
    elif words[0] == "compare":
        given = [asked, asked]
    return [*words, *given, *(["-o", output] if output else [])]


def options_of(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--cases", type=int, default=sys.maxsize, help="this many at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", metavar="SEED:N", help="only this case, and show what it says")
    return parser.parse_args(words)


def main() -> int:
    options = options_of(sys.argv[1:])
    warm_up()
    kinds: Counter[str] = Counter()
    number, end = 0, time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory(prefix="nsightpy-fuzz-") as made:
        wholes = corpus(Path(made), SYSTEM_REPORT)
        while time.monotonic() < end and number < (1 if options.case else options.cases):
            name = options.case or f"{options.seed}:{number}"
            with tempfile.TemporaryDirectory(
                prefix="nsightpy-fuzz-", ignore_cleanup_errors=True
            ) as folder:
                for complaint, line in case(name, wholes, Path(folder), show=bool(options.case)):
                    kinds[complaint] += 1
                    if kinds[complaint] <= 2:
                        print(f"{name}: {complaint}\n    {line}", flush=True)
            number += 1
            if number % PROGRESS == 0:
                print(f"{number} cases, {kinds.total()} complaints", file=sys.stderr, flush=True)
    print(f"{number} cases, {number * REQUESTS} commands; {kinds.total()} complaints")
    for complaint, count in kinds.most_common():
        print(f"{count:6} {complaint}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
