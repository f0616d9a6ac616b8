"""Checks on the kernels that ran and on the capture itself."""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.findings.facts import DeviceFacts, Facts
from nsightpy.analysis.findings.tiny import LEAST_KERNELS, TINY_NS
from nsightpy.analysis.findings.worst import worst
from nsightpy.frames import Labels
from nsightpy.names import function_name
from nsightpy.results import Finding, Value
from nsightpy.units import format_count, format_time

DOMINANT_SHARE = 0.30
MATERIAL_SHARE = 0.01
OPAQUE_SHARE = 0.01
# From here on the rest of the findings is about the smaller part of what ran.
BLIND_SHARE = 0.10
UNLAUNCHED_SHARE = 0.01
MOST_PROBLEMS = 3
SERIOUS = ("holds no GPU work", "nsys error", "No CUDA API calls")


def dominating_kernel(facts: Facts) -> list[Finding]:
    """A compute kernel with a large part of all compute kernels' time."""
    stats = facts.kernels
    names = Labels.of(str(key[-1]) for key in stats.keys)
    groups = np.flatnonzero(~is_communication(names)).tolist()
    whole = sum(int(stats.total[group]) for group in groups)
    if not whole or len(groups) == 1:
        return []
    top = max(groups, key=lambda group: int(stats.total[group]))
    total, count = int(stats.total[top]), int(stats.instances[top])
    busy = sum(one.budget.busy_ns for one in facts.devices)
    window = facts.window_ns
    if total < max(DOMINANT_SHARE * whole, MATERIAL_SHARE * max(busy, window)):
        return []
    name = names[top]
    text = (
        f"one kernel has {_share(total, whole)} of the compute kernels' time: "
        f"{function_name(name)}, {format_count(count)} x {format_time(float(stats.median[top]))} "
        "(median); how much of it could be saved is for ncu to say"
    )
    command = facts.command("select")
    evidence: dict[str, Value] = {"total_ns": total, "instances": count, "kernel": name}
    return [Finding("dominating kernel", "info", text, next_command=command, evidence=evidence)]


def tiny_kernels(facts: Facts) -> list[Finding]:
    """Many kernels so short that launching them costs about as much as running them."""

    def lost(one: DeviceFacts) -> int:
        few = one.tiny is None or one.tiny.kernels < max(LEAST_KERNELS, one.tiny.of / 2)
        return 0 if few or one.tiny is None else one.tiny.lost_ns

    def text(one: DeviceFacts) -> str:
        tiny = one.tiny
        if tiny is None:
            return ""
        return (
            f"{format_count(tiny.kernels)} of {format_count(tiny.of)} kernels ran for less than "
            f"{format_time(TINY_NS)}; they and the launch latency before them took {{time}}, "
            "{share} of {place}: fusing them would save the most of it"
        )

    return worst(facts, "tiny kernels", lost, text, "launches")


def opaque_graphs(facts: Facts) -> list[Finding]:
    """Graph launches whose kernels are not recorded."""
    opaque = sum(one.budget.opaque_graph_ns for one in facts.devices)
    if not facts.window_ns or opaque < OPAQUE_SHARE * facts.window_ns:
        return []
    blind = opaque >= BLIND_SHARE * facts.window_ns
    text = (
        f"{format_time(opaque)}, {_share(opaque, facts.window_ns)} of the window, ran in CUDA "
        "graphs traced as a whole: their kernels are in no ranking and idle time has no causes; "
        "`nsys profile --cuda-graph-trace=node` opens them"
    )
    return [
        Finding(
            "opaque CUDA graphs",
            "error" if blind else "info",
            text,
            next_command=facts.command("breakdown"),
            evidence={"opaque_ns": opaque, "window_ns": facts.window_ns},
        )
    ]


def capture_problems(facts: Facts) -> list[Finding]:
    """What the profiler itself said went wrong, and launches that it did not record."""
    problems = [problem.removesuffix(".") for problem in facts.problems]
    kernels = int(facts.kernels.instances.sum())
    blind = any(mark in problem for problem in problems for mark in SERIOUS)
    if facts.unlaunched > UNLAUNCHED_SHARE * kernels:
        blind |= facts.unlaunched >= BLIND_SHARE * kernels
        problems.append(
            f"{format_count(facts.unlaunched)} of {format_count(kernels)} kernels have no recorded "
            "launch: what they waited for is not known"
        )
    if not problems:
        return []
    # what says that something is missing comes before what merely may be
    problems.sort(key=lambda problem: not any(mark in problem for mark in SERIOUS))
    text = "; ".join(problems[:MOST_PROBLEMS])
    more = len(problems) - MOST_PROBLEMS
    evidence: dict[str, Value] = {"problems": len(problems), "unlaunched": facts.unlaunched}
    return [
        Finding(
            "capture problems",
            "error" if blind else "warning",
            text + (f"; and {more} more" if more > 0 else ""),
            next_command=facts.command("info"),
            evidence=evidence,
        )
    ]


WORK_CHECKS = (opaque_graphs, tiny_kernels, dominating_kernel, capture_problems)


def _share(part: float, whole: float) -> str:
    share = 100 * part / whole
    return f"{share:.1f} %" if 99.5 <= share < 100 else f"{share:.0f} %"
