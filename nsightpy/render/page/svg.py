"""A figure as SVG inside a page: no style attributes, no ids that clash, numbers kept short.

A page's policy allows no inline styles, so that they become presentation attributes, which the
page's style sheet may overrule: that is how pictures follow dark and light.
"""

from __future__ import annotations

import base64
import io
import re
import warnings
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
_METADATA: dict[str, Any] = {"Date": None, "Creator": None}
_BITMAP = "data:image/png;base64,"
_NUMBER = re.compile(r"-?\d+\.\d+")
_NOT_TURNED = re.compile(r"rotate\(-?0 [^)]*\)")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_FONT = re.compile(r"(?:(italic)\s+)?(?:(bold|\d+)\s+)?([\d.]+)px\s+(.*)")
_COORDINATES = ("d", "points", "transform", "x", "y", "width", "height", "x1", "y1", "x2", "y2")
_DECIMALS = 2
TALL = 1300.0  # points, from which on a picture gets a place that scrolls
PIXELS = 4 / 3  # of a page, in a point
BITMAP_DPI = 100
_COLOURS = 256  # of a bitmap: those of a heat map's scale
_SMALL_BITMAP = 2000  # characters, below which a table of colours takes more than it saves
_STEP = re.compile(r"([MLzZ])\s*(?:(-?[\d.]+)\s+(-?[\d.]+))?")
_LINES = re.compile(r"(?:\s*[ML]\s+-?[\d.]+\s+-?[\d.]+|\s*[zZ])+\s*")
_HATCH = 6.0
_GREY = re.compile(r"#([0-9a-f]{2})\1\1")
# From which level on: paper, pale, grid, quiet text, ink.
_GREYS = (
    (0xF4, "#ffffff"),
    (0xD4, "#e4e4e4"),
    (0x9C, "#c8c8c8"),
    (0x45, "#666666"),
    (0, "#1a1a1a"),
)
# What matplotlib says though it is the default.
_DEFAULTS = {("stroke-linecap", "butt"), ("stroke-linejoin", "round"), ("stroke-opacity", "1")}


def inline_svg(figure: Figure, name: str, label: str) -> Markup:
    """The figure as an svg element whose ids begin with a name; the same every time."""
    root = ET.fromstring(_drawn(figure, name))
    for parent in root.iter():
        for child in list(parent):
            if child.tag in (f"{SVG}metadata", f"{SVG}style") or _is_empty(child):
                parent.remove(child)
    for pattern in root.iter(f"{SVG}pattern"):
        _dotted(pattern)
    for image in root.iter(f"{SVG}image"):
        image.set(HREF, _few_colours(image.get(HREF, "")))
    used = {reference for element in root.iter() for reference in _references(element)}
    numbers = {old: f"{name}-{place}" for place, old in enumerate(sorted(used))}
    for element in root.iter():
        _plain(element, numbers)
    _unwrap(root)
    tall = float(root.attrib.pop("height").removesuffix("pt")) > TALL
    width = float(root.attrib.pop("width").removesuffix("pt"))
    root.attrib.pop("version", None)
    root.set("width", f"{width * PIXELS:.0f}")  # so that texts are of one size in all pictures
    root.set("class", "picture tall" if tall else "picture")
    root.set("role", "img")
    root.set("aria-label", label)
    ET.register_namespace("", SVG.strip("{}"))
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    text = ET.tostring(root, encoding="unicode")
    return Markup(re.sub(r">\s+<", "><", text).replace(" />", "/>"))


def _drawn(figure: Figure, name: str) -> bytes:
    import matplotlib as mpl

    out = io.BytesIO()
    settings: dict[Any, Any] = {"svg.hashsalt": f"nsightpy {name}", "svg.fonttype": "none"}
    with warnings.catch_warnings(), mpl.rc_context(settings):
        warnings.simplefilter("ignore")  # glyphs that the font has not
        figure.savefig(out, format="svg", dpi=BITMAP_DPI, metadata=_METADATA)
    return out.getvalue()


def _few_colours(address: str) -> str:
    """A bitmap with a table of its colours, which takes a third of the bytes."""
    from PIL import Image

    whole = address.removeprefix(_BITMAP)
    if len(whole) < _SMALL_BITMAP:
        return address
    image = Image.open(io.BytesIO(base64.b64decode(whole)))
    count = len(image.getcolors(_COLOURS) or range(_COLOURS))
    out = io.BytesIO()
    image.quantize(count, method=Image.Quantize.FASTOCTREE).save(out, "PNG", optimize=True)
    return _BITMAP + base64.b64encode(out.getvalue()).decode()


