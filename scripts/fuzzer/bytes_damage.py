"""Damage to any file: bytes that are lost, changed, moved or added."""

from __future__ import annotations

import random
from collections.abc import Callable


def flip(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 1, 3, 20, 200))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def overwrite(data: bytearray, rng: random.Random) -> None:
    start, size = _block(data, rng)
    kind = rng.choice((0, 255, None))
    data[start : start + size] = rng.randbytes(size) if kind is None else bytes([kind]) * size


def truncate(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def cut_out(data: bytearray, rng: random.Random) -> None:
    start, size = _block(data, rng)
    del data[start : start + size]


def double(data: bytearray, rng: random.Random) -> None:
    start, size = _block(data, rng)
    data[start:start] = data[start : start + size]


def swap(data: bytearray, rng: random.Random) -> None:
    first, size = _block(data, rng)
    second = rng.randrange(max(1, len(data) - size))
    one, other = bytes(data[first : first + size]), bytes(data[second : second + size])
    data[second : second + len(one)] = one
    data[first : first + len(other)] = other


def numbers(data: bytearray, rng: random.Random) -> None:
    """Numbers as programs fear them, in the first part or anywhere."""
    value = rng.choice((0, 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1))
    width = rng.choice((1, 2, 4, 8))
    end = rng.choice((100, len(data)))
    start = rng.randrange(max(1, min(end, len(data)) - width))
    data[start : start + width] = (value % 256**width).to_bytes(
        width, rng.choice(("big", "little"))
    )


DAMAGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    *(flip, flip, overwrite, overwrite, truncate, cut_out, double, swap, numbers, numbers),
)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """The bytes with one to three damages."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if changed:
            rng.choice(DAMAGES)(changed, rng)
    return bytes(changed)


def _block(data: bytearray, rng: random.Random) -> tuple[int, int]:
    size = min(len(data), rng.choice((1, 4, 64, 512, 4096, 40_000)))
    return rng.randrange(max(1, len(data) - size)), size
