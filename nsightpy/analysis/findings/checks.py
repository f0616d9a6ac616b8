"""Findings: small checks, each with its figures, what it could give back at most, what to do next.

Every bound is a ceiling on its own: nothing shorter than what was lost can be had. Ceilings of
different findings overlap and are never added. Bounds are per iteration where a device's
iterations are known, else for its whole window. Nothing below 1 % of a window is said. Severity
is "error" where a capture hides most of what ran, "warning" from 3 % of a window on, else "info".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nsightpy.analysis.findings.capture import CAPTURE_CHECKS, healthy
from nsightpy.analysis.findings.copies import COPY_CHECKS
from nsightpy.analysis.findings.facts import LEAST_SHARE, Facts
from nsightpy.analysis.findings.host import HOST_CHECKS
from nsightpy.analysis.findings.kernels import KERNEL_CHECKS
from nsightpy.analysis.findings.ranks import RANK_CHECKS
from nsightpy.results import Finding

# How fast a host launches while code is loaded for the first time is not its pace afterwards.
LEAST_OF_START_UP = 0.10
_PACE = frozenset(("launch-bound", "sync-drain", "small-kernels"))
CHECKS: tuple[Callable[[Facts], list[Finding]], ...] = (
    *CAPTURE_CHECKS,
    *HOST_CHECKS,
    *RANK_CHECKS,
    *COPY_CHECKS,
    *KERNEL_CHECKS,
)


def check_all(facts: Facts) -> list[Finding]:
    """All findings, the most severe first, then the largest share of a window."""
    findings = [finding for check in CHECKS for finding in check(facts)]
    said = [
        finding for finding in findings if finding.share is None or finding.share >= LEAST_SHARE
    ]
    if any(finding.id == "startup-dominates" for finding in said):
        moment = all(device.short for device in facts.used)
        said = [_of_start_up(finding, 1.0 if moment else LEAST_OF_START_UP) for finding in said]
    return sorted([*said, *healthy(facts, said)], key=_order)


def _of_start_up(finding: Finding, least: float) -> Finding:
    """A finding in a capture of a start-up: less of it than `least` says nothing of later steps."""
    slight = finding.id in _PACE and finding.window == "whole" and (finding.share or 0.0) <= least
    return replace(finding, severity="info") if slight else finding


def _order(finding: Finding) -> tuple[bool, bool, float]:
    # a ceiling beyond the window itself cannot be had: such findings rank together at the top.
    # Equal ones stay in the order of the checks, in which causes come before what they cause.
    share = 1.0 if finding.share is None and finding.severity == "warning" else finding.share or 0.0
    return (finding.severity != "error", finding.severity == "info", -round(min(share, 1.0), 3))
