"""A report page as one offline file: readable without scripts, and allowed to load nothing.

The policy names the page's one script and one style by hash; free text is escaped by the
templates, and only ever becomes text. Without a timeline the file has at most LIMIT bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, BinaryIO

from markupsafe import Markup

from nsightpy.output.escape import printable
from nsightpy.output.formats import finite
from nsightpy.render.inline import policy_hash, script_json, source, template
from nsightpy.render.page.content import PageImage, columns_of, drawn
from nsightpy.render.timeline.page import embed, sources
from nsightpy.results import finding_record
from nsightpy.results.page import SCHEMA, Page, PageTable

LIMIT, PICTURES = 1_000_000, 700_000  # bytes
LARGEST_PICTURE = 300_000
# Tables are cut to so many rows, the first number with which the page is small enough.
ROWS = (256, 100, 60, 30, 12, 4, 0)
_OF_SECTION = ("id", "title", "says", "missing", "command")
# Where the timeline goes: no text can say this, since its < is escaped.
_LATER = "<!--timeline-->"


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
        if sizes[name] > LARGEST_PICTURE or sum(sizes.values()) > PICTURES:
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
