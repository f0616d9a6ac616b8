"""findings: what stands out, ranked by what mending it would gain."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from glob import escape
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from nsightpy.analysis.findings.engine import has_edit, judge, with_gains
from nsightpy.analysis.findings.evidence import JobEvidence
from nsightpy.analysis.findings.gains import changes_of, what_if as of_changes
from nsightpy.analysis.findings.work_evidence import COLUMNS as SHAPE_COLUMNS
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.analysis.ranks.thresholds import LARGE_BYTES
from nsightpy.commands.findings.rank_evidence import with_peers, with_waits
from nsightpy.commands.findings.report_evidence import ReportEvidence, report_evidence
from nsightpy.errors import ReportError
from nsightpy.query import Communication, Option, Parts, Question, Request, Scope, SystemReport
from nsightpy.query.command import command
from nsightpy.query.device_time import MEMORY_COLUMNS, read_work
from nsightpy.query.launching_lines import usual_line
from nsightpy.query.replayed import Job, Replayed, replayed
from nsightpy.readers.references import read_link_rates
from nsightpy.report_sets.opening import find_reports
from nsightpy.results import FINDING_FIELDS, Finding, Table, findings_table
from nsightpy.results.findings import unsaid
from nsightpy.units import listed

NOTHING = "Nothing stands out: no check finds 1 % of a device's window."


@command(
    *FINDING_FIELDS,
    members={"replay": {"type": "object"}},
    # notes that are findings are said once
    people=lambda table: replace(table, notes=unsaid(table.notes, table.column("evidence"))),
    text="nsightpy.render.text.terminal:print_findings",
)
def findings(
    *,
    communication: Communication = (),
    what_if: Annotated[
        Iterable[str],
        Option(
            "What would be gained if the host, the network, copies, 'rank N' or kernels whose "
            "name matches a pattern took FACTOR times as long; several are taken together.",
            "NAME=FACTOR",
            several=True,
        ),
    ] = (),
    ceilings: Annotated[
        Iterable[Path | str],
        Option(
            "What nccl-tests measured between these GPUs: its output, instead of what their model "
            "can carry; one file within a node, one between nodes.",
            "FILE",
            several=True,
        ),
    ] = (),
) -> Question[Table]:
    """The largest gain first: what a replay of the recorded work without the cause is shorter by.

    Where that is not known the most severe comes first (error, warning, info). A bound ("at most")
    is a ceiling for a finding alone. Neither gains nor bounds of several findings may be added;
    both are per iteration where iterations are known, else for the whole window. docs/findings.md
    says of every finding what it means and what to do.
    """
    patterns = tuple(communication)
    rates = read_link_rates(ceilings, LARGE_BYTES)
    changes = changes_of(tuple(what_if))
    judged = partial(_judged, communication=patterns, changes=changes, link_rates=rates)
    return Question(partial(_facts, communication=patterns), judged, ranked=True)


def _facts(report: SystemReport, scope: Scope, *, communication: tuple[str, ...]) -> ReportEvidence:
    work = read_work(report, scope, MEMORY_COLUMNS, SHAPE_COLUMNS)
    return report_evidence(
        report, scope, work, report.frame("nvtx_ranges", RANGE_COLUMNS), communication
    )


def _judged(
    parts: Parts[ReportEvidence],
    *,
    communication: tuple[str, ...],
    changes: Sequence[tuple[str, float]],
    link_rates: Mapping[bool, float],
) -> Table | Question[Table]:
    facts, job, problems = job_of(parts.request, parts.results, link_rates)

    def table(replay: Replayed) -> Table:
        findings = with_gains(problems, replay.work)
        if changes:
            findings = [of_changes(changes, replay.work, replay.reason), *findings]
        nothing = [NOTHING] if facts.devices and not findings else []
        failed = [error.left_out for error in parts.failures]
        notes = (*nothing, *facts.notes, *replay.notes, *failed)
        return replace(findings_table(findings, replay.record()), notes=notes)

    if not changes and not any(map(has_edit, problems)):
        return table(Replayed())
    return replayed(job, parts.scope, communication, table)


def job_of(
    request: Request,
    results: Sequence[tuple[SystemReport, ReportEvidence]],
    link_rates: Mapping[bool, float] = MappingProxyType({}),
) -> tuple[JobEvidence, Job, list[Finding]]:
    """The evidence of all reports together, their work, and what the evidence says.

    `link_rates`: what links carry in GB/s by nccl-tests, by whether nodes are crossed.
    """
    parts = [part for _, part in results]
    devices, alignment, notes = with_waits(request.ranks, results, link_rates)
    facts = JobEvidence(
        devices=with_peers(list(devices.values())),
        report=typed_again(request.ranks.inputs),
        problems=[note for note in request.ranks.notes if note.kind],
        options=request.options,
        is_part=request.scope.is_part,
        host=listed((part.host for part in parts if part.host), most=3, mark="; "),
        notes=notes,
    )
    problems = [_with_line(finding, results) for finding in judge(facts)]
    repeated = request.ranks.repeated
    work = [(report, part.recorded) for report, part in results if report.path not in repeated]
    hides = next((finding.name for finding in problems if finding.severity == "error"), "")
    job = Job(work, alignment, request.ranks.one_job, hides=hides)
    return facts, job, problems


def _with_line(finding: Finding, results: Sequence[tuple[SystemReport, ReportEvidence]]) -> Finding:
    """A finding about a kernel with the line of the program that launched most of it."""
    if finding.about is None:
        return finding
    reports = [
        report
        for report, part in results
        if any((d.rank, d.device) == (finding.rank, finding.device) for d in part.devices.values())
    ]
    line = next(filter(None, (usual_line(report, finding.about[1]) for report in reports)), "")
    return replace(finding, text=f"{finding.text}; most of it from {line}") if line else finding


def typed_again(inputs: Sequence[str]) -> str:
    """The reports as they can be typed again: their folder or a pattern where it finds the same."""
    if len(inputs) > 1:
        folders = {path.rpartition("/")[0] or "." for path in inputs}
        start = _shared_start(inputs)
        end = _shared_start([path[len(start) :][::-1] for path in inputs])[::-1]
        given = {Path(path).resolve() for path in inputs}
        candidates = folders if len(folders) == 1 else ()
        for short in (*candidates, f"{escape(start)}*{escape(end)}"):
            with suppress(ReportError, OSError):
                if {path.resolve() for path in find_reports(short)} == given:
                    return shlex.quote(short)
    return shlex.join(inputs)


def _shared_start(texts: Sequence[str]) -> str:
    """What all texts begin with, character by character."""
    alike = takewhile(lambda each: len(set(each)) == 1, zip(*texts, strict=False))
    return "".join(each[0] for each in alike)
