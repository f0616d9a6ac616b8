"""The data of a page as JSON: everything that its tables show, with a versioned schema."""

from __future__ import annotations

from typing import Any

from nsightpy.render.escape import printable
from nsightpy.render.formats import finite
from nsightpy.results import finding_record
from nsightpy.results.page import SCHEMA, Page, PageTable, Section


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
        "passed": [{"id": name, "says": says} for name, says in page.passed],
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
        "columns": [{"name": field.name, "unit": field.unit} for field in shown.table.fields],
        "rows": [list(row) for row in shown.table.rows],
        "total": shown.total,
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
