"""The head of the page: the header's lines, findings, and the checks that found nothing."""

from __future__ import annotations

from nsightpy.analysis.findings.rules import SECTIONS
from nsightpy.commands.report.catalogue import section_of_finding
from nsightpy.results import Finding, Summary
from nsightpy.results.page import Card
from nsightpy.results.verdict import worth_of
from nsightpy.units import format_time


def passed_checks(summary: Summary) -> dict[str, str]:
    """What the rules that found nothing say, by id, where there was something to look at."""
    found = {finding.id for finding in summary.findings}
    looked_at = {name for name in SECTIONS if summary.sections[name].rows}
    if len(set(summary.sections["ranks"].column("rank"))) < 2:
        looked_at.discard("ranks")
    return {
        rule.id: rule.passed
        for name, rules in SECTIONS.items()
        for rule in rules
        if name in looked_at and rule.id not in found and rule.passed
    }


def facts_of(summary: Summary) -> tuple[tuple[str, str], ...]:
    """The lines of the header: which GPUs, who ran, the capture, what the figures are about."""
    head = summary.header
    about = "; ".join(str(head[name]) for name in ("steady", "before") if head.get(name))
    return (*summary.header_lines(), *([("Overview of", about)] if about else []))


def cards_of(summary: Summary) -> tuple[Card, ...]:
    """The findings, each with its bound and place in words, and the section that shows more."""
    return tuple(
        Card(finding, worth_of(finding), where_of(finding), section_of_finding(finding))
        for finding in summary.findings
    )


def where_of(finding: Finding) -> str:
    """Rank, device, start and length of its worst place, as far as they are known."""
    parts = (
        ("rank {}", finding.rank),
        ("device {}", finding.device),
        ("at {}", None if finding.start_ns is None else format_time(finding.start_ns)),
        ("for {}", None if finding.duration_ns is None else format_time(finding.duration_ns)),
    )
    return ", ".join(text.format(value) for text, value in parts if value is not None)
