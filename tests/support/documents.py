"""What every json answer holds, and its rows as the other formats have them."""

from __future__ import annotations

from typing import Any

ENVELOPE = [
    *("schema", "tool_version", "inputs", "rows", "notes", "total_rows", "truncated"),
    *("abstentions", "untrusted"),
]
KEYS = ("key", "variant_key")


def without_keys(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows by column: keys are in json only."""
    return [{name: value for name, value in row.items() if name not in KEYS} for row in rows]
