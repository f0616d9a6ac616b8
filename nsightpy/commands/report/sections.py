"""What the page is about, and its sections: an answer's table, picture and notes, or why none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

from nsightpy.command_table import COMMANDS
from nsightpy.commands.compare.command import compare
from nsightpy.commands.compare.runs import OneRun, Runs, listed
from nsightpy.commands.findings.command import typed_again
from nsightpy.errors import NsightpyError
from nsightpy.output import sentences
from nsightpy.query.options import Common
from nsightpy.query.request import reading_options, typed_options
from nsightpy.report_sets.opening import AnyPaths, open_ranks, split_by_tool
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.reports.one_file import MemorySnapshot, NcuReport
from nsightpy.results import Finding, Table
from nsightpy.results.comparison import COMPARE_FIELDS, Comparison
from nsightpy.results.page import Page, PagePicture, PageTable, Section
from nsightpy.results.tracks import Timeline

MOST_ROWS = 100
MOMENTS = 240
MOST_NOTES = 12
COMPARISON = "nsightpy.render.comparison.plot:comparison_figure"
COMPARED = (
    "The changes of the parts add up to that of the whole; those of kernels, collectives and "
    "ranges lie within the parts. The true ratio lies between least and most in 95 % of all cases."
)
NOTHING = "The reports hold nothing of it."


@dataclass(frozen=True, eq=False)
class Entry:
    """A section: the command that answers it with these of its own options.

    `rows` of its table are shown at most, 0: only the picture; `keeps` of them even where the page
    is too large.
    """

    id: str
    title: str
    name: str = ""
    own: Mapping[str, Any] = field(default_factory=dict)
    rows: int = MOST_ROWS
    keeps: int = 0

    @property
    def command(self) -> Any:
        """The command itself."""
        return COMMANDS[self.name or self.id].load()

    @property
    def arguments(self) -> dict[str, Any]:
        """What it is asked with, as people ask."""
        return {**self.command.for_people, **self.own}

    @property
    def words(self) -> tuple[str, ...]:
        """Its own options as they are typed."""
        typed = ((self.command.own[name].typed, value) for name, value in self.own.items())
        return tuple(option if value is True else f"{option} {value}" for option, value in typed)


BREAKDOWN = Entry("breakdown", "Where the time went", rows=256, keeps=128)
TIMELINE = Entry("timeline", "Timeline")
INSTANCES = Entry("instances", "The kernel with the most time")
ROOFLINE = Entry("roofline", "Rooflines (Nsight Compute)", own={"by": "variant"})
HEADROOM = Entry("headroom", "What there is to gain")
MEMORY_USAGE = Entry("memory-usage", "Allocated memory")
SELECT = Entry("select", "Kernels to measure")
CAPTURE = Entry("capture", "About the capture", "info")
ENTRIES = (
    BREAKDOWN,
    TIMELINE,
    Entry("utilization", "Utilization over time", "breakdown", {"bins": MOMENTS}, rows=0),
    Entry("iterations", "Iterations"),
    Entry("ranks", "Ranks", rows=256, keeps=128),
    Entry("collectives", "Collectives"),
    Entry("imbalance", "Kernels by rank", "ranks", {"by": "kernel"}),
    Entry("kernels", "Kernels"),
    Entry("categories", "Kernels by what they compute", "kernels", {"by": "category"}),
    Entry("lines", "Kernels by line of the program", "kernels", {"by": "line"}),
    HEADROOM,
    ROOFLINE,
    INSTANCES,
    Entry("operators", "PyTorch operators"),
    Entry("modules", "Modules", "operators", {"by": "module"}),
    Entry("nvtx", "Code ranges"),
    Entry("metrics", "GPU metrics of code ranges", "nvtx", {"metrics": True}),
    Entry("gaps", "Why devices were idle"),
    Entry("intervals", "Longest idle intervals", "gaps", {"by": "gap"}),
    Entry("waits", "Synchronising calls", "gaps", {"by": "call"}),
    Entry("launches", "Launches"),
    Entry("queues", "Launch queues", "launches", {"by": "stream"}),
    Entry("graphs", "CUDA graphs"),
    Entry("api", "CUDA API calls"),
    Entry("memory", "Copies and memory sets", own={"by": "memory"}),
    MEMORY_USAGE,
    CAPTURE,
)


def section_of_finding(finding: Finding) -> str:
    """The section that answers a finding's next command; what no section answers is the capture."""
    words = finding.next_command.split()
    alike = [entry for entry in ENTRIES if (entry.name or entry.id) in words[1:2]]
    exact = [entry for entry in alike if all(str(value) in words for value in entry.own.values())]
    return next((entry.id for entry in (*exact, *alike)), CAPTURE.id)


