"""findings: what stands out, ranked by what it could give back at most."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from functools import partial
from glob import escape
from pathlib import Path
from typing import Unpack

from nsightpy.analysis.findings.checks import check_all
from nsightpy.analysis.findings.facts import Facts
from nsightpy.analysis.findings.kernel_use import COLUMNS as SHAPE_COLUMNS
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.commands.findings.rank_facts import with_waits
from nsightpy.commands.findings.report_facts import ReportFacts, report_facts
from nsightpy.errors import ReportError
from nsightpy.query.device_gaps import MEMORY_COLUMNS
from nsightpy.query.device_time import read_work
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.report_sets.report_files import find_reports
from nsightpy.reports.system import SystemReport
from nsightpy.results import FINDING_FIELDS, Table, findings_table
from nsightpy.units import listed

FIELDS = FINDING_FIELDS
NOTHING = "Nothing stands out: no check finds 1 % of a device's window."
_PROBLEMS = (
    *("holds no GPU work", "nsys warning", "nsys error", "No CUDA API calls", "left out: "),
    *(
        "repeats the capture",
        "repeat the capture",
        "is claimed",
        "cannot be one job",
        "one job ran both programs",
        "ranks without a report",
    ),
)


@command_function
def findings(
    reports: Paths,
    *,
    top: int | None = None,
    communication: Iterable[str] = (),
    **common: Unpack[Common],
) -> Table:
    """What stands out, by severity and then by share of a window; bounds in ns.

    recoverable_ns is a ceiling: per iteration where the evidence says so, else for the window.
    Ceilings of different findings overlap and must not be added.
    """
    request = Request.of(reports, **common)
    alone = len(request.ranks) == 1
    work = partial(
        _facts_of_report, communication=tuple(communication), scope=request.scope, alone=alone
    )
    results = request.map(work, ranked=True).results
    facts = facts_of(request, results)
    problems = check_all(facts)
    nothing = [NOTHING] if facts.devices and not problems else []
    return request.finish(findings_table(problems).first(top), *nothing, *facts.notes)


def facts_of(request: Request, results: Sequence[tuple[SystemReport, ReportFacts]]) -> Facts:
    """The facts of all reports together."""
    parts = [part for _, part in results]
    devices, notes = with_waits(request.ranks, results)
    return Facts(
        devices=list(devices.values()),
        kernels=sum(part.kernels for part in parts),
        report=typed_again(request.ranks.inputs),
        problems=[n for n in request.ranks.notes if any(mark in n for mark in _PROBLEMS)],
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


def _facts_of_report(
    report: SystemReport, *, communication: tuple[str, ...], scope: Scope, alone: bool
) -> ReportFacts:
    work = read_work(report, scope, MEMORY_COLUMNS, SHAPE_COLUMNS)
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    return report_facts(report, scope, work, ranges, communication, alone)
