"""Damage to the pages of an SQLite file: trees that end nowhere, or in themselves."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

INNER, LEAF = 5, 13


class Pages:
    """The pages of a file, numbered from 1."""

    def __init__(self, data: bytes, rng: random.Random) -> None:
        self.data = bytearray(data)
        size = int.from_bytes(data[16:18], "big")
        self.size = 65536 if size == 1 else max(512, size)
        self.count = max(1, len(data) // self.size)
        self.rng = rng

    def start(self, page: int) -> int:
        """Where the header of the tree's page begins."""
        return (page - 1) * self.size + (100 if page == 1 else 0)

    def of_kind(self, *kinds: int) -> int:
        found = [page for page in range(1, self.count + 1) if self.data[self.start(page)] in kinds]
        return self.rng.choice(found)

    def cells(self, page: int) -> list[int]:
        """Where the cells of a page are."""
        at = self.start(page)
        count = int.from_bytes(self.data[at + 3 : at + 5], "big")
        first = at + (12 if self.data[at] in (2, INNER) else 8)
        places = [
            int.from_bytes(self.data[first + 2 * n : first + 2 * n + 2], "big")
            for n in range(min(count, self.size // 4))
        ]
        return [(page - 1) * self.size + place for place in places]

    def put(self, at: int, number: int, width: int) -> None:
        self.data[at : at + width] = (number % 256**width).to_bytes(width, "big")


def kind_of_page(pages: Pages) -> None:
    page = pages.of_kind(2, INNER, 10, LEAF)
    pages.data[pages.start(page)] = pages.rng.choice((0, 2, INNER, 10, LEAF, 255))


def count_of_cells(pages: Pages) -> None:
    at = pages.start(pages.of_kind(INNER, LEAF)) + 3
    pages.put(at, pages.rng.choice((0, 1, 500, 65535)), 2)


def pointers(pages: Pages) -> None:
    page = pages.of_kind(INNER, LEAF)
    at = pages.start(page) + (12 if pages.data[pages.start(page)] == INNER else 8)
    for _ in range(pages.rng.choice((1, 5))):
        pages.put(at + 2 * pages.rng.randrange(20), pages.rng.randrange(pages.size), 2)


def into_itself(pages: Pages) -> None:
    """An inner page whose children are itself, its parent, or all the same."""
    page = pages.of_kind(INNER)
    target = pages.rng.choice((page, 1, pages.rng.randrange(1, pages.count + 1)))
    children = pages.cells(page)
    for at in children if pages.rng.random() < 0.5 else children[:1]:
        if at + 4 <= len(pages.data):
            pages.put(at, target, 4)
    if pages.rng.random() < 0.3:
        pages.put(pages.start(page) + 8, target, 4)


def deep_tree(pages: Pages) -> None:
    """Inner pages that lead through each other many times before they come to leaves."""
    inner = [page for page in range(2, pages.count + 1) if pages.data[pages.start(page)] == INNER]
    for one, other in itertools.pairwise(inner):
        for at in pages.cells(one):
            if at + 4 <= len(pages.data):
                pages.put(at, other, 4)


def row_numbers(pages: Pages) -> None:
    for at in pages.cells(pages.of_kind(LEAF))[: pages.rng.choice((1, 1000))]:
        if at + 12 < len(pages.data):
            pages.data[at + 1 : at + 3] = bytes([pages.rng.randrange(128, 256), 0x7F])


def sizes_of_cells(pages: Pages) -> None:
    """Rows that say that they are huge, and go on in pages that are none."""
    for at in pages.cells(pages.of_kind(LEAF))[: pages.rng.choice((1, 30))]:
        if at + 12 < len(pages.data):
            width = pages.rng.choice((1, 3, 5, 9))
            pages.data[at : at + width] = b"\xff" * (width - 1) + b"\x7f"


def types_of_values(pages: Pages) -> None:
    """Another serial type in the heads of rows."""
    for at in pages.cells(pages.of_kind(LEAF))[: pages.rng.choice((1, 1000))]:
        if at + 12 < len(pages.data):
            pages.data[at + 3 + pages.rng.randrange(6)] = pages.rng.choice(
                (0, 5, 6, 7, 8, 9, 10, 11, 12, 13, 127)
            )


def header(pages: Pages) -> None:
    at, width, values = pages.rng.choice((
        (16, 2, (1, 0, 512, 3, 65535)),
        (18, 1, (2, 0, 255)),
        (19, 1, (2, 255)),
        (20, 1, (1, 255)),
        (28, 4, (0, 1, 2**31)),
        (32, 4, (1, 2**31)),
        (36, 4, (2**31, 1)),
        (44, 4, (0, 9)),
        (52, 4, (1, 3)),
        (56, 4, (2, 3, 0, 99)),
    ))  # fmt: skip
    pages.put(at, pages.rng.choice(values), width)


def schema_root(pages: Pages) -> None:
    """A byte of the table of tables."""
    at = pages.rng.randrange(100, min(pages.size, len(pages.data)))
    pages.data[at] = pages.rng.randrange(256)


def zeroed(pages: Pages) -> None:
    for _ in range(pages.rng.choice((1, 3))):
        page = pages.rng.randrange(2, pages.count + 1)
        fill = pages.rng.choice((b"\0", b"\xff"))
        pages.data[(page - 1) * pages.size : page * pages.size] = fill * pages.size


def exchanged(pages: Pages) -> None:
    one, other = (pages.rng.randrange(1, pages.count) * pages.size for _ in range(2))
    size = pages.size
    first, second = pages.data[one : one + size], pages.data[other : other + size]
    pages.data[one : one + size], pages.data[other : other + size] = second, first


def shorter(pages: Pages) -> None:
    del pages.data[pages.rng.randrange(1, pages.count + 1) * pages.size :]


DAMAGES: tuple[Callable[[Pages], None], ...] = (
    *(kind_of_page, count_of_cells, pointers, into_itself, into_itself, deep_tree, row_numbers),
    *(sizes_of_cells, types_of_values, types_of_values, header, schema_root, zeroed, exchanged),
    shorter,
)


def damaged(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """The file with one to three damages, and which."""
    pages, done = Pages(data, rng), []
    for _ in range(rng.choice((1, 1, 2, 3))):
        act = rng.choice(DAMAGES)
        try:
            act(pages)
            done.append(act.__name__)
        except (IndexError, ValueError):
            continue
    return bytes(pages.data), ", ".join(done)
