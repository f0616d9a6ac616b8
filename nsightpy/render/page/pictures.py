"""The pictures of a page, by the functions that draw them for files."""

from __future__ import annotations

from importlib import import_module

from markupsafe import Markup

from nsightpy.errors import NsightpyError
from nsightpy.render.page.svg import inline_svg
from nsightpy.results.page import PagePicture


def drawn(picture: PagePicture, limit: int) -> Markup | None:
    """The picture as SVG, empty where there is nothing to draw; None if it takes more bytes."""
    module, _, name = picture.drawing.partition(":")
    try:
        figure = getattr(import_module(module), name)(picture.result)
        svg = inline_svg(figure, picture.id, picture.label)
    except NsightpyError:
        return Markup()
    return svg if len(svg) <= limit else None
