"""Sections of the page: an answer's table, picture and notes, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nsightpy.commands.report.catalogue import MOST_ROWS, Entry
from nsightpy.errors import NsightpyError
from nsightpy.results import Table
from nsightpy.results.page import PagePicture, PageTable, Section
from nsightpy.results.tracks import Timeline

MOST_NOTES = 12
NOTHING = "The reports hold nothing of it."


@dataclass(frozen=True)
class Context:
    """What all sections share: the reports as typed, the options, the notes on all of them."""

    typed: str
    options: str = ""
    general: tuple[str, ...] = ()

    def command(self, entry: Entry) -> str:
        """What is typed for the same on a terminal."""
        parts = ("nsightpy", entry.command.name, self.typed, *entry.words, self.options)
        return " ".join(part for part in parts if part)

    def section(self, entry: Entry, answer: Table | Timeline | NsightpyError) -> Section:
        """The section that shows an answer, or says why there is nothing to show."""
        command = entry.command
        if isinstance(answer, NsightpyError):
            return Section(entry.id, entry.title, missing=f"{str(answer).removesuffix('.')}.")
        notes = tuple(str(note) for note in answer.notes if note not in self.general)
        if isinstance(answer, Table) and not answer.rows:
            return Section(entry.id, entry.title, missing=" ".join(notes[:2]) or NOTHING)
        drawing = PagePicture(entry.id, command.picture, answer, entry.title)
        section = Section(
            entry.id,
            entry.title,
            help=command.words,
            pictures=(drawing,) if command.picture else (),
            notes=shortened(notes),
            command=self.command(entry),
        )
        if isinstance(answer, Timeline):
            return replace(section, says=f"The clock is {answer.clock}.")
        shown = command.people(answer) if command.people else answer
        table = table_of(entry.id, shown, entry.rows, keeps=entry.keeps)
        return replace(section, tables=(table,) if entry.rows else ())


def table_of(
    name: str, table: Table, most: int = MOST_ROWS, *, title: str = "", keeps: int = 0
) -> PageTable:
    """The first rows of a table."""
    return PageTable(name, table.first(most), title, keeps)


def shortened(notes: Sequence[object]) -> tuple[str, ...]:
    """The first dozen of notes, the others counted."""
    texts = tuple(dict.fromkeys(map(str, notes)))
    more = len(texts) - MOST_NOTES
    return (*texts[:MOST_NOTES], f"{more} more notes") if more > 1 else texts
