"""Free text made harmless: names in reports may hold anything, even terminal commands."""

from __future__ import annotations

import re
import unicodedata

_HIDDEN = re.compile(
    # control characters, and those that reorder or hide what follows them
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff]"
)
_FORMULA = ("=", "+", "-", "@")


def printable(text: str) -> str:
    r"""The text on one line, every control or invisible character as \x1b or \u202e."""
    return _HIDDEN.sub(_visible, text)


def csv_text(text: str) -> str:
    """A text cell for CSV: printable, and never taken for a formula by a spreadsheet.

    A text that begins with =, +, - or @ is preceded by an apostrophe.
    """
    shown = printable(text)
    return f"'{shown}" if shown.startswith(_FORMULA) and len(shown) > 1 else shown


def markdown_text(text: str) -> str:
    """A cell for a Markdown table: no pipes, no HTML, no emphasis."""
    shown = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\|`*_\[\]#~])", r"\\\1", shown)


def display_width(text: str) -> int:
    """Terminal cells of a text: wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
