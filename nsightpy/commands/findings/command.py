"""findings: what stands out, ranked by what it could give back at most."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from glob import escape
from pathlib import Path

from nsightpy.analysis.findings.checks import check_all
from nsightpy.analysis.findings.facts import Facts
from nsightpy.analysis.findings.kernel_use import COLUMNS as SHAPE_COLUMNS
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.commands.findings.rank_facts import with_waits
from nsightpy.commands.findings.report_facts import ReportFacts, report_facts
from nsightpy.errors import ReportError
from nsightpy.query.command import command
from nsightpy.query.device_gaps import MEMORY_COLUMNS
from nsightpy.query.device_time import read_work
from nsightpy.query.engine import Parts, Question
from nsightpy.query.options import Communication
from nsightpy.query.request import Request
from nsightpy.query.scope import Scope
from nsightpy.report_sets.report_files import find_reports
from nsightpy.reports.system import SystemReport
from nsightpy.results import FINDING_FIELDS, Table, findings_table
from nsightpy.results.findings import unsaid
from nsightpy.units import listed

NOTHING = "Nothing stands out: no check finds 1 % of a device's window."


def _not_twice(table: Table) -> Table:
    """The table for people: without the notes that are findings."""
    return replace(table, notes=unsaid(table.notes, table.column("evidence")))


@command(*FINDING_FIELDS, people=_not_twice, text="nsightpy.render.text.findings:print_findings")
def findings(*, communication: Communication = ()) -> Question[Table]:
    """The most severe first (error, warning, info), in each the largest share of a device's window.

    Each bound is a ceiling for that finding alone; ceilings overlap and must not be added. It is
    per iteration where iterations are known, else for the whole window. docs/findings.md says of
    every finding what it means and what to do.
    """
    return Question(partial(_facts, communication=tuple(communication)), _judged, ranked=True)


def _facts(report: SystemReport, scope: Scope, *, communication: tuple[str, ...]) -> ReportFacts:
    work = read_work(report, scope, MEMORY_COLUMNS, SHAPE_COLUMNS)
    return report_facts(
        report, scope, work, report.frame("nvtx_ranges", RANGE_COLUMNS), communication
    )


def _judged(parts: Parts[ReportFacts]) -> Table:
    facts = facts_of(parts.request, parts.results)
    problems = check_all(facts)
    nothing = [NOTHING] if facts.devices and not problems else []
    return replace(findings_table(problems), notes=(*nothing, *facts.notes))


def facts_of(request: Request, results: Sequence[tuple[SystemReport, ReportFacts]]) -> Facts:
    """The facts of all reports together."""
    parts = [part for _, part in results]
    devices, notes = with_waits(request.ranks, results)
    return Facts(
        devices=list(devices.values()),
        kernels=sum(part.kernels for part in parts),
        report=typed_again(request.ranks.inputs),
        problems=[note for note in request.ranks.notes if note.kind],
        unlaunched=sum(part.unlaunched for part in parts),
        options=request.options,
        of_iterations=request.scope.iteration is not None,
        has_ranges=any(part.has_ranges for part in parts),
        host=listed((part.host for part in parts if part.host), most=3, mark="; "),
        has_calls=any(part.has_calls for part in parts),
        has_collectives=any(part.rank_part.log.shown.any() for part in parts),
        notes=(*notes, *dict.fromkeys(note for part in parts for note in part.shared)),
    )


def typed_again(inputs: Sequence[str]) -> str:
    """The reports as they can be typed again: their folder or a pattern where it finds the same."""
    if len(inputs) > 1:
        folders = {path.rpartition("/")[0] for path in inputs}
        start = _shared_start(inputs)
        end = _shared_start([path[len(start) :][::-1] for path in inputs])[::-1]
        candidates = [folder or "." for folder in folders] if len(folders) == 1 else []
        for short in (*candidates, f"{escape(start)}*{escape(end)}"):
            if _finds(short, inputs):
                return shlex.quote(short)
    return " ".join(shlex.quote(path) for path in inputs)


def _shared_start(texts: Sequence[str]) -> str:
    """What all texts begin with, character by character."""
    low, high = min(texts), max(texts)
    return low[: next((i for i, c in enumerate(low) if not high.startswith(c, i)), len(low))]


def _finds(given: str, inputs: Sequence[str]) -> bool:
    """Whether a folder or pattern stands for these reports and no others."""
    try:
        files = find_reports(given)
    except (ReportError, OSError):
        return False
    return {path.resolve() for path in files} == {Path(path).resolve() for path in inputs}
