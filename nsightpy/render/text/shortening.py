"""Texts cut to a width so that people can still tell them apart."""

from __future__ import annotations

from collections.abc import Sequence

from nsightpy.names import readable, readable_apart
from nsightpy.output.escape import display_width, printable

NARROWEST = 10  # in less, no two places of a name fit
_ROUNDS = 6  # of telling names apart that still look alike
_NEAR = 8


def shorten(text: str, width: int) -> str:
    """The text in at most that many cells, its middle replaced by an ellipsis."""
    if display_width(text) <= width:
        return text
    if width <= 1:
        return "…"[:width]
    tail = (width - 1) // 3
    start, end = _cut(text, width - 1 - tail), _cut(text[::-1], tail)[::-1]
    return f"{start}…{end}"


def short_names(names: Sequence[str], width: int) -> list[str]:
    """The names in at most that many cells; those that would look alike show where they differ."""
    short = {name: shorten(name, width) for name in names}
    for _ in range(_ROUNDS if width >= NARROWEST else 0):
        meant: dict[str, list[str]] = {}
        for name, text in short.items():
            meant.setdefault(text, []).append(name)
        for alike in (group for group in meant.values() if len(group) > 1):
            pairs = enumerate(zip(min(alike), max(alike), strict=False))
            agreement = next((n for n, pair in pairs if len(set(pair)) > 1), len(min(alike)))
            # where the word begins, if that is near
            text, nearest = alike[0], max(agreement - _NEAR, width // 3 + 1)
            starts = range(agreement, nearest, -1)
            begins = (at for at in starts if not (text[at - 1].isalnum() or text[at - 1] == "_"))
            position = next(begins, agreement)
            short |= {name: _around(name, position, width) for name in alike}
    return [short[name] for name in names]


def short_name(name: str, width: int) -> str:
    """A kernel's name as people read it, in at most that many characters."""
    return shorten(printable(readable(name, width)), width)


def distinct_names(names: Sequence[str], width: int) -> list[str]:
    """Kernel names as people read them; those that would look alike show where they differ."""
    return short_names([printable(name) for name in readable_apart(names, width)], width)


def _around(text: str, position: int, width: int) -> str:
    """A long text in that many cells: its start, and what stands from a place on."""
    head = _cut(text, min(width // 3, position))
    rest = text[position:]
    left = width - display_width(head) - 1
    if display_width(rest) > left:
        return f"{head}…{_cut(rest, left - 1)}…"
    return f"{head}…{_cut(text[::-1], left)[::-1]}"


def _cut(text: str, width: int) -> str:
    kept, used = [], 0
    for character in text:
        used += display_width(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept)
