"""What ncu's own rules say could be gained, launch by launch."""

from __future__ import annotations

import math
import re

from nsightpy.frames import Frame
from nsightpy.results.rooflines import RuleEstimate

_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def estimates(rules: Frame) -> dict[int, tuple[RuleEstimate, ...]]:
    """The estimates of a report's rules (frames.RULES) by launch: those of the whole kernel first.

    Each rule once, with the most it promises. Rules of old versions estimate nothing.
    """
    launches = rules.ints("launch").tolist()
    speedups = rules.floats("speedup_pct").tolist()
    names, titles, scopes = (rules.labels(name) for name in ("rule", "title", "speedup_scope"))
    best: dict[int, dict[str, RuleEstimate]] = {}
    for row, (launch, speedup) in enumerate(zip(launches, speedups, strict=True)):
        if math.isfinite(speedup) and speedup > 0:
            estimate = RuleEstimate(
                names[row], titles[row] or _words(names[row]), speedup, scopes[row]
            )
            mine = best.setdefault(int(launch), {})
            if estimate.rule not in mine or mine[estimate.rule].speedup_pct < speedup:
                mine[estimate.rule] = estimate
    return {
        launch: tuple(sorted(by_rule.values(), key=lambda estimate: estimate.order))
        for launch, by_rule in best.items()
    }


def _words(rule: str) -> str:
    """An identifier as words: UncoalescedGlobalAccess -> Uncoalesced Global Access."""
    return _WORD.sub(" ", rule)
