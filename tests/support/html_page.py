"""A page as a reader without scripts finds it: elements, their attributes and their text."""

from __future__ import annotations

import json
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
        place: Element | None = self
        while place is not None and place.attributes.get("id") != wanted:
            place = place.parent
        return place is not None


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
