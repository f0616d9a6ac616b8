"""What a page shows of tables and pictures: columns as people read them, images as addresses.

An image is SVG inside its own address. Its style sheet turns paper, ink and greys on dark pages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from urllib.parse import quote

from markupsafe import Markup

from nsightpy.errors import NsightpyError
from nsightpy.output.cells import ABSENT, cells, heading
from nsightpy.render.plots.drawing import FAINT, INK, PALE, QUIET, picture_bytes
from nsightpy.render.text.shortening import distinct_names, shorten
from nsightpy.render.text.terminal import by_importance, in_order
from nsightpy.results import Field, Table, Value
from nsightpy.results.page import PagePicture

MOST_COLUMNS = 8  # the others are shown on demand
WIDEST_NAME = 64
WIDEST_TEXT = 90
LONGEST_WORD = 24
DARK = {
    "#ffffff": "#14171b",
    INK: "#e4e8ec",
    QUIET: "#9aa4ae",
    FAINT: "#3d444c",
    PALE: "#3a4149",
}
_RULES = "".join(
    f"[style*='{name}: {light}'] {{ {name}: {dark} !important }} "
    for light, dark in DARK.items()
    for name in ("fill", "stroke")
)
# White text stands on colours.
_WHITE = "text[style*='fill: #ffffff'] { fill: #ffffff !important }"
_STYLE = f"@media (prefers-color-scheme: dark) {{ {_RULES}{_WHITE} }}</style>"
_COORDINATES = re.compile(r' (?:d|x|y)="[^"]*"')
_DECIMALS = re.compile(r"(\.\d)\d+")
_NEEDLESS = re.compile(r'\n *|(?<=<g) id="\w+"| transform="rotate\(-0 [^"]*"')
_COLUMNS = re.compile(r"(?<=[> ]) | (?= )")  # spaces that set text in columns
_PLAIN = " !$()*+,/:;=?@[]{}|"  # in an attribute of HTML, and in an address
PIXELS = 96  # of a page, in an inch


@dataclass(frozen=True)
class Cell:
    """A shown value; `full` says that the text is longer, `bar` is a share in per cent."""

    text: str
    full: bool = False
    bar: float | None = None


@dataclass(frozen=True)
class Column:
    """A column; `more` is one that is shown on demand."""

    field: Field
    heading: str
    cells: Sequence[Cell]
    more: bool = False

    @property
    def kind(self) -> str:
        """How it is set: name, text, word (a text that is not broken) or number."""
        if self.field.kind == "name":
            return "name"
        if not self.field.is_text and self.field.kind != "bool":
            return "number"
        return "word" if all(len(cell.text) <= LONGEST_WORD for cell in self.cells) else "text"


def columns_of(table: Table) -> list[Column]:
    """The columns that hold something, the most important ones first."""
    filled = [f for f in in_order(table.fields) if set(table.column(f.name)) - {None, ""}]
    main = by_importance(filled)[:MOST_COLUMNS]
    fields = sorted(filled, key=lambda field: field.name not in main)
    return [_column(f, table.column(f.name), more=f.name not in main) for f in fields]


def _column(field: Field, values: Sequence[Value], *, more: bool) -> Column:
    texts, unit = cells(field, values)
    title = heading(field) + (f" ({unit})" if unit else "")
    whole = ["" if text == ABSENT else text for text in texts]
    is_name, scale = field.kind == "name", {"share": 100.0, "%": 1.0}.get(field.kind, 0.0)
    short = (
        distinct_names(whole, WIDEST_NAME) if is_name else [shorten(t, WIDEST_TEXT) for t in whole]
    )
    bars = [
        min(max(scale * value, 0.0), 100.0) if scale and isinstance(value, int | float) else None
        for value in values
    ]
    rows = zip(short, whole, bars, strict=True)
    return Column(field, title, [Cell(text, text != full, bar) for text, full, bar in rows], more)


@dataclass(frozen=True)
class PageImage:
    """An image of a page: its address, empty where it is too large, and its width in pixels."""

    address: Markup
    width: int


def drawn(picture: PagePicture) -> PageImage | None:
    """The picture; None where there is nothing to draw."""
    module, _, name = picture.drawing.partition(":")
    try:
        figure = getattr(import_module(module), name)(picture.result)
    except NsightpyError:
        return None
    text = picture_bytes(figure, "picture.svg", **{"svg.fonttype": "none"}).decode()
    text = _COORDINATES.sub(
        lambda found: _DECIMALS.sub(r"\1", found[0]), text[text.index("<svg") :]
    )
    text = _NEEDLESS.sub("", text).replace("</style>", _STYLE, 1)
    text = _COLUMNS.sub("\u00a0", text)
    address = Markup("data:image/svg+xml," + quote(text, safe=_PLAIN))
    return PageImage(address, round(figure.get_size_inches()[0] * PIXELS))
