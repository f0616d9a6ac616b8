"""findings: what stands out, ranked by what it could give back at most."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Unpack

from nsightpy.analysis.findings.checks import findings as checked
from nsightpy.analysis.findings.facts import Facts
from nsightpy.analysis.ranking import tally_durations
from nsightpy.analysis.tally import Tally, merge
from nsightpy.rank_set import Paths
from nsightpy.reports import NsysReport
from nsightpy.results import Field, Finding, Table, finding_record
from nsightpy.verbs.breakdown import attributed, read_work
from nsightpy.verbs.evidence import Gathered, gather
from nsightpy.verbs.idleness import launches_of
from nsightpy.verbs.request import Common, Request
from nsightpy.verbs.scope import Scope

FIELDS = (
    Field("finding", "text"),
    Field("severity", "text"),
    Field("rank", "id"),
    Field("device", "id"),
    Field("evidence", "text"),
    Field("recoverable_ns", "ns"),
    Field("recoverable_share", "ratio", 4),
    Field("next_command", "text"),
)
RANGE_COLUMNS = ("start_ns", "end_ns", "pid", "name")
MEMORY_COLUMNS = ("bytes", "source_memory", "target_memory")
_PROBLEMS = ("nsys warning", "nsys error", "No CUDA API calls")


def findings(
    reports: Paths,
    *,
    top: int | None = None,
    communication: Iterable[str] = (),
    **common: Unpack[Common],
) -> Table:
    """What stands out, the largest share of a window first; bounds in ns.

    recoverable_ns is a ceiling: per iteration where the evidence says so, else for the window.
    Ceilings of different findings overlap and must not be added.
    """
    request = Request.of(reports, **common)
    work = partial(_gathered, communication=tuple(communication), scope=request.scope)
    parts = request.map(work, ranked=True).values
    notes = request.ranks.notes
    facts = facts_of(
        [gathered for gathered, _ in parts],
        [kernels for _, kernels in parts],
        typed_again(request.ranks.inputs),
        notes,
    )
    table = findings_table(checked(facts)[:top])
    return request.finish(table)


def facts_of(
    gathered: Sequence[Gathered], kernels: Sequence[Tally], shown: str, notes: Sequence[str]
) -> Facts:
    """The facts of all reports together; `notes` are all that was said about them."""
    return Facts(
        devices=[device for one in gathered for device in one.devices],
        kernels=merge(kernels).statistics(),
        report=shown,
        problems=[note for note in notes if any(mark in note for mark in _PROBLEMS)],
        unlaunched=sum(one.unlaunched for one in gathered),
    )


def findings_table(found: Sequence[Finding]) -> Table:
    """Findings under the columns of the command line."""
    return Table("findings", FIELDS, tuple(tuple(finding_record(one).values()) for one in found))


def typed_again(inputs: Sequence[str]) -> str:
    """The reports as they can be typed again: one path, or the folder that holds them all."""
    folders = {path.rpartition("/")[0] for path in inputs}
    if len(inputs) <= 2:
        shown = list(inputs)
    else:
        shown = [folders.pop() or "."] if len(folders) == 1 else [inputs[0], "..."]
    return " ".join(shlex.quote(path) for path in shown)


def _gathered(
    report: NsysReport, *, communication: tuple[str, ...], scope: Scope
) -> tuple[Gathered, Tally]:
    with launches_of(report, ends=True) as launches:
        work = read_work(report, scope, MEMORY_COLUMNS)
        kernels = tally_durations(scope.narrow(report, work.kernels), ["name"])
        ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
        known = attributed(report, scope, work, launches, communication)
        return gather(report, scope, work, launches, known, ranges, communication), kernels
