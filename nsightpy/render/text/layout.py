"""Columns of text laid side by side in a given width: what fits, what is cut, what is left out.

Texts are cut so that people can still tell them apart.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from nsightpy.names import readable, readable_apart
from nsightpy.output.escape import display_width, printable
from nsightpy.units import counted

if TYPE_CHECKING:
    from rich.text import Text

NARROWEST = 10  # in less, no two places of a name fit
_ROUNDS = 6  # of telling names apart that still look alike
UNLIMITED = 1_000_000
# Columns that say where a row is from: not worth a narrow screen's space where all rows agree.
PLACES = ("rank", "device", "stream")
KERNELS = ("name", "kernel", "kernel name", "before", "after")
NARROWEST_NAME = 28
NARROWEST_TEXT = 14
WIDEST_WORD = 36  # of texts that are nsightpy's own, which are not cut below
LONGEST_VALUE = 20  # of what all rows share, in the line on hidden columns
GAP = 2
LONGEST_RULE = 60
WIDEST_NOTE = 120
# Between a number and its unit no line is broken.
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|[num]?s|[KMGT]?B)(?!\w))")


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
            short |= {name: _around(name, agreement, width) for name in alike}
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


def wrapped(text: str, width: int, first: str = "", rest: str = "", cut: bool = True) -> list[str]:
    """The lines of a text behind `first` and `rest`; words that are too long are `cut` or overhang.

    A number stays with its unit, and an option or a name is not divided at its hyphens.
    """
    lines = textwrap.wrap(
        _BEFORE_UNIT.sub("\u00a0", text),
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=cut,
        break_on_hyphens=False,
    )
    return [line.replace("\u00a0", " ") for line in lines]


def styled(text: str, style: str = "") -> Text:
    """A line in a style of rich's."""
    from rich.text import Text

    return Text(text, style=style)


@dataclass(frozen=True)
class Shown:
    """A column as text cells under a heading, whose words may stand on several lines.

    `key`: its name in the table, where it has one. `own`: the words are nsightpy's. `is_name`: the
    cells are names, worth more space than other texts; `wide`: the fewest cells of a text.
    """

    heading: str
    cells: tuple[str, ...]
    is_text: bool
    key: str = ""
    own: bool = False
    is_name: bool = False
    wide: int = 0

    @property
    def width(self) -> int:
        """The cells it takes with its heading on one line."""
        return max(display_width(self.heading), self.narrowest)

    @property
    def narrowest(self) -> int:
        """The cells it takes uncut, with its heading on two lines."""
        words = self.heading.split()
        parts = [(" ".join(words[:at]), " ".join(words[at:])) for at in range(len(words))]
        heading = min((max(map(display_width, pair)) for pair in parts), default=0)
        return max(heading, *map(display_width, self.cells), 0)

    @property
    def is_empty(self) -> bool:
        """Whether every cell says nothing: zero or absent."""
        return len(self.cells) > 0 and set(self.cells) <= _NOTHING

    @property
    def is_repeated(self) -> bool:
        """Whether every row says the same about what or where it is: one mention is enough."""
        says_where = (self.is_text and not self.is_name) or self.key in PLACES
        return says_where and len(self.cells) > 1 and len(set(self.cells)) == 1

    @property
    def least(self) -> int:
        """The fewest cells in which it can still be read."""
        if not self.is_text:
            return self.narrowest
        text = WIDEST_WORD if self.own else NARROWEST_TEXT
        return min(self.narrowest, self.wide or (NARROWEST_NAME if self.is_name else text))

    def cut(self, width: int) -> list[str]:
        """The cells in at most that many cells of the terminal; different texts stay different."""
        is_kernel = self.heading.lower() in KERNELS
        return short_names(readable_apart(self.cells, width) if is_kernel else self.cells, width)


_NOTHING = {"0", "0 ns", "0 B", "no", "0.0", "0.000", "-", ""}


def lines(
    columns: Sequence[Shown], width: int, *, rule: bool = True, fold: bool = True
) -> list[Text]:
    """Heading and rows as styled text lines no wider than `width`; `fold` breaks headings."""
    widths = _widths(columns, width, fold=fold)
    style = "bold" if rule else "dim"
    texts = [styled(_join(row, columns, widths), style) for row in _headings(columns, widths)]
    if rule:
        texts.append(styled("  ".join("─" * min(size, LONGEST_RULE) for size in widths), "dim"))
    cut = [column.cut(size) for column, size in zip(columns, widths, strict=True)]
    return texts + [styled(_join(cells, columns, widths)) for cells in zip(*cut, strict=True)]


