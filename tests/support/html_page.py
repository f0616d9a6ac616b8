"""A page as a reader without scripts finds it: elements, attributes, text, what it may load."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "input", "br", "img", "link", "hr"}


@dataclass
class Element:
    """One element; `text` is that of itself and of what is inside, but for scripts and styles."""

    tag: str
    attributes: dict[str, str]
    parent: Element | None = None
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(self.parts).split())

    def inside(self, wanted: str) -> bool:
        """Whether the element of that id, or one around it, is this one's."""
        around: Element | None = self
        while around is not None and around.attributes.get("id") != wanted:
            around = around.parent
        return around is not None


class Document(HTMLParser):
    """All elements of a page; raises AssertionError where they do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(text)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        parent = self._open[-1] if self._open else None
        element = Element(tag, {name: value or "" for name, value in attrs}, parent)
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open[-1].tag == tag, (tag, self._open[-1:])  # noqa: PT018
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.parts.append(data)

    def all(self, tag: str) -> list[Element]:
        return [one for one in self.elements if one.tag == tag]

    def by_id(self, wanted: str) -> Element:
        found = [one for one in self.elements if one.attributes.get("id") == wanted]
        assert len(found) == 1, (wanted, len(found))
        return found[0]

    @property
    def data(self) -> dict[str, Any]:
        """The JSON inside the page."""
        document: dict[str, Any] = json.loads("".join(self.by_id("data").parts))
        return document


def check_offline(document: Document) -> dict[str, str]:
    """That a page can load and run nothing but its one script and style; returns its policy."""
    (meta,) = [one for one in document.all("meta") if "http-equiv" in one.attributes]
    parts = (rule.strip().split(" ", 1) for rule in meta.attributes["content"].split(";"))
    rules = {rule[0]: rule[1] for rule in parts}
    assert rules["default-src"] == "'none'"
    assert set(rules) & {"connect-src", "font-src", "frame-src"} == set()
    scripts = [one for one in document.all("script") if "type" not in one.attributes]
    for elements, rule in ((scripts, "script-src"), (document.all("style"), "style-src")):
        (code,) = elements
        digest = hashlib.sha256("".join(code.parts).encode()).digest()
        assert rules[rule] == f"'sha256-{base64.b64encode(digest).decode()}'"
    for one in document.elements:
        assert not {"style", "srcdoc", "action"} & set(one.attributes), one
        assert ("src" in one.attributes) == (one.tag == "img"), one
        assert not [name for name in one.attributes if name.startswith("on")], one
        assert one.attributes.get("href", "#").startswith("#"), one
    sinks = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?:"
    assert not re.search(sinks, "".join(scripts[0].parts))
    assert not re.search(r"@import|url\(", "".join(document.all("style")[0].parts))
    return rules
