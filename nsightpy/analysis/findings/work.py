"""Checks on the kernels that ran and on the capture itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.findings.facts import Facts
from nsightpy.frames import Labels
from nsightpy.names import function_name
from nsightpy.results import Finding, Value
from nsightpy.units import format_count, format_time

DOMINANT_SHARE = 0.30
MATERIAL_SHARE = 0.01
OPAQUE_SHARE = 0.01
TINY_NS = 5_000
TINY_LAUNCHES = 1_000
UNLAUNCHED_SHARE = 0.01
MOST_PROBLEMS = 3


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
    if total < max(DOMINANT_SHARE * whole, MATERIAL_SHARE * busy):
        return []
    name = names[top]
    text = (
        f"one kernel has {_share(total, whole)} of the compute kernels' time: "
        f"{function_name(name)}, {format_count(count)} x {format_time(float(stats.median[top]))} "
        "(median)"
    )
    command = f"nsightpy kernels {facts.report} --by grid"
    evidence: dict[str, Value] = {"total_ns": total, "instances": count, "kernel": name}
    return [Finding("dominating kernel", "info", text, next_command=command, evidence=evidence)]


def tiny_kernels(facts: Facts) -> list[Finding]:
    """Many kernels so short that launching them costs more than running them."""
    stats = facts.kernels
    short = [g for g in range(len(stats.keys)) if float(stats.median[g]) < TINY_NS]
    launches = sum(int(stats.instances[g]) for g in short)
    everything = int(stats.instances.sum())
    if launches < TINY_LAUNCHES or launches < everything / 2:
        return []
    text = (
        f"{format_count(launches)} of {format_count(everything)} kernels belong to kinds with a "
        f"median under {format_time(TINY_NS)}: launching costs about as much as running"
    )
    command = f"nsightpy launches {facts.report}"
    evidence = {"tiny": launches, "kernels": everything}
    return [Finding("tiny kernels", "warning", text, next_command=command, evidence=evidence)]


def opaque_graphs(facts: Facts) -> list[Finding]:
    """Graph launches whose kernels are not recorded."""
    opaque = sum(one.budget.opaque_graph_ns for one in facts.devices)
    if not facts.window_ns or opaque < OPAQUE_SHARE * facts.window_ns:
        return []
    text = (
        f"{format_time(opaque)}, {_share(opaque, facts.window_ns)} of the window, ran in CUDA "
        "graphs traced as a whole: their kernels are in no ranking"
    )
    command = "nsys profile --cuda-graph-trace=node ..."
    evidence = {"opaque_ns": opaque}
    return [Finding("opaque CUDA graphs", "info", text, next_command=command, evidence=evidence)]


def capture_problems(facts: Facts) -> list[Finding]:
    """What the profiler itself said went wrong, and launches that it did not record."""
    problems = [problem.removesuffix(".") for problem in facts.problems]
    kernels = int(facts.kernels.instances.sum())
    if facts.unlaunched > UNLAUNCHED_SHARE * kernels:
        problems.append(
            f"{format_count(facts.unlaunched)} of {format_count(kernels)} kernels have no recorded "
            "launch: what they waited for is not known"
        )
    if not problems:
        return []
    text = "; ".join(problems[:MOST_PROBLEMS])
    more = len(problems) - MOST_PROBLEMS
    evidence: dict[str, Value] = {"problems": len(problems), "unlaunched": facts.unlaunched}
    return [
        Finding(
            "capture problems",
            "warning",
            text + (f"; and {more} more" if more > 0 else ""),
            next_command=f"nsightpy info {facts.report}",
            evidence=evidence,
        )
    ]


WORK_CHECKS: tuple[Callable[[Facts], list[Finding]], ...] = (
    opaque_graphs,
    tiny_kernels,
    dominating_kernel,
    capture_problems,
)


def _share(part: float, whole: float) -> str:
    share = 100 * part / whole
    return f"{share:.1f} %" if 99.5 <= share < 100 else f"{share:.0f} %"
