"""The rules: one entry for each conclusion. What comes first is the cause of what comes later."""

from __future__ import annotations

from collections.abc import Mapping

from nsightpy.analysis.findings.capture_rules import CAPTURE_RULES, CaptureRule
from nsightpy.analysis.findings.copy_rules import COPY_RULES
from nsightpy.analysis.findings.host_rules import HOST_RULES, WHOLE_RULES
from nsightpy.analysis.findings.kernel_rules import KERNEL_RULES
from nsightpy.analysis.findings.rank_rules import COLLECTIVE_RULES, RANK_RULES
from nsightpy.analysis.findings.rule import Rule

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
