"""From evidence to findings: what is significant, how severe, where, in which order, and once.

Every bound is a ceiling on its own: nothing shorter than what was lost can be had. Ceilings of
different findings overlap and are never added. Bounds are per iteration where a device's
iterations are known, else for its whole window.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nsightpy.analysis.findings.evidence import Evidence, JobEvidence
from nsightpy.analysis.findings.gains import Replayable
from nsightpy.analysis.findings.host_rules import HOST_RULES, WHOLE_RULES
from nsightpy.analysis.findings.job_rules import (
    CAPTURE_RULES,
    COLLECTIVE_RULES,
    RANK_RULES,
    CaptureRule,
    healthy,
)
from nsightpy.analysis.findings.rule import ERROR, INFO, WARNING, Rule, next_command
from nsightpy.analysis.findings.thresholds import MUST_SHARE
from nsightpy.analysis.findings.work_rules import COPY_RULES, KERNEL_RULES
from nsightpy.analysis.thresholds import MATERIAL, MOSTLY
from nsightpy.results import Finding
from nsightpy.results.keys import KERNEL

# One entry for each conclusion. What comes first is the cause of what comes later.
RULES: tuple[Rule, ...] = (
    *(*WHOLE_RULES, *HOST_RULES, *RANK_RULES, *COLLECTIVE_RULES, *COPY_RULES, *KERNEL_RULES),
)
# The rules by the section of a summary whose rows they look at.
SECTIONS: Mapping[str, tuple[Rule | CaptureRule, ...]] = {
    "idle": HOST_RULES,
    "memory": COPY_RULES,
    "kernels": KERNEL_RULES,
    "collectives": COLLECTIVE_RULES,
    "ranks": RANK_RULES,
    "breakdown": (*WHOLE_RULES, *CAPTURE_RULES),
}
# Where findings stand, in this order: what hides, what lacks, what can be mended, facts, the rest.
HIDES, LACKS, MENDED, FACT, MINOR = range(5)
_BY_NAME: Mapping[str, Rule] = {rule.name: rule for rule in RULES}


@dataclass(frozen=True)
class Found:
    """A rule that is true, its time by name on the device that it is worst on, the finding."""

    rule: Rule
    parts: Mapping[str, int]
    finding: Finding


def judge(job: JobEvidence) -> list[Finding]:
    """All findings, in the order of what mending them gains as far as bounds tell."""
    found: list[Found] = []
    for rule in RULES:
        ids = {one.rule.id for one in found}
        if rule.variant and rule.id in ids:
            continue
        if one := _worst(rule, job, "startup-dominates" in ids):
            found.append(one)
    captures = [rule.finding(job) for rule in CAPTURE_RULES if rule.text(job)]
    findings = [*captures, *_once(found)]
    return _ordered([*findings, *healthy(job, findings)])


def with_gains(findings: Sequence[Finding], work: Replayable | None) -> list[Finding]:
    """The findings with what mending them is worth, in that order, where `work` can be replayed."""
    return _ordered([_with_gain(finding, work) for finding in findings] if work else findings)


def has_edit(finding: Finding) -> bool:
    """Whether a replay can take away what a finding is about."""
    rule = _BY_NAME.get(finding.name)
    return rule is not None and rule.edit is not None


def _worst(rule: Rule, job: JobEvidence, in_start_up: bool) -> Found | None:
    """A rule on the device where it is most severe, and there the largest share of the window."""
    shares = [(rule.share(row), row) for row in job.used]
    true = [(share, row) for share, row in shares if share >= MATERIAL]
    if not true or (rule.every and (job.is_part or len(true) < len(shares))):
        return None
    severities = (INFO, WARNING, ERROR)
    _, row = max(true, key=lambda case: (severities.index(rule.severity(case[1])), case[0]))
    finding = _finding(rule, row, job)
    if in_start_up and rule.pace and row.iterations is None:
        # in a capture of a start-up the host's pace says nothing of later steps, or little
        minor = row.moment or rule.share(row) <= MUST_SHARE
        finding = replace(finding, severity=INFO) if minor else finding
    return Found(rule, rule.parts(row), finding)


def _finding(rule: Rule, row: Evidence, job: JobEvidence) -> Finding:
    time_ns, share, group = rule.cost_ns(row), rule.share(row), rule.group(row)
    command = rule.next if isinstance(rule.next, str) else rule.next(row, job)
    bound = rule.bound and not (rule.kernel or rule.fact)
    about = (KERNEL, group.name) if rule.kernel and group.name in group.by_name else None
    return Finding(
        rule.name,
        rule.severity(row),
        rule.sentence(row),
        rank=row.rank,
        device=row.device,
        recoverable_ns=round(time_ns / (row.iterations or 1)) if bound else None,
        recoverable_share=share if bound else None,
        next_command=next_command(job, command, row, whole=rule.fact),
        id=rule.id,
        window=row.window,
        start_ns=None if group.worst is None else group.worst.start_ns + row.ahead_ns,
        duration_ns=None if group.worst is None else group.worst.duration_ns,
        share=share,
        about=about,
        # kernels of one moment may never run again
        passing=(row.moment and rule.edit is None) or (rule.kernel and row.waits_for_launches),
    )


def _once(found: Sequence[Found]) -> list[Finding]:
    """The findings; those that name the time of another one say whose part they are.

    The most severe one of those that name the same time tells it, of several the cause.
    """
    leads: list[Found] = []
    part_of: dict[str, str] = {}
    for one in sorted(found, key=lambda one: one.finding.severity == INFO):
        if not leads or _shared(one, leads) < MOSTLY * sum(one.parts.values()):
            leads.append(one)
        else:
            lead = max(leads, key=lambda lead: _shared(one, [lead]))
            part_of[one.rule.name] = lead.rule.id
    return [replace(one.finding, part_of=part_of.get(one.rule.name, "")) for one in found]


def _shared(one: Found, leads: Sequence[Found]) -> int:
    """The time of a finding that others name."""
    return sum(
        min(time, max((lead.parts.get(name, 0) for lead in leads), default=0))
        for name, time in one.parts.items()
    )


def _with_gain(finding: Finding, work: Replayable) -> Finding:
    """A finding with its gain, which is never more than its bound."""
    rule = _BY_NAME.get(finding.name)
    gain = None if rule is None or rule.edit is None else work.gain(rule.edit(finding, work))
    if gain is None:
        return finding
    time, share = gain
    bound = time if finding.recoverable_ns is None else min(finding.recoverable_ns, time)
    return replace(finding, gain_ns=bound, gain_share=share * bound / time if time else 0.0)


def _ordered(findings: Sequence[Finding]) -> list[Finding]:
    """What hides most first, then by what mending gains, then facts; parts follow their whole."""
    findings = [
        replace(one, minor=one.name in _BY_NAME and _order(one)[0] == MINOR) for one in findings
    ]
    best: dict[str, tuple[int, float]] = {}
    for finding in sorted(findings, key=_order):
        best.setdefault(finding.part_of or finding.id, _order(finding))
    return sorted(
        findings,
        key=lambda one: (
            best[one.part_of or one.id],
            one.part_of or one.id,
            bool(one.part_of),
            _order(one),
        ),
    )


def _order(finding: Finding) -> tuple[int, float]:
    """The class that a finding is of, and in it what mending is worth as far as that is known."""
    rule = _BY_NAME.get(finding.name)
    if finding.severity == ERROR:
        return HIDES, 0.0
    if rule is None and finding.share is not None:
        return MENDED, -finding.share
    if rule is None or rule.fact:
        return {WARNING: LACKS}.get(finding.severity, MINOR if rule is None else FACT), 0.0
    # a ceiling beyond the window itself cannot be had
    gain = rule.saved * min(finding.share or 0.0, 1.0)
    gain = gain if finding.gain_share is None else finding.gain_share
    return MINOR if finding.passing or gain < MATERIAL else MENDED, -round(gain, 4)
