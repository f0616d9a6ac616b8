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
from nsightpy.render.timeline.page import embed, policy_hashes
from nsightpy.results import finding_record
from nsightpy.results.page import SCHEMA, Page, PageTable, Section

LIMIT = 1_000_000
LARGEST_PICTURE = 300_000
# Tables are cut to so many rows, the first number with which the page is small enough.
ROWS = (256, 100, 60, 30, 12, 4)
# Where the timeline goes: no text can say this, since its < is escaped.
_LATER = "<!--timeline-->"


def _policy(style: str, script: str, *, timeline: bool) -> str:
    """What the page may do: its own style, script and timeline, images inside the file."""
    codes, styles = [policy_hash(script)], [policy_hash(style)]
    if timeline:
        code, styling = policy_hashes()
        codes.append(code)
        styles.append(styling)
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(f"'{digest}'" for digest in codes),
        "style-src": " ".join(f"'{digest}'" for digest in styles),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "nsightpy" if timeline else "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def write_page(page: Page, file: BinaryIO) -> None:
    """Write the page, with the timeline where it has one."""
    before, after = page_text(page)
    file.write(before.encode())
    if page.timeline is not None:
        embed(page.timeline, file)
    file.write(after.encode())


def page_text(page: Page) -> tuple[str, str]:
    """The page before and after its timeline, cut so that it has at most LIMIT bytes.

    First tables lose rows, then the largest pictures go.
    """
    pictures = {
        picture.id: drawn(picture, LARGEST_PICTURE)
        for section in page.shown
        for picture in section.pictures
    }
    largest = sorted(pictures, key=lambda name: -len(getattr(pictures[name], "address", "")))
    fewer = [(ROWS[-1], count + 1) for count in range(len(largest))]
    text = ""
    for rows, left_out in (*((rows, 0) for rows in ROWS), *fewer, (0, len(largest))):
        for name in largest[:left_out]:
            pictures[name] = pictures[name] and PageImage(Markup(), 0)
        text = _rendered(_cut(page, rows), pictures)
        if len(text.encode()) <= LIMIT:
            break
    before, _, after = text.partition(_LATER)
    return before, after


def _cut(page: Page, rows: int) -> Page:
    def shorter(shown: PageTable) -> PageTable:
        return replace(shown, table=shown.table.first(max(rows, shown.keeps)))

    def cut(section: Section) -> Section:
        return replace(section, tables=tuple(map(shorter, section.tables)))

    return replace(page, sections=tuple(map(cut, page.sections)))


def _rendered(page: Page, pictures: Mapping[str, PageImage | None]) -> str:
    script = f'"use strict";\n{source("page", "page.js")}'
    style = source("page", "page.css")
    return template("page", "page.html").render(
        page=page,
        policy=_policy(style, script, timeline=page.timeline is not None),
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
        "sections": [_section(section) for section in page.sections],
        "passed": [{"id": name, "text": text} for name, text in page.passed.items()],
        "notes": list(page.notes),
    }
    return dict(_harmless(finite(document)))


def _section(section: Section) -> dict[str, Any]:
    return {
        "id": section.id,
        "title": section.title,
        "says": section.says,
        "missing": section.missing,
        "command": section.command,
        "tables": [_table(table) for table in section.tables],
        "notes": list(section.notes),
    }


def _table(shown: PageTable) -> dict[str, Any]:
    return {
        "id": shown.id,
        "title": shown.title,
        "columns": [{"name": field.name, "unit": field.kind} for field in shown.table.fields],
        "rows": [list(row) for row in shown.table.rows],
        "total": shown.table.total,
    }


def _harmless(value: Any) -> Any:
    """The same values, every text printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {key: _harmless(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_harmless(inner) for inner in value]
    return value
