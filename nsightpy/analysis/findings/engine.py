"""From evidence to findings: what is significant, how severe, where, in which order, and once.

Every bound is a ceiling on its own: nothing shorter than what was lost can be had. Ceilings of
different findings overlap and are never added. Bounds are per iteration where a device's
iterations are known, else for its whole window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nsightpy.analysis.findings.capture_rules import CAPTURE_RULES, healthy
from nsightpy.analysis.findings.evidence import Evidence, JobEvidence
from nsightpy.analysis.findings.gains import Replayable
from nsightpy.analysis.findings.next_command import next_command
from nsightpy.analysis.findings.rule import ERROR, INFO, WARNING, Rule
from nsightpy.analysis.findings.rules import RULES
from nsightpy.analysis.findings.thresholds import (
    LEAST_OF_START_UP,
    LEAST_SHARE,
    ONE_FACT,
    WARNING_SHARE,
)
from nsightpy.results import Finding, Value
from nsightpy.results.keys import KERNEL

_BY_NAME: Mapping[str, Rule] = {rule.name: rule for rule in RULES}


@dataclass(frozen=True)
class Found:
    """A rule that is true, the device that it is worst on, and the finding."""

    rule: Rule
    row: Evidence
    finding: Finding


def judge(job: JobEvidence) -> list[Finding]:
    """All findings, in the order of what mending them gains as far as bounds tell."""
    found: list[Found] = []
    for rule in RULES:
        if rule.variant and any(one.rule.id == rule.id for one in found):
            continue
        if (one := _worst(rule, job)) is not None:
            found.append(one)
    said = [rule.finding(job) for rule in CAPTURE_RULES if rule.true(job)]
    findings = [*said, *once(_of_start_up(found))]
    return ordered([*findings, *healthy(job, findings)])


def with_gains(findings: Sequence[Finding], work: Replayable) -> list[Finding]:
    """The findings with what mending them is worth, in that order."""
    return ordered([_with_gain(finding, work) for finding in findings])


def has_edit(finding: Finding) -> bool:
    """Whether a replay can take away what a finding is about."""
    rule = _BY_NAME.get(finding.name)
    return rule is not None and rule.edit is not None


def ordered(findings: Sequence[Finding]) -> list[Finding]:
    """What hides most first, then by what mending gains, then facts; parts follow their whole."""
    findings = [replace(finding, minor=_minor(finding)) for finding in findings]
    best = {finding.id: _order(finding) for finding in findings if not finding.part_of}
    for finding in findings:
        if finding.part_of in best:
            best[finding.part_of] = min(best[finding.part_of], _order(finding))
    return sorted(
        findings,
        key=lambda one: (
            best.get(one.part_of or one.id, _order(one)),
            one.part_of or one.id,
            bool(one.part_of),
            _order(one),
        ),
    )


def once(found: Sequence[Found]) -> list[Finding]:
    """The findings; those that name the time of another one say whose part they are.

    The most severe one of those that name the same time tells it, of several the cause.
    """
    causes = sorted(found, key=lambda one: (one.finding.severity == INFO, found.index(one)))
    leads: list[Found] = []
    part_of: dict[str, str] = {}
    for one in causes:
        lead = _lead(one, leads)
        if lead is None:
            leads.append(one)
        else:
            part_of[one.finding.name] = lead.finding.id
    return [replace(one.finding, part_of=part_of.get(one.finding.name, "")) for one in found]


def _lead(one: Found, leads: Sequence[Found]) -> Found | None:
    """The finding that names nearly all of the time of another one; None for none."""
    parts = one.rule.parts(one.row)
    whole = sum(parts.values())
    shared = [(_shared(parts, [lead]), -place, lead) for place, lead in enumerate(leads)]
    most, _, lead = max(shared, key=lambda case: case[:2], default=(0, 0, None))
    if lead is None or not most or not whole:
        return None
    # copies of pageable memory are those of several directions
    several = [other for time, _, other in shared if time and other.rule.next == one.rule.next]
    most = max(most, _shared(parts, several))
    return lead if most >= ONE_FACT * whole else None


def _shared(parts: Mapping[str, int], others: Sequence[Found]) -> int:
    """The time of some parts that others name."""
    every = [other.rule.parts(other.row) for other in others]
    return sum(
        min(time, max((parts_of.get(name, 0) for parts_of in every), default=0))
        for name, time in parts.items()
    )


def _worst(rule: Rule, job: JobEvidence) -> Found | None:
    """A rule on the device where it is most severe, and there the largest share of the window."""
    costs = [(rule.ns(row) / max(rule.whole_ns(row), 1), row) for row in job.used]
    true = [(share, row) for share, row in costs if share >= LEAST_SHARE]
    if not true or (rule.every and (job.is_part or len(true) < len(costs))):
        return None
    cases = [((_grave(rule, row, share), share), -place) for place, (share, row) in enumerate(true)]
    share, row = true[-max(cases)[1]]
    return Found(rule, row, _finding(rule, row, share, job))


def _grave(rule: Rule, row: Evidence, share: float) -> int:
    return (INFO, WARNING, ERROR).index(_severity(rule, row, share))


def _severity(rule: Rule, row: Evidence, share: float) -> str:
    most = rule.most(row)
    return most if share >= WARNING_SHARE or most == ERROR else INFO


def _finding(rule: Rule, row: Evidence, share: float, job: JobEvidence) -> Finding:
    time_ns, place = rule.ns(row), rule.worst(row)
    evidence: dict[str, Value] = {"lost_ns": time_ns, "window_ns": rule.whole_ns(row)}
    if row.iterations:
        evidence["iterations"] = row.iterations
    if row.moment:
        evidence["moment"] = True
    if row.waits_for_launches:
        evidence["waits_for_launches"] = True
    command = rule.next if isinstance(rule.next, str) else rule.next(row, job)
    group = rule.group(row)
    name = group.name if rule.kernel and group.name in group.by_name else ""
    return Finding(
        rule.name,
        _severity(rule, row, share),
        rule.sentence(row),
        rank=row.rank,
        device=row.device,
        recoverable_ns=round(time_ns / (row.iterations or 1)) if rule.bound else None,
        recoverable_share=share if rule.bound else None,
        next_command=next_command(job, command, row if rule.alone else None, whole=rule.fact),
        id=rule.id,
        window=row.window,
        start_ns=None if place is None else place.start_ns + row.ahead_ns,
        duration_ns=None if place is None else place.duration_ns,
        share=share,
        evidence=evidence,
        about=(KERNEL, name) if name else None,
    )


def _of_start_up(found: Sequence[Found]) -> list[Found]:
    """In a capture of a start-up the host's pace says nothing of later steps, or little."""
    if not any(one.rule.id == "startup-dominates" for one in found):
        return list(found)
    return [
        replace(one, finding=replace(one.finding, severity=INFO)) if _slight(one) else one
        for one in found
    ]


