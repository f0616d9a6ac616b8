"""report: everything that the commands know of some reports, on one page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack, cast

from nsightpy.analysis.timeline.marks import finding_marks
from nsightpy.commands.compare.runs import Runs, listed
from nsightpy.commands.findings.command import typed_again
from nsightpy.commands.info.command import info
from nsightpy.commands.memory_usage.command import memory_usage
from nsightpy.commands.report import ncu_sections, overview
from nsightpy.commands.report.catalogue import MEMORY_USAGE, ORDER, QUESTIONS
from nsightpy.commands.report.comparison import with_comparison
from nsightpy.commands.report.inputs import Inputs, MixedPaths
from nsightpy.commands.report.one_pass import OnePass, answers
from nsightpy.commands.report.passed import passed_checks
from nsightpy.commands.report.pictures import timeline_section
from nsightpy.commands.report.questions import (
    Context,
    answer,
    general_notes,
    section_of,
    shortened,
    table_of,
)
from nsightpy.commands.summarize.command import summarize
from nsightpy.errors import ReportError, UsageError
from nsightpy.query.rank_alignment import collective_part
from nsightpy.query.request import Common, typed_options
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.results import Summary, Table
from nsightpy.results.findings import findings_table
from nsightpy.results.page import Page, Section
from nsightpy.results.rooflines import Roofline
from nsightpy.results.tracks import Timeline
from nsightpy.results.verdict import verdict_of
from nsightpy.units import counted


@command_function
def report(
    reports: MixedPaths,
    *,
    before: Runs | None = None,
    timeline: bool = False,
    **common: Unpack[Common],
) -> Page:
    """Everything that the commands know of these reports, as the sections of one page.

    Reports of one job of Nsight Systems or traces of PyTorch, beside them what Nsight Compute
    measured and memory snapshots of PyTorch, as far as there are some; folders may hold all of
    them. With runs `before` each of the reports is a run, too, as of compare: the page is about the
    first, and begins with what changed. `timeline` adds the timeline that can be zoomed.
    `nsightpy.render.page.page.write_page` makes the file of it. Raises UsageError, ReportError, and
    NsightpyError for runs that cannot be compared.
    """
    if before is not None:
        runs = listed(reports)  # type: ignore[arg-type]
        if not runs or not listed(before):
            raise UsageError("which runs are before and which after? BEFORE... -- AFTER...")
        page = report(runs[0], timeline=timeline, **common)
        return with_comparison(page, before, runs, common)
    inputs = Inputs.of(reports, **common)
    measured = ncu_sections.measured(inputs) if inputs.compute else None
    if inputs.ranks is None:
        return _without_system(inputs, measured)
    return _of_system(inputs, inputs.ranks, measured, embedded=timeline)


def _of_system(
    inputs: Inputs, ranks: RankSet, measured: Roofline | None, *, embedded: bool
) -> Page:
    """The page about reports of a whole system."""
    together = OnePass.of(ranks)
    together.want(collective_part)  # most of what several ranks are asked needs it
    common = inputs.common
    context = Context(common, typed_again(together.inputs), typed_options(common))
    headroom = ncu_sections.headroom_question(measured, inputs, context)
    questions = [
        question for question in QUESTIONS if not (question is MEMORY_USAGE and inputs.snapshots)
    ]
    questions += [headroom] if measured is not None else []
    asked: list[Callable[[OnePass], Any]] = [
        partial(summarize, **common),
        partial(info, **common),
        partial(timeline_section, context=context, embedded=embedded),
        *(partial(answer, question=question, common=common) for question in questions),
    ]
    answered = answers(together, asked)
    summary: Summary = answered[0]
    about: Table = answered[1]
    drawn: tuple[Section, Timeline | None] = answered[2]
    general = general_notes(together)
    context = context.with_notes(general)
    sections = [
        section_of(question, table, context)
        for question, table in zip(questions, answered[3:], strict=True)
    ]
    sections.append(ncu_sections.roofline_section(measured, inputs, context))
    if measured is None:
        sections.append(section_of(headroom, Table("headroom", (), ()), context))
    if inputs.snapshots:
        sections.append(snapshots_section(inputs, context))
    return Page(
        title=title_of(together.inputs),
        inputs=(*together.inputs, *_other_inputs(inputs, measured)),
        verdict=verdict_of(summary),
        facts=tuple(overview.facts_of(summary)),
        cards=overview.cards_of(summary),
        sections=(
            overview.devices_section(summary, context),
            drawn[0],
            *sorted(sections, key=lambda section: ORDER.index(section.id)),
            capture_section(about, [*general, *summary.notes], context),
        ),
        passed=passed_checks(summary),
        notes=shortened(general),
        header=dict(summary.header),
        timeline=None if drawn[1] is None else _marked(drawn[1], summary),
    )


def _marked(timeline: Timeline, summary: Summary) -> Timeline:
    """The timeline with the findings of the page as marks."""
    return replace(timeline, findings=finding_marks(timeline, findings_table(summary.findings)))


def _without_system(inputs: Inputs, measured: Roofline | None) -> Page:
    """The page about measurements of ncu or memory snapshots alone."""
    names = _other_inputs(inputs, measured)
    context = Context(inputs.common, typed_again(names), typed_options(inputs.common))
    sections = [snapshots_section(inputs, context)] if inputs.snapshots else []
    if measured is not None:
        sections.append(ncu_sections.roofline_section(measured, inputs, context))
        missing = ncu_sections.NO_SYSTEM
        sections.append(Section("headroom", "What there is to gain", missing=missing))
        sections.append(capture_section(info(inputs.compute), measured.notes, context))
    said = [
        section.says for section in sections if not section.is_empty and section.id != "capture"
    ]
    return Page(
        title=title_of(names),
        inputs=names,
        verdict=" ".join(said),
        sections=tuple(sections),
        notes=() if measured is None else shortened(measured.notes),
    )


def _other_inputs(inputs: Inputs, measured: Roofline | None) -> tuple[str, ...]:
    snapshots = (str(getattr(snapshot, "path", snapshot)) for snapshot in inputs.snapshots)
    return (*(() if measured is None else measured.inputs), *snapshots)


def capture_section(about: Table, notes: Sequence[str], context: Context) -> Section:
    """What each report is, and what has to be known to trust the figures."""
    main = ("report", "rank", "host", "gpu", "devices", "tool_version", "duration_ns", "kernels")
    unique = tuple(dict.fromkeys(notes))
    said = f", with {counted(len(unique), 'note')}" if unique else ""
    return Section(
        "capture",
        "About the capture",
        says=f"{counted(len(about), 'report')}{said}.",
        help="Which files the page is about, what made them, and what their figures lack.",
        tables=(table_of("capture", about, main),),
        notes=shortened(unique),
        command=context.command("info"),
    )


def snapshots_section(inputs: Inputs, context: Context) -> Section:
    """The memory that snapshots know of."""
    kept: Any = {name: value for name, value in inputs.common.items() if name != "nvtx"}
    try:
        answer: Table | ReportError = memory_usage(inputs.snapshots, **cast(Common, kept))
    except ReportError as error:
        answer = error
    return section_of(MEMORY_USAGE, answer, context)


def title_of(inputs: Sequence[str]) -> str:
    """The name of the only file; of several their folder, how many, the first and the last."""
    paths = [Path(name) for name in inputs]
    if len(paths) == 1:
        return paths[0].name
    folders = {path.parent for path in paths}
    where = f"{paths[0].parent.name}: " if len(folders) == 1 and paths[0].parent.name else ""
    return f"{where}{len(paths)} reports, {paths[0].name} to {paths[-1].name}"
