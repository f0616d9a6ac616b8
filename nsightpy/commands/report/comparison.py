"""The section about what changed since other runs, where the page is given some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nsightpy.commands.compare.command import compare
from nsightpy.commands.compare.runs import OneRun, Runs, listed
from nsightpy.commands.findings.command import typed_again
from nsightpy.commands.report.sections import Inputs, shortened, table_of
from nsightpy.output import sentences
from nsightpy.query.options import Common
from nsightpy.query.request import typed_options
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.reports.one_file import NcuReport
from nsightpy.results import Table
from nsightpy.results.comparison import COMPARE_FIELDS, ComparedQuantity, Comparison
from nsightpy.results.page import Page, PagePicture, PageTable, Section

PICTURE = "nsightpy.render.comparison.plot:comparison_figure"
HELP = (
    "The changes of the parts add up to that of the whole; those of kernels, collectives and "
    "ranges lie within the parts. 1.1 is 10 % longer. The true ratio lies between least and most "
    "in 95 % of all cases, as far as the runs show their spread; slower and faster are said where "
    "all of that lies beyond the limits."
)


def with_comparison(page: Page, before: Runs, after: Sequence[OneRun], common: Common) -> Page:
    """The page, which is about the first run after, begun with what changed since those before."""
    sides = [[_run(run, common) for run in runs] for runs in (listed(before), after)]
    comparison = compare(*sides, **common)
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
        sections=(_section(comparison, common), *page.sections),
    )


def _run(run: OneRun, common: Common) -> OneRun:
    """A run as compare takes it: of a folder with more than that its reports of the system."""
    if isinstance(run, RankSet | NcuReport):
        return run
    inputs = Inputs.of(run, **common)
    mixed = inputs.ranks is not None and (inputs.compute or inputs.snapshots)
    return inputs.ranks if inputs.ranks is not None and mixed else run


def _section(comparison: Comparison, common: Common) -> Section:
    """The parts, what contributes most, the ranges; the picture from before to after."""
    tables = (
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
        help=HELP,
        tables=tuple(_table(name, title, rows) for name, title, rows in tables if rows),
        pictures=(PagePicture("comparison", PICTURE, comparison, "From before to after"),),
        notes=shortened(comparison.notes),
        command=" ".join(filter(None, command)),
    )


def _table(name: str, title: str, rows: Sequence[ComparedQuantity]) -> PageTable:
    table = Table("compare", COMPARE_FIELDS, tuple(row.row for row in rows))
    return table_of(f"comparison-{name}", table, title=title)
