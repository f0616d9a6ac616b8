"""Damage to traces, snapshots and pages of ncu: to what they say, not to their bytes."""

from __future__ import annotations

import gzip
import json
import pickle
import random
from typing import Any

from fuzzer.values import DEEP, FLOATS, FORMULA, HOSTILE, INTS, json_value


def trace(data: bytes, rng: random.Random) -> bytes:
    """A trace with some of its values changed, packed as it was."""
    packed = data[:2] == b"\x1f\x8b"
    content = json.loads(gzip.decompress(data) if packed else data)
    events = content.get("traceEvents", []) if isinstance(content, dict) else content
    if len(events) > 4000:
        del events[rng.randrange(1000, 4000) :]
    for _ in range(rng.choice((1, 3, 30))):
        change(rng.choice(events) if events and rng.random() < 0.8 else content, rng)
    text = json.dumps(content).replace(json.dumps(DEEP), "[" * 50_000 + "]" * 50_000)
    if rng.random() < 0.1:
        text = text[: rng.randrange(len(text))]
    changed = text.encode("utf-8", "surrogatepass")
    return gzip.compress(changed, 1) if packed else changed


def snapshot(data: bytes, rng: random.Random) -> bytes:
    """A memory snapshot with some of its values changed."""
    content = pickle.loads(data)
    for _ in range(rng.choice((1, 3, 30))):
        change(content, rng)
    return pickle.dumps(content, protocol=rng.choice((2, 4)))


def page(data: bytes, rng: random.Random) -> bytes:
    """A CSV page of ncu with some of its cells, quotes or columns changed."""
    lines = data.decode("utf-8", "replace").splitlines()
    for _ in range(rng.choice((1, 3, 30))):
        at = rng.randrange(len(lines))
        lines[at] = _line(lines[at], rng)
    if rng.random() < 0.2:
        del lines[rng.randrange(len(lines)) :]
    if rng.random() < 0.1:
        lines *= 2
    return "\n".join(lines).encode("utf-8", "replace")


def _line(line: str, rng: random.Random) -> str:
    cells = line.split(",")
    at = rng.randrange(len(cells))
    kind = rng.randrange(7)
    if kind == 0:
        return (
            line.replace('"', "", 1) if rng.random() < 0.5 else line[::-1].replace('"', "", 1)[::-1]
        )
    if kind == 1:
        cells[at] = f'"{rng.choice((*INTS, *FLOATS, 10**40))}"'
    elif kind == 2:
        cells[at] = (
            '"'
            + rng.choice((HOSTILE.replace('"', ""), FORMULA.replace('"', ""), "", "n/a", "(1,1,1)"))
            + '"'
        )
    elif kind == 3:
        cells.insert(at, rng.choice(cells))
    elif kind == 4:
        del cells[at]
    elif kind == 5:
        return line.replace("ID", "Metric Name", 1)
    else:
        return line.replace('"', "", rng.randrange(4))
    return ",".join(cells)


def change(node: Any, rng: random.Random) -> None:
    """Change one value somewhere below a node."""
    while True:
        if isinstance(node, dict) and node:
            key = rng.choice(list(node))
        elif isinstance(node, list) and node:
            key = rng.randrange(len(node))
        else:
            return
        if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.85:
            node = node[key]
            continue
        if rng.random() < 0.2:
            del node[key]
        else:
            node[key] = json_value(rng)
        return
