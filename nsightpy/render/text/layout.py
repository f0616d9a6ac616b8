"""Columns of text laid side by side in a given width: what fits, what is cut, what is left out."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsightpy.names import readable
from nsightpy.render.escape import display_width

if TYPE_CHECKING:
    from rich.text import Text

UNLIMITED = 1_000_000
# Columns of names, which are worth more space than other texts.
NAMES = ("name", "operation", "operator", "range", "evidence", "allocated by")
NARROWEST_NAME = 28
NARROWEST_TEXT = 10
GAP = 2
LONGEST_RULE = 60
_ROUNDS = 4  # of telling names apart that still look alike
_NEAR = 8
# Dropped first, in this order, when a terminal is too narrow for the names.
_EXPENDABLE = (
    "mangled",
    "busbw with wait",
    "sol ",
    "StdDev",
    "Min",
    "Max",
    "residual p05",
    "residual p95",
    "rank source",
    "before allocations",
    "after allocations",
    "largest bytes",
    "at peak allocations",
    "drift",
    "residual p50",
    "alignment",
    "host",
    "unattributed",
    "other wait",
    "kernel wait",
    "host wait",
    "overlap",
    "memory (",
    "communication (",
    "dependency stalled",
    "blocking",
    "busy (",
    "jitter",
    "algbw",
    "last share",
    "transfer med",
    "at end bytes",
    "left bytes",
    "peak (",
    "classification",
    "queued count",
    "queue max",
    "api med",
    "Med",
    "Avg",
)


@dataclass(frozen=True)
class Shown:
    """A column as text cells under a heading, whose words may stand on several lines."""

    heading: str
    cells: tuple[str, ...]
    is_text: bool

    @property
    def width(self) -> int:
        """The cells it takes with its heading on one line."""
        return max(display_width(self.heading), self.narrowest)

    @property
    def narrowest(self) -> int:
        """The cells it takes uncut, with its heading's words below each other."""
        words = self.heading.split() or [""]
        return max(display_width(cell) for cell in (*words, *self.cells))

    @property
    def is_empty(self) -> bool:
        """Whether every cell says nothing: zero or absent."""
        return len(self.cells) > 0 and set(self.cells) <= {"0", "0.0", "0.000", "-", ""}

    @property
    def is_name(self) -> bool:
        """Whether the cells are names, worth more space than other texts."""
        return self.is_text and self.heading.lower() in NAMES

    @property
    def least(self) -> int:
        """The fewest cells in which it can still be read."""
        if not self.is_text:
            return self.narrowest
        return min(self.narrowest, NARROWEST_NAME if self.is_name else NARROWEST_TEXT)

    def cut(self, width: int) -> list[str]:
        """The cells in at most that many cells of the terminal; names stay different."""
        if self.is_name:
            return short_names([readable(cell, width) for cell in self.cells], width)
        return [shorten(cell, width) for cell in self.cells]


def lines(
    columns: Sequence[Shown], width: int, *, rule: bool = True, fold: bool = True
) -> list[Text]:
    """Heading and rows as styled text lines no wider than `width`; `fold` breaks headings."""
    from rich.text import Text

    widths = _widths(columns, width, fold=fold)
    style = "bold" if rule else "dim"
    found = [Text(_join(line, columns, widths), style=style) for line in _headings(columns, widths)]
    if rule:
        found.append(Text("  ".join("─" * min(size, LONGEST_RULE) for size in widths), style="dim"))
    cut = [column.cut(size) for column, size in zip(columns, widths, strict=True)]
    found += [Text(_join(cells, columns, widths)) for cells in zip(*cut, strict=True)]
    return found


def fitted(columns: Sequence[Shown], width: int) -> tuple[list[Shown], list[Shown]]:
    """The columns to show and those to leave out, so that names keep a readable width."""
    kept = list(columns)
    if not _fits(kept, width):
        kept = [column for column in kept if not column.is_empty]
    for prefix in _EXPENDABLE:
        if _fits(kept, width):
            break
        kept = [column for column in kept if not column.heading.startswith(prefix)]
    while not _fits(kept, width) and len(kept) > 2:
        kept.pop(max((i for i, c in enumerate(kept) if not c.is_name), default=len(kept) - 1))
    return kept, [column for column in columns if column not in kept]


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
    for _ in range(_ROUNDS if width >= NARROWEST_TEXT else 0):
        meant: dict[str, list[str]] = {}
        for name, text in short.items():
            meant.setdefault(text, []).append(name)
        for alike in (group for group in meant.values() if len(group) > 1):
            place = _word_start(alike[0], _agreement(alike), width // 3 + 1)
            short |= {name: _around(name, place, width) for name in alike}
    return [short[name] for name in names]


def _word_start(text: str, place: int, least: int) -> int:
    """Where the word begins in which a place lies, if that is near and not before the least."""
    for start in range(place, max(place - _NEAR, least), -1):
        if not (text[start - 1].isalnum() or text[start - 1] == "_"):
            return start
    return place


def _agreement(texts: Sequence[str]) -> int:
    """How many characters all of them begin with."""
    first, last = min(texts), max(texts)
    pairs = zip(first, last, strict=False)
    return next((n for n, (one, other) in enumerate(pairs) if one != other), len(first))


def _around(text: str, place: int, width: int) -> str:
    """A long text in that many cells: its start, and what stands from a place on."""
    head = _cut(text, min(width // 3, place))
    rest = text[place:]
    left = width - display_width(head) - 1
    if display_width(rest) > left:
        return f"{head}…{_cut(rest, left - 1)}…"
    return f"{head}…{_cut(text[::-1], left)[::-1]}"


def _fits(columns: Sequence[Shown], width: int) -> bool:
    return sum(column.least for column in columns) + GAP * (len(columns) - 1) <= width


def _widths(columns: Sequence[Shown], width: int, *, fold: bool) -> list[int]:
    """Each column's width: headings on one line if all fits so; texts share what is left."""
    available = width - GAP * (len(columns) - 1)
    full = [column.width for column in columns]
    if sum(full) <= available:
        return full
    widths = [column.narrowest if fold or column.is_text else column.width for column in columns]
    texts = [place for place, column in enumerate(columns) if column.is_text]
    left = available - sum(size for place, size in enumerate(widths) if place not in texts)
    # the shortest texts are served first, so that only the long ones are cut; names last
    served = sorted(texts, key=lambda place: (columns[place].is_name, widths[place]))
    for done, place in enumerate(served):
        reserved = sum(columns[later].least for later in served[done + 1 :])
        share = max(left // (len(served) - done), columns[place].least)
        widths[place] = min(widths[place], max(min(share, left - reserved), 1))
        left -= widths[place]
    return widths


def _headings(columns: Sequence[Shown], widths: Sequence[int]) -> list[list[str]]:
    """The heading lines, top to bottom; short headings stand on the last one."""
    wrapped = [
        textwrap.wrap(column.heading, size, break_long_words=False) or [""]
        if size < display_width(column.heading)
        else [column.heading]
        for column, size in zip(columns, widths, strict=True)
    ]
    height = max(map(len, wrapped), default=1)
    padded = [[""] * (height - len(words)) + words for words in wrapped]
    return [list(line) for line in zip(*padded, strict=True)]


def _join(cells: Sequence[str], columns: Sequence[Shown], widths: Sequence[int]) -> str:
    placed = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        space = " " * (width - display_width(cell))
        placed.append(cell + space if column.is_text else space + cell)
    return (" " * GAP).join(placed).rstrip()


def _cut(text: str, width: int) -> str:
    kept, used = [], 0
    for character in text:
        used += display_width(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept)
