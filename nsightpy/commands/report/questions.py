"""A section of the page is a question: what is asked, what the answer says, how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from nsightpy.commands.report.one_pass import OnePass
from nsightpy.errors import FaultError, ReportError
from nsightpy.query.request import Common
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.results import Table
from nsightpy.results.abstention import for_kind
from nsightpy.results.page import PagePicture, PageTable, Section
from nsightpy.results.tables import abstentions_in

MOST_ROWS = 100
MOST_NOTES = 12
LONGEST_REASON = 400


@dataclass(frozen=True)
class Question:
    """One section: `ask` answers with a table, `says` puts it into a sentence.

    `main` are the columns that are shown first, `picture` the kind of picture drawn of the answer,
    `absent` what is said where nothing was found and no note says why. `show` says whether an
    answer with rows is worth showing.
    `most` rows are shown, 0: only the picture; `keeps` of them even where the page is too large.
    `command` is typed for the same.
    """

    id: str
    title: str
    ask: Callable[..., Table]
    says: Callable[[Table], str]
    help: str
    absent: str
    main: tuple[str, ...] = ()
    picture: str = ""
    caption: str = ""
    most: int = MOST_ROWS
    keeps: int = 0
    show: Callable[[Table], bool] = bool
    command: str = ""


def columns(names: str) -> tuple[str, ...]:
    """Names of columns, of a text with spaces between them."""
    return tuple(names.split())


@dataclass(frozen=True)
class Context:
    """What all questions share: the options, the reports as typed, the notes on all of them."""

    common: Common
    typed: str
    options: str = ""
    general: frozenset[str] = frozenset()

    def with_notes(self, notes: Iterable[str]) -> Context:
        """The same where these notes are said of all of the reports."""
        return replace(self, general=frozenset(notes))

    def command(self, name: str) -> str:
        """The command line of a command, or of one with options of its own, about these reports."""
        command, *own = name.split()
        parts = ("nsightpy", command, self.typed, *own, self.options)
        return " ".join(part for part in parts if part)


def answer(ranks: OnePass, question: Question, common: Common) -> Table | ReportError:
    """What the command says; the error where the reports do not hold what it needs."""
    try:
        return question.ask(ranks, **common)
    except ReportError as error:
        return error


def section_of(question: Question, answered: Table | ReportError, context: Context) -> Section:
    """The section that shows an answer, or says why there is nothing to show."""
    section = Section(question.id, question.title, help=question.help)
    if isinstance(answered, FaultError):
        return replace(section, missing=f"{answered}.")
    if isinstance(answered, ReportError):
        advice = f" {answered.advice[0].upper()}{answered.advice[1:]}" if answered.advice else ""
        return replace(section, missing=f"The capture {answered.problem}.{advice}")
    notes = tuple(note for note in answered.notes if note not in context.general)
    if not (answered.rows and question.show(answered)):
        why = " ".join((abstentions_in(notes) or notes)[:2])
        return replace(section, missing=why if 0 < len(why) <= LONGEST_REASON else question.absent)
    pictures: tuple[PagePicture, ...] = ()
    if question.picture:
        pictures = (PagePicture(question.id, question.picture, answered, question.caption),)
    return replace(
        section,
        says=question.says(answered),
        tables=(
            table_of(question.id, answered, question.main, question.most, keeps=question.keeps),
        )
        if question.most
        else (),
        pictures=pictures,
        notes=shortened(notes),
        command=context.command(question.command or question.id),
    )


def table_of(
    name: str,
    table: Table,
    main: tuple[str, ...] = (),
    most: int = MOST_ROWS,
    *,
    title: str = "",
    keeps: int = 0,
) -> PageTable:
    """The first rows of a table, and how many there are in all; columns without figures go."""
    known = [
        place
        for place, field in enumerate(table.fields)
        if any(row[place] is not None for row in table.rows[:most])
    ]
    rows = tuple(tuple(row[place] for place in known) for row in table.rows[:most])
    kept = Table(table.command, tuple(table.fields[place] for place in known), rows, table.inputs)
    return PageTable(name, kept, title, main, len(table.rows), keeps)


def shortened(notes: Sequence[str]) -> tuple[str, ...]:
    """The first dozen of notes, the others counted."""
    more = len(notes) - MOST_NOTES
    return (*notes[:MOST_NOTES], f"{more} more notes") if more > 1 else tuple(notes)


def general_notes(ranks: RankSet) -> list[str]:
    """What every command says about these reports, in the words of their tool."""
    kind = ranks.reports[0].kind
    return [for_kind(note, kind) for note in ranks.notes]
