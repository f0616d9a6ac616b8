"""The pictures of a page, by the functions that draw them for files, as addresses of images.

An image is SVG inside its own address. Its style sheet turns paper, ink and greys on dark pages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from urllib.parse import quote

from markupsafe import Markup

from nsightpy.errors import NsightpyError
from nsightpy.render.plots.drawing import FAINT, INK, PALE, QUIET, picture_bytes
from nsightpy.results.page import PagePicture

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
_FONT = "text { font-family: 'DejaVu Sans', Verdana, sans-serif } "
_STYLE = f"{_FONT}@media (prefers-color-scheme: dark) {{ {_RULES}{_WHITE} }}</style>"
_PLACE = re.compile(r' (?:d|x|y)="[^"]*"')
_DECIMALS = re.compile(r"(\.\d)\d+")
_NEEDLESS = re.compile(r'(?<=<g) id="\w+"| font-family: [^;]*;| transform="rotate\(-0 [^"]*"')
_GROUP = re.compile(r"<g>\s*(<path[^>]*/>)\s*</g>")
_PLAIN = " !$()*+,/:;=?@[]{}|"  # in an attribute of HTML, and in an address
PIXELS = 96  # of a page, in an inch


@dataclass(frozen=True)
class PageImage:
    """An image of a page: its address, empty where it is too large, and its width in pixels."""

    address: Markup
    width: int


def drawn(picture: PagePicture, limit: int) -> PageImage | None:
    """The picture, in at most so many bytes; None where there is nothing to draw."""
    module, _, name = picture.drawing.partition(":")
    try:
        figure = getattr(import_module(module), name)(picture.result)
    except NsightpyError:
        return None
    text = picture_bytes(figure, "picture.svg", **{"svg.fonttype": "none"}).decode()
    text = text[text.index("<svg") :]
    text = _PLACE.sub(lambda found: _DECIMALS.sub(r"\1", found[0]), text)
    text = _GROUP.sub(r"\1", _NEEDLESS.sub("", text)).replace("</style>", _STYLE, 1)
    address = Markup("data:image/svg+xml,") + Markup(quote(" ".join(text.split()), safe=_PLAIN))
    width = figure.get_size_inches()[0] * PIXELS
    return PageImage(address if len(address) <= limit else Markup(), round(width))
