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
NARROWEST_NAME = 28
NARROWEST_TEXT = 10
GAP = 2
LONGEST_RULE = 60
# Dropped first, in this order, when a terminal is too narrow for the names.
_EXPENDABLE = (
    "StdDev",
    "Min",
    "Max",
    "residual p05",
    "residual p95",
    "rank source",
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
    "busy (",
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
        """Whether the cells are names, worth more room than other texts."""
        return self.is_text and self.heading.lower() in ("name", "operation", "range", "evidence")

    @property
    def least(self) -> int:
        """The fewest cells in which it can still be read."""
        if not self.is_text:
            return self.narrowest
        return min(self.narrowest, NARROWEST_NAME if self.is_name else NARROWEST_TEXT)


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
    for row in range(len(columns[0].cells) if columns else 0):
        found.append(Text(_join([column.cells[row] for column in columns], columns, widths)))
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


def _fits(columns: Sequence[Shown], width: int) -> bool:
    return sum(column.least for column in columns) + GAP * (len(columns) - 1) <= width


def _widths(columns: Sequence[Shown], width: int, *, fold: bool) -> list[int]:
    """Each column's width: headings on one line if all fits so; texts share what is left."""
    room = width - GAP * (len(columns) - 1)
    full = [column.width for column in columns]
    if sum(full) <= room:
        return full
    widths = [column.narrowest if fold or column.is_text else column.width for column in columns]
    texts = [place for place, column in enumerate(columns) if column.is_text]
    left = room - sum(size for place, size in enumerate(widths) if place not in texts)
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
        text = shorten(readable(cell, width) if column.is_name else cell, width)
        space = " " * (width - display_width(text))
        placed.append(text + space if column.is_text else space + text)
    return (" " * GAP).join(placed).rstrip()


def _cut(text: str, width: int) -> str:
    kept, used = [], 0
    for character in text:
        used += display_width(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept)
