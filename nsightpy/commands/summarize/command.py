"""summarize: one screen: what ran, where its time went, what to look at, what to type next."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Unpack

from nsightpy.analysis import ranking
from nsightpy.analysis.findings.checks import check_all
from nsightpy.analysis.findings.facts import Facts
from nsightpy.analysis.tally import merge
from nsightpy.commands.breakdown import FIELDS as BREAKDOWN_FIELDS, budget_row, suspect_note
from nsightpy.commands.findings.command import facts_of
from nsightpy.commands.summarize.sections import (
    COLLECTIVE_FIELDS,
    GAP_FIELDS,
    HEADER_FIELDS,
    IDLE_FIELDS,
    NVTX_FIELDS,
    RANK_FIELDS,
    collectives_section,
    gap_section,
    header_of,
    idle_section,
    memory_section,
    outside_text,
    ranges_section,
    ranks_section,
    read_part,
    steady_text,
)
from nsightpy.query.device_time import budget_order
from nsightpy.query.request import Common, Request
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.results import FINDING_FIELDS, Finding, Summary, Table, findings_table, with_notes

TOP_KERNELS = 5
HEADER = HEADER_FIELDS
# The tables of the sections, by name.
SECTIONS = {
    "ranks": RANK_FIELDS,
    "breakdown": BREAKDOWN_FIELDS,
    "kernels": ranking.time_fields(),
    "collectives": COLLECTIVE_FIELDS,
    "memory": ranking.memory_fields(),
    "nvtx": NVTX_FIELDS,
    "findings": FINDING_FIELDS,
    "idle": IDLE_FIELDS,
    "gaps": GAP_FIELDS,
}


@command_function
def summarize(reports: Paths, *, top: int | None = None, **common: Unpack[Common]) -> Summary:
    """Everything that matters first, in sections; times in ns, sizes in bytes.

    Sections: header, ranks, breakdown, kernels, collectives, memory, nvtx, findings,
    next_steps, idle, gaps. Where a steady state is known, all but header are about it.
    """
    request = Request.of(reports, **common)
    alone = len(request.ranks) == 1
    mapped = request.map(partial(read_part, scope=request.scope, alone=alone), ranked=True)
    parts = mapped.values
    budgets = sorted((row for part in parts for row in part.facts.budgets), key=budget_order)
    kernel_statistics = merge([part.kernels for part in parts]).statistics()
    facts = facts_of(request, [(report, part.facts) for report, part in mapped.results])
    problems = tuple(check_all(facts))
    doubtful = dict.fromkeys(name for part in parts for name in part.doubtful)
    sections = {
        "ranks": ranks_section([(str(report.path), part) for report, part in mapped.results]),
        "breakdown": Table("breakdown", BREAKDOWN_FIELDS, tuple(map(budget_row, budgets))),
        "kernels": ranking.rank_by_time("kernels", kernel_statistics, ()).first(top or TOP_KERNELS),
        "collectives": collectives_section([part.collectives for part in parts]),
        "memory": memory_section(parts),
        "nvtx": ranges_section([part.ranges for part in parts]),
        "idle": idle_section(facts),
        "gaps": gap_section(facts),
    }
    idle = (note for part in parts for note in part.facts.notes)
    notes = [
        *request.ranks.notes,
        *request.said,
        *map(suspect_note, doubtful),
        *idle,
        *facts.notes,
        *sections["memory"].notes,
        *request.scope.notes,
    ]
    return Summary(
        inputs=request.ranks.inputs,
        header={
            **header_of(request, parts),
            "steady": steady_text(facts, parts),
            "before": outside_text(facts),
        },
        sections=sections,
        findings=problems,
        next_steps=_next_steps(problems, sections, facts),
        notes=tuple(dict.fromkeys(map(request.worded, notes))),
    )


def summary_findings(summary: Summary) -> Table:
    """The findings of a summary as a table."""
    table = findings_table(summary.findings)
    return with_notes(table, summary.inputs, summary.notes)


def _next_steps(
    problems: Sequence[Finding], sections: dict[str, Table], facts: Facts
) -> tuple[tuple[str, str], ...]:
    """The commands to run next, of the first findings first; three at most."""
    steps = [(finding.next_command, finding.name) for finding in problems if finding.next_command]
    if not any(len(table) for table in sections.values()):
        steps.append((facts.command("info"), "what the report holds"))
    elif (
        len({device.rank for device in facts.devices if not (device.label or device.rank is None)})
        > 1
    ):
        steps.insert(2, (facts.command("ranks"), "who waits for whom"))
    elif sections["kernels"]:
        steps.append((facts.command("kernels"), "all kernels, as nsys stats counts them"))
    unique = {command: (command, why) for command, why in reversed(steps)}
    ordered = sorted(unique.values(), key=steps.index)
    return tuple(ordered[:3])