@dataclass(frozen=True)
class Inputs:
    """The reports of one page by kind; `ranks` is None where none is of a whole system."""

    ranks: RankSet | None
    compute: list[str | Path | NcuReport] = field(default_factory=list)
    snapshots: list[MemorySnapshot] = field(default_factory=list)
    common: Common = field(default_factory=Common)

    @property
    def others(self) -> tuple[str, ...]:
        """The files that are not of a whole system."""
        return tuple(str(getattr(each, "path", each)) for each in (*self.compute, *self.snapshots))

    @classmethod
    def of(cls, reports: AnyPaths, **common: Unpack[Common]) -> Inputs:
        """Open what is given; a folder or glob may hold all kinds. Raises ReportError."""
        systems, compute, snapshots = split_by_tool(reports)
        ranks = None
        if systems or not (compute or snapshots):
            use_cache = common.get("use_cache", True)
            ranks = open_ranks(systems, use_cache=use_cache, **reading_options(common))
        return cls(ranks, compute, snapshots, common)


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
        table = PageTable(entry.id, shown.first(entry.rows), keeps=entry.keeps)
        return replace(section, tables=(table,) if entry.rows else ())


def shortened(notes: Sequence[object]) -> tuple[str, ...]:
    """The first dozen of notes, the others counted."""
    texts = tuple(dict.fromkeys(map(str, notes)))
    more = len(texts) - MOST_NOTES
    return (*texts[:MOST_NOTES], f"{more} more notes") if more > 1 else texts


def with_comparison(page: Page, before: Runs, after: Sequence[OneRun], common: Common) -> Page:
    """The page, which is about the first run after, begun with what changed since those before."""

    def compared(run: OneRun) -> OneRun:  # of a folder with more than that what is of a system
        if isinstance(run, RankSet | NcuReport):
            return run
        inputs = Inputs.of(run, **common)
        return inputs.ranks if inputs.ranks is not None and inputs.others else run

    comparison = compare(*([*map(compared, runs)] for runs in (listed(before), after)), **common)
    names = [
        f"{sentences.side_name(side)}, {sentences.side_size(side, comparison.unit)}"
        for side in (comparison.before, comparison.after)
    ]
    different = "; ".join(sentences.differences(comparison)) or "nothing that the reports record"
    facts = zip(("Before", "After", "Differs"), (*names, different), strict=True)
    return replace(
        page,
        inputs=(*comparison.before.names, *page.inputs),
        verdict=f"{sentences.answer(comparison)}. {page.verdict}",
        facts=(*facts, *page.facts),
        sections=(_compared(comparison, common), *page.sections),
    )


def _compared(comparison: Comparison, common: Common) -> Section:
    """The parts, what contributes most, the ranges; the picture from before to after."""
    parts = (
        ("parts", f"Parts of the {comparison.unit}", (*comparison.parts, comparison.step)),
        ("contributors", "Kernels and collectives, by change", sentences.contributors(comparison)),
        ("ranges", "Code ranges, by change", comparison.ranges),
    )
    sides = (typed_again(side.names) for side in (comparison.before, comparison.after))
    command = ("nsightpy compare", typed_options(common), " -- ".join(sides))
    return Section(
        "comparison",
        "Before and after",
        says=f"{sentences.answer(comparison)} ({sentences.confidence(comparison)}).",
        help=COMPARED,
        tables=tuple(
            PageTable(f"comparison-{name}", table.first(MOST_ROWS), title)
            for name, title, rows in parts
            if (table := Table("compare", COMPARE_FIELDS, tuple(row.row for row in rows))).rows
        ),
        pictures=(PagePicture("comparison", COMPARISON, comparison, "From before to after"),),
        notes=shortened(comparison.notes),
        command=" ".join(filter(None, command)),
    )
