"""Free text made harmless: names in reports may hold anything, even terminal commands."""

import re

_HIDDEN = re.compile(
    # control characters and lone surrogates; then what Unicode calls default-ignorable (it hides
    # or reorders text), but for the variation selectors that choose an emoji's style
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_FORMULA = ("=", "+", "-", "@")


def printable(text: str) -> str:
    r"""The text on one line, every control or invisible character as \n, \x1b or \u202e."""
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


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
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
