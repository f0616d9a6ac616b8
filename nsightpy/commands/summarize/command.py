"""summarize: one screen: what ran, where its time went, what to look at, what to type next."""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated

from nsightpy.analysis.findings.engine import has_edit, with_gains
from nsightpy.analysis.findings.evidence import JobEvidence
from nsightpy.analysis.findings.rule import next_command
from nsightpy.commands.findings.command import job_of
from nsightpy.commands.summarize.sections import (
    SECTIONS,
    Part,
    header_of,
    read_part,
    sections_of,
)
from nsightpy.query import Option, Parts, Question
from nsightpy.query.command import command
from nsightpy.query.device_time import NOT_ATTRIBUTED
from nsightpy.query.replayed import Replayed, replayed
from nsightpy.query.steps import steady_text
from nsightpy.results import FINDING_FIELDS, Finding, Summary
from nsightpy.results.notes import abstentions, texts

TOP_KERNELS = 5


@command(*FINDING_FIELDS, sections=SECTIONS, text="nsightpy.render.text.summary:print_summary")
def summarize(
    *,
    top: Annotated[int | None, Option("First N kernels; 0 is all of them.", "N", least=0)] = None,
) -> Question[Summary]:
    """Where a steady state is known, all but the header are about it.

    csv, markdown and parquet hold the findings; json holds every section by name: header, ranks,
    breakdown, kernels, collectives, memory, nvtx, findings, next_steps, categories.
    """
    kernels = TOP_KERNELS if top is None else top or sys.maxsize
    return Question(read_part, partial(_asked, kernels=kernels), ranked=True)


def _asked(parts: Parts[Part], *, kernels: int) -> Summary | Question[Summary]:
    """The summary, for which the work of steady iterations is replayed first."""
    of_reports = [(report, part.facts) for report, part in parts.results]
    facts, job, problems = job_of(parts.request, of_reports)
    return replayed(job, parts.scope, (), partial(_summary, parts, kernels, facts, problems))


def _summary(
    parts: Parts[Part],
    kernels: int,
    facts: JobEvidence,
    findings: Sequence[Finding],
    known: Replayed,
) -> Summary:
    request, values = parts.request, parts.values
    sections = sections_of(parts, facts, kernels)
    steady = (state for part in values for state in part.facts.steady.values())
    problems = tuple(with_gains(findings, known.work))
    # what gains rest on has no line of the one screen
    replays = known.work is None and any(map(has_edit, problems))
    notes = [
        *request.ranks.notes,
        *(error.left_out for error in parts.failures),
        *(NOT_ATTRIBUTED for device in facts.devices if not device.causes),
        *facts.notes,
        *(known.notes if replays else ()),
        *sections["memory"].notes,
        *request.scope.notes,
    ]
    return Summary(
        inputs=request.ranks.inputs,
        header={
            **header_of(request, values),
            "steady": steady_text(steady) or None,
            "critical_path": known.path_text,
            "replay_error": None if known.trust is None else known.trust.identity,
            "unexplained": None if known.trust is None else known.trust.unexplained,
        },
        sections=sections,
        findings=problems,
        next_steps=_next_steps(problems, facts),
        notes=texts(notes, request.kind),
        abstentions=abstentions(notes, request.kind),
    )


def _next_steps(problems: Sequence[Finding], facts: JobEvidence) -> tuple[tuple[str, str], ...]:
    """The commands to run next, of the first findings first; three at most."""
    steps: dict[str, str] = {}
    for finding in problems:
        if finding.next_command:
            steps.setdefault(finding.next_command, finding.name)
    every = (next_command(facts, "kernels"), "all kernels, as nsys stats counts them")
    return tuple(steps.items())[:3] or (every,)