def _slight(one: Found) -> bool:
    least = 1.0 if one.row.moment else LEAST_OF_START_UP
    slow = one.rule.pace and one.row.iterations is None
    return slow and (one.finding.share or 0.0) <= least


def _with_gain(finding: Finding, work: Replayable) -> Finding:
    """A finding with its gain, which is never more than its bound."""
    rule = _BY_NAME.get(finding.name)
    if rule is None or rule.edit is None:
        return finding
    gain = work.gain(rule.edit(finding, work))
    if gain is None:
        return finding
    time, share = gain
    bound = time if finding.recoverable_ns is None else min(finding.recoverable_ns, time)
    return replace(finding, gain_ns=bound, gain_share=share * bound / time if time else 0.0)


def _order(finding: Finding) -> tuple[int, float]:
    """The class that a finding is of, and in it what mending is worth as far as that is known."""
    rule = _BY_NAME.get(finding.name)
    if finding.severity == ERROR:
        return 0, 0.0
    if rule is None and finding.share is not None:
        return 2, -finding.share
    if rule is None or rule.fact:
        return {WARNING: 1}.get(finding.severity, 4 if rule is None else 3), 0.0
    return 4 if finding.minor else 2, -round(_gain(rule, finding), 4)


def _gain(rule: Rule, finding: Finding) -> float:
    """What mending is worth as a share of the window, as far as that is known."""
    # a ceiling beyond the window itself cannot be had
    share = min(finding.share or 0.0, 1.0)
    return rule.saved * share if finding.gain_share is None else finding.gain_share


def _minor(finding: Finding) -> bool:
    """Whether mending gains nothing that matters, or is about kernels that do not."""
    rule = _BY_NAME.get(finding.name)
    if rule is None or rule.fact or finding.severity == ERROR:
        return False
    # kernels of one moment may never run again
    passing = "moment" in finding.evidence and rule.edit is None
    slight = rule.kernel and "waits_for_launches" in finding.evidence
    return passing or slight or _gain(rule, finding) < LEAST_SHARE