def fitted(
    columns: Sequence[Shown], width: int, importance: Sequence[str] = ()
) -> tuple[list[Shown], list[Shown]]:
    """The columns to show and, most important first, those to leave out, so that names keep a
    readable width.

    `importance` orders keys; without it the columns count from left to right. Columns that say
    nothing, the same in every row, or what the rank tells make space before anything is cut. The
    two most important always stay.
    """
    if sum(column.width for column in columns) + GAP * (len(columns) - 1) <= width:
        return list(columns), []
    order = {key: index for index, key in enumerate(importance)}
    ranked = sorted(
        range(len(columns)), key=lambda at: (order.get(columns[at].key, len(order)), at)
    )
    places = {column.key: column.cells for column in columns if column.key in PLACES}
    ranks, devices = places.get("rank", ()), places.get("device", ())
    # where each rank has one device, the rank says which
    told = 1 < len(set(ranks)) == len(set(zip(ranks, devices, strict=False)))
    needless = [
        at
        for at in ranked
        if columns[at].is_empty or columns[at].is_repeated or (told and columns[at].key == "device")
    ]
    kept: set[int] = set()
    for at in sorted(ranked, key=needless.__contains__):
        least = sum(columns[each].least for each in {*kept, at}) + GAP * len(kept - {at})
        if len(kept) < 2 or (at not in needless and least <= width):
            kept.add(at)
    shown = [column for at, column in enumerate(columns) if at in kept]
    return shown, [columns[at] for at in ranked if at not in kept]


def hidden_line(hidden: Sequence[Shown], width: int) -> str:
    """What a terminal has no space for, on one line; of what all rows share the value."""
    ordered = sorted(hidden, key=lambda column: (column.is_empty, not column.is_repeated))
    parts = [
        f"{one.heading} {shorten(one.cells[0], LONGEST_VALUE)} in all rows"
        if one.is_repeated
        else one.heading
        for one in ordered
    ]
    text = f"not shown (--format csv): {', '.join(parts)}"
    for kept in range(len(parts) - 1, -1, -1):
        if display_width(text) <= width:
            break
        left = len(parts) - kept
        more = f"{left} more" if kept else counted(left, "column")
        text = f"not shown (--format csv): {', '.join([*parts[:kept], more])}"
    return text


def _widths(columns: Sequence[Shown], width: int, *, fold: bool) -> list[int]:
    """Each column's width: headings on one line if all fits so; texts share what is left."""
    available = width - GAP * (len(columns) - 1)
    full = [column.width for column in columns]
    if sum(full) <= available:
        return full
    widths = [column.narrowest if fold or column.is_text else column.width for column in columns]
    texts = [index for index, column in enumerate(columns) if column.is_text]
    left = available - sum(size for index, size in enumerate(widths) if index not in texts)
    # the shortest texts are served first, so that only the long ones are cut; names last
    served = sorted(texts, key=lambda index: (columns[index].is_name, widths[index]))
    for before, index in enumerate(served):
        reserved = sum(columns[later].least for later in served[before + 1 :])
        share = max(left // (len(served) - before), columns[index].least)
        widths[index] = min(widths[index], max(min(share, left - reserved), 1))
        left -= widths[index]
    return widths


def _headings(columns: Sequence[Shown], widths: Sequence[int]) -> list[tuple[str, ...]]:
    """The heading lines, top to bottom; short headings stand on the last one."""
    texts = [
        textwrap.wrap(column.heading, size, break_long_words=False) or [""]
        if size < display_width(column.heading)
        else [column.heading]
        for column, size in zip(columns, widths, strict=True)
    ]
    bottom_up = zip_longest(*(reversed(words) for words in texts), fillvalue="")
    return [*bottom_up][::-1]


def _join(cells: Sequence[str], columns: Sequence[Shown], widths: Sequence[int]) -> str:
    parts = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        space = " " * (width - display_width(cell))
        parts.append(cell + space if column.is_text else space + cell)
    return (" " * GAP).join(parts).rstrip()
