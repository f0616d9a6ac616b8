"""What a notebook shows of a report."""

from __future__ import annotations

from collections.abc import Mapping


def facts_table(facts: Mapping[str, str]) -> str:
    """Names and values as an HTML table, without those that are empty; all text is escaped."""
    import html

    cells = "".join(
        f"<tr><th>{html.escape(key)}</th><td>{html.escape(value)}</td></tr>"
        for key, value in facts.items()
        if value
    )
    return f"<table>{cells}</table>"
