"""report: everything that the commands know of some reports, on one page."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Unpack

from nsightpy.analysis.findings.engine import SECTIONS
from nsightpy.analysis.timeline.marks import finding_marks
from nsightpy.commands.compare.runs import Runs, listed
from nsightpy.commands.findings.command import typed_again
from nsightpy.commands.headroom.command import headroom
from nsightpy.commands.info import info
from nsightpy.commands.instances import instances
from nsightpy.commands.kernels import kernels
from nsightpy.commands.memory_usage.command import memory_usage, of_systems
from nsightpy.commands.report.sections import (
    BREAKDOWN,
    CAPTURE,
    ENTRIES,
    HEADROOM,
    INSTANCES,
    MEMORY_USAGE,
    ROOFLINE,
    SELECT,
    TIMELINE,
    Context,
    Entry,
    Inputs,
    section_of_finding,
    shortened,
    with_comparison,
)
from nsightpy.commands.roofline.command import roofline
from nsightpy.commands.summarize.command import summarize
from nsightpy.errors import NsightpyError, ReportError, UsageError
from nsightpy.query import Common, Option, Parts, Question, answers
from nsightpy.query.command import Command, command
from nsightpy.query.request import Request, reading_options, typed_options
from nsightpy.report_sets.opening import AnyPaths
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.results import Summary, Table, findings_table
from nsightpy.results.findings import place_text, worth
from nsightpy.results.notes import texts
from nsightpy.results.page import Card, Page, Section
from nsightpy.results.tracks import Timeline

# Of more instances of a kernel only the distribution is drawn.
MOST_INSTANCES, BINS = 20_000, 60
MEASURE = (
    "No report of Nsight Compute is among the inputs. `{}` says which kernels are worth measuring "
    "and prints the ncu commands; give their reports beside these."
)
NO_SYSTEM = "It needs a report of Nsight Systems or a PyTorch trace beside the measurements."
TIMES = ("from_time", "to_time", "iteration")  # they mean nothing to ncu
WRITER = "nsightpy.render.page.page:write_page"


@command(files={".html": WRITER, ".htm": WRITER})
def report(
    reports: AnyPaths,
    *,
    before: Annotated[Runs | None, Option("Runs to compare these with.", typed="")] = None,
    timeline: Annotated[bool, Option("Embed the timeline, to zoom and search in.")] = False,
    **common: Unpack[Common],
) -> Page:
    """Reports of one job or traces of PyTorch; beside them, reports of Nsight Compute and memory
    snapshots of PyTorch. Folders may hold all of them. The page has at most 1 MB without
    --timeline, loads nothing, and can be read without JavaScript.

    BEFORE... -- AFTER...: each report or folder is a run, as of compare; the page is about the
    first one behind the --, and begins with what changed.
    """
    if before is not None:
        runs = listed(reports)  # type: ignore[arg-type]
        if not runs or not listed(before):
            raise UsageError("which runs are before and which after? BEFORE... -- AFTER...")
        page = report(runs[0], timeline=timeline, **common)
        return with_comparison(page, before, runs, common)
    inputs = Inputs.of(reports, **common)
    if inputs.ranks is not None:
        return _of_system(inputs, inputs.ranks, embedded=timeline)
    context = Context(typed_again(inputs.others), typed_options(common))
    found = _of_others(inputs, context)
    if inputs.compute:
        capture = context.section(CAPTURE, info(inputs.compute, **reading_options(common)))
        found[CAPTURE.id] = replace(capture, notes=shortened(found[ROOFLINE.id].notes))
    return Page(
        title=title_of(inputs.others),
        inputs=inputs.others,
        verdict="Only measurements of Nsight Compute or memory snapshots of PyTorch.",
        sections=tuple(found[entry.id] for entry in ENTRIES if entry.id in found),
    )


def _of_system(inputs: Inputs, ranks: RankSet, *, embedded: bool) -> Page:
    """The page about reports of a whole system, which are read once for all questions."""
    request = Request.of(ranks, **inputs.common)
    questions: dict[Entry, Question[Any]] = {
        entry: entry.command.question(**entry.arguments)
        for entry in ENTRIES
        if entry.command.asks and entry not in (BREAKDOWN, TIMELINE, INSTANCES)
    }
    questions[TIMELINE] = TIMELINE.command.question(findings=False)
    questions[INSTANCES] = _longest()
    if not inputs.snapshots:
        questions[MEMORY_USAGE] = replace(of_systems(), presented=memory_usage.presented)
    summary, *answered = answers(request, [summarize.question(), *questions.values()])
    if isinstance(summary, NsightpyError):
        raise summary
    general = texts(request.notes, request.kind)
    context = Context(typed_again(ranks.inputs), request.options, general)
    budgets = replace(summary.sections["breakdown"], inputs=summary.inputs)
    answer_of = dict(zip(questions, answered, strict=True))
    tracks = answer_of[TIMELINE] if embedded else None
    if isinstance(tracks, Timeline):
        marks = (*finding_marks(tracks.owners, findings_table(summary.findings)), *tracks.marks())
        tracks = replace(tracks, marks=lambda: marks)
    found = {entry.id: context.section(entry, answer) for entry, answer in answer_of.items()}
    if getattr(answer_of[INSTANCES], "rows", ()):
        longest = shlex.quote(answer_of[INSTANCES].column("name")[0])
        entry = replace(INSTANCES, own={"of": longest, "kind": "kernel"})
        found[entry.id] = context.section(entry, answer_of[INSTANCES])
    found[BREAKDOWN.id] = context.section(BREAKDOWN, BREAKDOWN.command.presented(budgets))
    capture = context.section(CAPTURE, info(ranks, **reading_options(inputs.common)))
    found[CAPTURE.id] = replace(capture, notes=shortened(summary.notes))
    unmeasured = MEASURE.format(context.command(SELECT))
    for entry in (ROOFLINE, HEADROOM):
        found[entry.id] = Section(entry.id, entry.title, missing=unmeasured)
    found |= _of_others(inputs, context)
    head = summary.header
    about = [("Overview of", str(head["steady"]))] if head.get("steady") else []
    return Page(
        title=title_of(ranks.inputs),
        inputs=(*ranks.inputs, *inputs.others),
        verdict=summary.verdict,
        facts=(*summary.header_lines(), *about),
        cards=tuple(
            Card(each, worth(record), place_text(record), section_of_finding(each))
            for each, record in zip(summary.findings, summary.table.records(), strict=True)
        ),
        sections=tuple(found[entry.id] for entry in ENTRIES),
        passed=passed_checks(summary),
        notes=shortened(general),
        header=dict(head),
        timeline=tracks if isinstance(tracks, Timeline) else None,
    )


def _longest() -> Question[Any]:
    """The instances of the kernel with the most time, which is known when kernels are ranked."""
    ranked: Question[Any] = kernels.question()

    def follow(parts: Parts[Any]) -> Any:
        table: Any = ranked.combine(parts)
        for kernel in table.first(1).records():
            often = int(kernel["Instances"] or 0) > MOST_INSTANCES
            bins = BINS if often else None
            return instances.question(of=str(kernel["Name"]), kind="kernel", bins=bins)
        return table

    return replace(ranked, combine=follow, presented=instances.presented)


def _of_others(inputs: Inputs, context: Context) -> dict[str, Section]:
    """What measurements of ncu and memory snapshots say, where there are some."""
    found: dict[str, Section] = {}
    if inputs.snapshots:
        kept: Any = {name: value for name, value in inputs.common.items() if name != "nvtx"}
        typed = typed_again([str(snapshot.path) for snapshot in inputs.snapshots])
        answer = _answered(memory_usage, inputs.snapshots, **kept)
        found[MEMORY_USAGE.id] = replace(context, typed=typed).section(MEMORY_USAGE, answer)
    if inputs.compute:
        kept = {name: value for name, value in inputs.common.items() if name not in TIMES}
        measured = roofline(inputs.compute, **ROOFLINE.own, **kept)
        of_ncu = replace(context, typed=typed_again(measured.inputs))
        found[ROOFLINE.id] = of_ncu.section(ROOFLINE, measured)
        found[HEADROOM.id] = Section(HEADROOM.id, HEADROOM.title, missing=NO_SYSTEM)
        if inputs.ranks is not None:
            answer = _answered(headroom, inputs.ranks, ncu=measured, **inputs.common)
            entry = replace(HEADROOM, own={"ncu": of_ncu.typed})
            found[HEADROOM.id] = context.section(entry, answer)
    return found


def _answered(command: Command[Any], *reports: Any, **options: Any) -> Table | NsightpyError:
    """What a command says of some reports; the error where they do not hold what it needs."""
    try:
        table: Table = command(*reports, **options)
    except ReportError as error:
        return error
    return table


def title_of(inputs: Sequence[str]) -> str:
    """The name of the only file; of several how many, the first and the last."""
    names = [Path(name).name for name in inputs]
    return names[0] if len(names) == 1 else f"{len(names)} reports, {names[0]} to {names[-1]}"


def passed_checks(summary: Summary) -> dict[str, str]:
    """What the rules that found nothing say, by id, where there was something to look at."""
    found = {finding.id for finding in summary.findings}
    looked_at = {name for name, table in summary.sections.items() if table.rows}
    if set(summary.sections["breakdown"].column("host_gap_ns")) - {None}:
        looked_at.add("idle")
    if len(set(summary.sections["ranks"].column("rank"))) < 2:
        looked_at.discard("ranks")
    return {
        rule.id: rule.passed
        for name, rules in SECTIONS.items()
        for rule in rules
        if name in looked_at and rule.id not in found and rule.passed
    }
