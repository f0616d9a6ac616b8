"""Findings: small checks, each with its figures, what it could give back at most, what to do next.

Every bound is a ceiling on its own: nothing shorter than what was lost can be had. Ceilings of
different findings overlap and are never added. Bounds are per iteration where a device's
iterations are known, else for its whole window. Nothing below 1 % of a window is said. Severity
is "error" where a capture hides most of what ran, "warning" from 3 % of a window on, else "info".
"""

from __future__ import annotations

from collections.abc import Callable

from nsightpy.analysis.findings.copies import COPY_CHECKS
from nsightpy.analysis.findings.facts import DeviceFacts, Facts
from nsightpy.analysis.findings.host import HOST_CHECKS
from nsightpy.analysis.findings.ranks import RANK_CHECKS
from nsightpy.analysis.findings.work import WORK_CHECKS
from nsightpy.results import Finding

LEAST_SHARE = 0.01
CHECKS: tuple[Callable[[Facts], list[Finding]], ...] = (
    *HOST_CHECKS,
    *RANK_CHECKS,
    *COPY_CHECKS,
    *WORK_CHECKS,
)


def findings(facts: Facts) -> list[Finding]:
    """What makes the others blind, then the largest possible share of a window, then the rest."""
    found = [finding for check in CHECKS for finding in check(facts)]
    told = [one for one in found if one.recoverable_share is None or _is_material(one)]
    return sorted(told, key=_order)


def _is_material(one: Finding) -> bool:
    return (one.recoverable_share or 0.0) >= LEAST_SHARE


def _order(one: Finding) -> tuple[bool, float, bool]:
    # a ceiling beyond the window itself cannot be had: such findings rank together at the top.
    # Equal ones stay in the order of the checks, in which causes come before what they cause.
    share = -round(min(one.recoverable_share or 0.0, 1.0), 3)
    return (one.severity != "error", share, one.severity == "info")


__all__ = ["CHECKS", "DeviceFacts", "Facts", "findings"]
