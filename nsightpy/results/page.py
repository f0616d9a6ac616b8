"""What a report page says: sections of tables, pictures and notes, as data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nsightpy.results.findings import Finding
from nsightpy.results.keys import Value
from nsightpy.results.tables import Table
from nsightpy.results.tracks import Timeline

SCHEMA = "nsightpy.report/1"


@dataclass(frozen=True)
class PageTable:
    """A table of a section; `keeps` so many of its rows stay where a page is too large."""

    id: str
    table: Table
    title: str = ""
    keeps: int = 0

    @property
    def left_out(self) -> int:
        """How many rows are not in the table."""
        return max(self.table.total - len(self.table), 0)


@dataclass(frozen=True)
class PagePicture:
    """A picture of a section: "module:name" of what draws the result, and what it shows."""

    id: str
    drawing: str
    result: Any
    label: str


@dataclass(frozen=True)
class Section:
    """One subject: the figures, how to read them, and what must be known of them.

    `missing` is why there are none, and what would record them; such a section is only listed.
    `command` prints the same on a terminal. `says` sums up what the figures mean.
    """

    id: str
    title: str
    says: str = ""
    help: str = ""
    tables: tuple[PageTable, ...] = ()
    pictures: tuple[PagePicture, ...] = ()
    notes: tuple[str, ...] = ()
    missing: str = ""
    command: str = ""

    @property
    def is_empty(self) -> bool:
        return not self.tables and not self.pictures


@dataclass(frozen=True)
class Card:
    """A finding on the page: its bound and its place in words, and the section that shows more."""

    finding: Finding
    bound: str
    where: str
    section: str = ""


@dataclass(frozen=True)
class Page:
    """A report page: the verdict first, then sections, then what could not be shown.

    `facts` are the header's lines (label, text); `passed` what the rules say that found nothing, by
    id. The timeline is there when it is to be embedded.
    """

    title: str
    inputs: tuple[str, ...]
    verdict: str
    facts: tuple[tuple[str, str], ...] = ()
    cards: tuple[Card, ...] = ()
    sections: tuple[Section, ...] = ()
    passed: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    header: Mapping[str, Value] = field(default_factory=dict)
    timeline: Timeline | None = None

    def __repr__(self) -> str:
        shown = ", ".join(section.id for section in self.shown)
        return f"<Page {self.title}: {len(self.cards)} findings; {shown}>"

    @property
    def shown(self) -> Sequence[Section]:
        """The sections that have something to show."""
        return [section for section in self.sections if not section.is_empty]

    @property
    def absent(self) -> Sequence[Section]:
        """The sections that have nothing, and say why."""
        return [section for section in self.sections if section.is_empty]

    def section(self, wanted: str) -> Section:
        """The section of that id. Raises KeyError."""
        return {section.id: section for section in self.sections}[wanted]
