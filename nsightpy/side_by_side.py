"""Two parts of an analysis at a time: arrays are sorted and added up without Python's lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def both(first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """What two functions give, the second on a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        meanwhile = pool.submit(second)
        return first(), meanwhile.result()
