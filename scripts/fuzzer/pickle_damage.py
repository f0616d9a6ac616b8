"""Memory snapshots that are no data: pickles that call, point into themselves, or claim much."""

from __future__ import annotations

import pickle
import random
import struct
from typing import Any

from fuzzer.text_damage import change


class Calls:
    """What becomes a call when somebody unpickles it."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        import os

        return os.system, ("touch hacked",)


def _raw(rng: random.Random) -> tuple[bytes, str]:
    return rng.choice((
        (b"cos\nsystem\n(S'touch hacked'\ntR.", "system"),
        (b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"}.", "frame of 2**62"),
        (b"\x80\x04\x8e" + struct.pack("<Q", 2**40) + b"x.", "bytes of 2**40"),
        (b"\x80\x04\x8d" + struct.pack("<Q", 2**63) + b"x.", "text of 2**63"),
        (b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1) + b"\xff.", "long of 2 GB"),
        (b"\x80\x02" + b"(" * 500_000 + b".", "marks"),
        (b"\x80\x02" + b"]" * 300_000 + b"a" * 299_999 + b".", "nested lists"),
        (b"\x80\x02]q\x00h\x00a.", "a list in itself"),
        (b"\x80\x02}q\x00U\x01ah\x00s.", "a dict in itself"),
        (b"I" + b"9" * 100_000 + b"\n.", "a number of 100,000 digits"),
        (b"L" + b"9" * 3_000_000 + b"L\n.", "a number of 3,000,000 digits"),
        (b"P1\n.", "a persistent id"),
        (b"\x80\x02}\x85R.", "a call of a tuple"),
        (b"\x80\x02r\xff\xff\xff\xff.", "memo 2**32"),
        (b"\x80\x02N" + b"r\xff\xff\xff\x7f" + b".", "memo 2**31"),
        (b"\x80\x05\x97.", "buffer out of band"),
        (b"\x80\x02" + b"]q\x00(" + b"h\x00" * 10 + b"e." * 1, "laughs"),
        (b"\x80\xff.", "protocol 255"),
        (b".", "nothing"),
    ))  # fmt: skip


def _laughs() -> bytes:
    """Lists of lists that are 10**9 items if they are followed, and a few bytes here."""
    node: Any = ["x"]
    for _ in range(30):
        node = [node] * 10
    return pickle.dumps({"segments": node, "device_traces": node}, protocol=2)


def _loops(content: Any, rng: random.Random) -> None:
    """Something contains itself."""
    if isinstance(content, dict) and content:
        key = rng.choice(list(content))
        if isinstance(content[key], list):
            content[key].append(content)
        else:
            content[key] = content


def damaged(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A snapshot that is something else."""
    kind = rng.randrange(6)
    if kind == 0:
        return _raw(rng)
    if kind == 1:
        return _laughs(), "laughs"
    content = pickle.loads(data)
    protocol = rng.randrange(6)
    if kind == 2:
        _loops(content, rng)
        return pickle.dumps(content, protocol=protocol), f"loops, protocol {protocol}"
    if kind == 3:
        content["more"] = Calls()
        return pickle.dumps(content, protocol=protocol), "calls"
    for _ in range(rng.choice((0, 1, 10))):
        change(content, rng)
    made = pickle.dumps(content, protocol=protocol)
    if kind == 4:
        return made + rng.randbytes(50), f"trailing, protocol {protocol}"
    return made, f"protocol {protocol}"
