"""A report page as one offline file: readable without scripts, and allowed to load nothing.

The policy names the page's one script and one style by hash; free text is escaped by the
templates, and only ever becomes text. Without a timeline the file has at most LIMIT bytes. An
image is SVG inside its own address; its style sheet turns paper, ink and greys on dark pages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, BinaryIO
from urllib.parse import quote

from markupsafe import Markup

from nsightpy.errors import NsightpyError
from nsightpy.output.cells import ABSENT, cells, heading
from nsightpy.output.escape import printable
from nsightpy.output.formats import finite
from nsightpy.render.inline import policy_hash, script_json, source, template
from nsightpy.render.plots.drawing import FAINT, INK, PALE, QUIET, picture_bytes
from nsightpy.render.text.layout import distinct_names, shorten
from nsightpy.render.text.terminal import by_importance, filled
from nsightpy.render.timeline.page import embed, sources
from nsightpy.results import Field, Table, Value, finding_record
from nsightpy.results.page import SCHEMA, Page, PagePicture, PageTable

LIMIT, PICTURES = 1_000_000, 700_000  # bytes
# Tables are cut to so many rows, the first number with which the page is small enough.
ROWS = (256, 100, 60, 30, 12, 4, 0)
_OF_SECTION = ("id", "title", "says", "missing", "command")
# Where the timeline goes: no text can say this, since its < is escaped.
_LATER = "<!--timeline-->"
MOST_COLUMNS = 8  # the others are shown on demand
WIDEST_NAME = 64
WIDEST_TEXT = 90
LONGEST_WORD = 24
DARK = {"#ffffff": "#14171b", INK: "#e4e8ec", QUIET: "#9aa4ae", FAINT: "#3d444c", PALE: "#3a4149"}
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


def write_page(page: Page, file: BinaryIO) -> None:
    """Write the page, with the timeline where it has one."""
    before, after = page_text(page)
    file.write(before.encode())
    if page.timeline is not None:
        embed(page.timeline, file)
    file.write(after.encode())


def page_text(page: Page) -> tuple[str, str]:
    """The page before and after its timeline, cut so that it has at most LIMIT bytes.

    The largest pictures go where they are too large together, then tables lose rows.
    """
    pictures = {p.id: drawn(p) for section in page.shown for p in section.pictures}
    sizes = {name: len(image.address) for name, image in pictures.items() if image}
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        if sum(sizes.values()) > PICTURES:
            pictures[name], sizes[name] = PageImage(Markup(), 0), 0
    text = ""
    for rows in ROWS:
        text = _rendered(page, pictures, rows)
        if len(text.encode()) <= LIMIT:
            break
    before, _, after = text.partition(_LATER)
    return before, after


def _rendered(page: Page, pictures: Mapping[str, PageImage | None], rows: int) -> str:
    """The page with at most so many rows of each table, but for those that it keeps."""

    def cut(shown: PageTable) -> PageTable:
        return replace(shown, table=shown.table.first(max(rows, shown.keeps)))

    sections = (replace(s, tables=tuple(map(cut, s.tables))) for s in page.sections)
    page = replace(page, sections=tuple(sections))
    script, style = f'"use strict";\n{source("page", "page.js")}', source("page", "page.css")
    codes, styles = [script], [style]
    if page.timeline is not None:
        code, look = sources()
        codes, styles = [script, code], [style, look]
    policy = {
        "default-src": "'none'",
        "script-src": " ".join(f"'{policy_hash(code)}'" for code in codes),
        "style-src": " ".join(f"'{policy_hash(look)}'" for look in styles),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'" if page.timeline is None else "nsightpy",
    }
    return template("page", "page.html").render(
        page=page,
        policy="; ".join(f"{name} {value}" for name, value in policy.items()),
        style=Markup(style),
        script=Markup(script),
        data=Markup(script_json(page_data(page))),
        later=Markup(_LATER),
        pictures=pictures,
        columns_of=columns_of,
    )


def page_data(page: Page) -> dict[str, Any]:
    """The page as plain values: figures raw (ns, bytes, shares), texts made printable."""
    document = {
        "schema": SCHEMA,
        "title": page.title,
        "inputs": list(page.inputs),
        "verdict": page.verdict,
        "header": dict(page.header),
        "findings": [finding_record(card.finding) for card in page.cards],
        "sections": [
            {
                **{name: getattr(section, name) for name in _OF_SECTION},
                "tables": [
                    {
                        "id": shown.id,
                        "title": shown.title,
                        "columns": [{"name": f.name, "unit": f.kind} for f in shown.table.fields],
                        "rows": [list(row) for row in shown.table.rows],
                        "total": shown.table.total,
                    }
                    for shown in section.tables
                ],
                "notes": list(section.notes),
            }
            for section in page.sections
        ],
        "passed": [{"id": name, "text": text} for name, text in page.passed.items()],
        "notes": list(page.notes),
    }
    return dict(_harmless(finite(document)))


def _harmless(value: Any) -> Any:
    """The same values, every text printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {key: _harmless(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_harmless(inner) for inner in value]
    return value


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
    shown = filled(table)
    main = by_importance(shown)[:MOST_COLUMNS]
    fields = sorted(shown, key=lambda field: field.name not in main)
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
