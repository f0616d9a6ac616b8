"""Damage to baselines, which `compare --baseline` reads."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from functools import cache
from pathlib import Path

from fuzzer.child import run
from fuzzer.json_damage import cut, encoding, line_ends, trailing
from fuzzer.surroundings import Place
from fuzzer.text_damage import change
from fuzzer.values import DEEP


@cache
def whole(report: Path) -> bytes:
    """What `compare --save-baseline` writes of a report."""
    folder = Path(tempfile.mkdtemp(prefix="nsightpy-fuzz-"))
    try:
        copy = Path(shutil.copy(report, folder))
        line = ["compare", "--save-baseline", "baseline", f"./{copy.name}"]
        ran = run(line, Place(folder, copy, folder))
        if ran.code:
            raise RuntimeError(f"{' '.join(line)} ended with {ran.code}: {ran.err}")
        return (folder / "baseline").read_bytes()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def damaged(report: Path, rng: random.Random) -> bytes:
    """A baseline with some of its values, or its text, changed."""
    content = json.loads(whole(report))
    for _ in range(rng.choice((1, 1, 3, 30))):
        change(content, rng)
    text = json.dumps(content).replace(json.dumps(DEEP), "[" * 50_000 + "]" * 50_000)
    if rng.random() < 0.2:
        text = rng.choice((cut, encoding, line_ends, trailing))(text, rng)
    return text.encode("utf-8", "surrogatepass")