def _is_empty(element: ET.Element) -> bool:
    return element.tag in (f"{SVG}g", f"{SVG}defs") and not len(element)


def _unwrap(element: ET.Element) -> None:
    """Replace groups that say nothing by what is inside them."""
    for child in list(element):
        _unwrap(child)
    inside: list[ET.Element] = []
    for child in element:
        inside += child if child.tag == f"{SVG}g" and not child.attrib else [child]
    element[:] = inside


def _references(element: ET.Element) -> list[str]:
    references = [
        reference for value in element.attrib.values() for reference in _REFERENCE.findall(value)
    ]
    if (target := element.get(HREF, "")).startswith("#"):
        references.append(target[1:])
    return references


def _plain(element: ET.Element, numbers: dict[str, str]) -> None:
    """One element without style attribute and needless id, its coordinates rounded."""
    if (own := element.attrib.pop("id", None)) in numbers:
        element.set("id", numbers[str(own)])
    for name, value in _declarations(element.attrib.pop("style", "")):
        if (name, value) not in _DEFAULTS:
            element.set(name, _grey(value) if name in ("fill", "stroke") else value)
    for name, value in list(element.attrib.items()):
        if (target := value).startswith("#") and name == HREF:
            element.set(name, f"#{numbers[target[1:]]}")
        elif "url(#" in value:
            element.set(name, _REFERENCE.sub(lambda m: f"url(#{numbers[m[1]]})", value))
        elif name == "transform" and _NOT_TURNED.fullmatch(value):
            del element.attrib[name]
        elif name in _COORDINATES:
            element.set(name, short_path(value) if name == "d" else _rounded(value))


def _dotted(pattern: ET.Element) -> None:
    """A hatch of dots, which matplotlib draws as hundreds of curves, as two circles."""
    path = pattern.find(f"{SVG}path")
    if path is None or "C" not in path.get("d", ""):
        return
    pattern.remove(path)
    pattern.set("width", f"{_HATCH}")
    pattern.set("height", f"{_HATCH}")
    for place in (_HATCH / 4, 3 * _HATCH / 4):
        at = f"{place:g}"
        dot = {"cx": at, "cy": at, "r": "0.6", "style": path.get("style", "")}
        pattern.append(ET.Element(f"{SVG}circle", dot))


def short_path(path: str) -> str:
    """A path of lines with relative steps and one decimal; others only rounded."""
    if not _LINES.fullmatch(path):
        return " ".join(_rounded(path).split())
    parts, at, start, last = [], (0, 0), (0, 0), ""
    for command, x, y in _STEP.findall(path):
        if command in "zZ":
            parts.append("z")
            at, last = start, "z"
            continue
        to = (round(10 * float(x)), round(10 * float(y)))
        if command == "M":
            parts.append(f"M{_tenths(to[0])}{_joined(_tenths(to[1]))}")
            start, last = to, "M"
        elif to != at or last == "M":
            parts.append(_step(to[0] - at[0], to[1] - at[1]))
            last = "l"
        at = to
    return "".join(parts)


def _step(x: int, y: int) -> str:
    if not y:
        return f"h{_tenths(x)}"
    return f"v{_tenths(y)}" if not x else f"l{_tenths(x)}{_joined(_tenths(y))}"


def _tenths(value: int) -> str:
    return (
        f"{value / 10:g}".replace("0.", ".", 1) if abs(value) < 10 and value else f"{value / 10:g}"
    )


def _joined(text: str) -> str:
    return text if text.startswith("-") else f" {text}"


def _declarations(style: str) -> list[tuple[str, str]]:
    """The declarations of a style attribute as presentation attributes."""
    declarations = []
    for declaration in style.split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name == "font" and (match := _FONT.fullmatch(value)):
            declarations.append(("font-size", _rounded(match[3])))
            declarations += [("font-weight", match[2])] if match[2] else []
        elif name and name != "font-family":
            declarations.append((name, value))
    return declarations


def _grey(colour: str) -> str:
    """A grey as the nearest of those that the page's style sheet knows; other colours as they are.

    Pictures are drawn for white paper; dark pages turn these greys.
    """
    match = _GREY.fullmatch(colour)
    if match is None:
        return colour
    level = int(match[1], 16)
    return next(grey for least, grey in _GREYS if level >= least)


def _rounded(text: str) -> str:
    return _NUMBER.sub(lambda match: f"{round(float(match[0]), _DECIMALS):g}", text)
