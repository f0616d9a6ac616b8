"""How much of an answer an agent gets: rows, lists and texts are bounded, and it is said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nsightpy.errors import UsageError

MOST_TEXT = 2_000
_CUT = "..."


@dataclass(frozen=True, slots=True)
class Bound:
    """How many without being asked, and how many at most."""

    usual: int
    most: int


ROWS = Bound(50, 1_000)


def row_count(wanted: int | None) -> int:
    """How many rows to give. Raises UsageError for more than there may be."""
    if wanted is None:
        return ROWS.usual
    if not 1 <= wanted <= ROWS.most:
        raise UsageError(f"top must be 1 to {ROWS.most}, not {wanted}: narrow the question")
    return wanted


def bounded(document: dict[str, Any], rows: int) -> dict[str, Any]:
    """The document with lists of at most so many entries and texts of at most 2,000 characters.

    Lists other than rows that were cut are named in a note.
    """
    cut: list[str] = []
    made = {name: _bounded(value, rows, name, cut) for name, value in document.items()}
    if cut:
        said = f"Cut to the first {rows} entries: {', '.join(dict.fromkeys(cut))}."
        made["notes"] = [*made["notes"], said]
    return made


def _bounded(value: Any, rows: int, name: str, cut: list[str]) -> Any:
    if isinstance(value, str):
        return value if len(value) <= MOST_TEXT else value[: MOST_TEXT - len(_CUT)] + _CUT
    if isinstance(value, dict):
        return {key: _bounded(inner, rows, f"{name}.{key}", cut) for key, inner in value.items()}
    if isinstance(value, list):
        if len(value) > rows:
            cut.append(name)
        return [_bounded(inner, rows, name, cut) for inner in value[:rows]]
    return value
