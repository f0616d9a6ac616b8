"""Damage to traces and snapshots: to what they say, not to their bytes."""

from __future__ import annotations

import gzip
import json
import pickle
import random
from typing import Any

from fuzzer.values import DEEP, json_value


def trace(data: bytes, rng: random.Random) -> tuple[bytes, str]:
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
    return (gzip.compress(changed, 1) if packed else changed), "values"


def snapshot(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A memory snapshot with some of its values changed."""
    content = pickle.loads(data)
    for _ in range(rng.choice((1, 3, 30))):
        change(content, rng)
    return pickle.dumps(content, protocol=rng.choice((2, 4))), "values"


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
