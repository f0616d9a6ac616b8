"""Checks on the capture itself: what it does not say, and whether its totals may be quoted."""

from __future__ import annotations

from nsightpy.analysis.findings.facts import DeviceFacts, Facts, Place
from nsightpy.analysis.findings.worst import percent_text, placed
from nsightpy.results import Finding, Value, notes
from nsightpy.units import format_count, format_time

OPAQUE_SHARE = 0.01
# From here on the rest of the findings is about the smaller part of what ran.
BLIND_SHARE = 0.10
MOST_PROBLEMS = 3
HEALTHY_SHARE = 0.95
# Without one: work that comes this late.
LATE_SHARE = 0.5
# More than this part of a window in copies and memory sets alone is no healthy one.
COPIES_SHARE = 0.05
# From this part of a window on idle time must be explained.
LEAST_UNEXPLAINED = 0.03
# What makes figures wrong; calls of CUDA explain idle time only.
_LOSSES = (
    *(notes.LOST, notes.LOST_RANGES, notes.FAILED, notes.NO_CALLS, notes.LEFT_OUT),
    *(notes.REPEATED, notes.CLAIMED, notes.OTHER_PROGRAMS, notes.MISSING_RANKS),
)
_AGREES_WITH_HEALTH = {
    "dominating-kernel",
    "fp32-gemm",
    "unfused-elementwise",
    "opaque-graphs",
    "startup-dominates",
    "no-steady-state",
}


def no_gpu_work(facts: Facts) -> list[Finding]:
    """Captures in which no GPU operation was recorded."""
    problems = _texts(facts, notes.NO_WORK)
    if not problems:
        return []
    text = "; ".join(problems[:MOST_PROBLEMS])
    findings = [_plain("no-gpu-work", "no GPU work", "error", text, facts.command("info"))]
    if facts.host:
        said = f"the CPU worked meanwhile, in {facts.host}"
        name = "CPU busy, GPU not used"
        findings.append(_plain("host-gap", name, "info", said, facts.command("info")))
    return findings


def opaque_graphs(facts: Facts) -> list[Finding]:
    """Graph launches whose kernels are not recorded."""
    opaque = sum(device.budget.opaque_graph_ns for device in facts.devices)
    if not facts.window_ns or opaque < OPAQUE_SHARE * facts.window_ns:
        return []
    share = opaque / facts.window_ns
    text = (
        f"{format_time(opaque)}, {percent_text(share)} of the window, ran in CUDA graphs traced as "
        "a whole: their kernels are in no ranking; `nsys profile --cuda-graph-trace=node` opens "
        "them"
    )
    severity = "error" if share >= BLIND_SHARE else "info"
    command = facts.command("breakdown")
    evidence: dict[str, Value] = {"opaque_ns": opaque, "window_ns": facts.window_ns}
    device = max(facts.devices, key=lambda device: device.budget.opaque_graph_ns)
    finding = _plain("opaque-graphs", "opaque CUDA graphs", severity, text, command, evidence)
    return [placed(finding, device, device.opaque)]


def several_jobs(facts: Facts) -> list[Finding]:
    """Captures that are not of one job: figures of all of them together mean nothing."""
    why = _texts(facts, notes.OTHER_JOBS)
    if not why:
        return []
    text = f"{why[0]}: sums over them mean little; ask about one at a time"
    command = facts.command("info")
    return [_plain("capture-incomplete", "captures of several jobs", "error", text, command)]


def capture_incomplete(facts: Facts) -> list[Finding]:
    """Losses that change a conclusion: errors of the profiler, launches that are missing."""
    unexplained = [(device, time) for device in facts.used if (time := _unexplained_ns(device))]
    losses = [kind for kind in _LOSSES if unexplained or kind != notes.NO_CALLS]
    problems = _texts(facts, *losses)
    if unexplained:
        device, time = max(unexplained, key=lambda case: case[1] / case[0].budget.window_ns)
        share = percent_text(time / device.budget.window_ns)
        why = f"{format_count(facts.unlaunched)} of {format_count(facts.kernels)} kernels have no"
        problems.append(
            f"why {device.name} was idle for {format_time(time)}, {share} of its window, is not "
            "known" + (f": {why} recorded launch" if facts.unlaunched else "")
        )
    if not problems:
        return []
    more = len(problems) - MOST_PROBLEMS
    text = "; ".join(problems[:MOST_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")
    command = facts.command("info")
    finding = _plain("capture-incomplete", "incomplete capture", "warning", text, command)
    if not unexplained:
        return [finding]
    return [placed(finding, device, device.idle.worst.get("unknown"))]


def _unexplained_ns(device: DeviceFacts) -> int:
    """Idle time that no recorded call explains, in ns; 0 where it is immaterial."""
    time = device.budget.idle_ns
    if device.idle.causes:
        time = device.caused_ns("unknown") - device.idle.ended_ns
    return time if time >= LEAST_UNEXPLAINED * device.budget.window_ns else 0


def startup_dominates(facts: Facts) -> list[Finding]:
    """Most of what was captured is start-up, warm-up or one-off upload."""
    reasons = [_startup(device) for device in facts.used]
    # one rank that starts late does not make the capture one of a start-up
    if not reasons or not all(reasons):
        return []
    text = f"{reasons[0]}: totals over the capture mislead"
    repeats = any(device.iterations is not None for device in facts.used)
    shown = "iterations" if repeats else "api" if facts.has_calls else _of_kernels(facts)
    command = facts.command(shown)
    # figures of steady iterations that most of a GPU's window holds do not mislead
    severity = "info" if all(device.mostly_steady for device in facts.used) else "warning"
    finding = _plain("startup-dominates", "start-up dominates", severity, text, command)
    return [placed(finding, facts.used[0], _start_up_of(facts.used[0]))]


def _startup(device: DeviceFacts) -> str:
    """Why most of a device's capture is no steady work; empty where it is."""
    repetition, window = device.repetition, device.budget.window_ns
    if device.iterations is not None and not device.mostly_steady:
        outside = f" ({repetition.outside})" if repetition.outside else ""
        return (
            f"the steady state is {percent_text(device.window_share)} of the "
            f"{format_time(device.whole_ns)} between {device.name}'s first and last "
            f"operation{outside}"
        )
    if device.short and repetition.lead_ns:
        return (
            f"{device.name} worked within {format_time(device.whole_ns)}, after "
            f"{format_time(repetition.lead_ns)} of start-up"
        )
    if device.iterations is not None:
        return ""
    late = device.kernels.first_tenth_ns
    if late >= LATE_SHARE * window and 2 * device.idle.overdue_ns < late:
        return (
            f"{format_time(late)}, {percent_text(late / window)} of {device.span}, pass before a "
            "tenth of its kernels' work is done, and nothing repeats afterwards"
        )
    return ""


def _start_up_of(device: DeviceFacts) -> Place:
    """From when to when a device's start-up lasts: it is one as `_startup` says."""
    repetition, first, begin = device.repetition, device.repetition.first_ns, device.budget.start_ns
    if device.iterations is not None and not device.mostly_steady:
        end = int(device.budget.window.ends[-1])
        after = Place(end, first + repetition.whole_ns - end)
        return max(Place(first, begin - first), after, key=lambda place: place.duration_ns)
    if device.short:
        lead = repetition.lead_ns or 0
        return Place(first - lead, lead)
    return Place(begin, device.kernels.first_tenth_ns)


def no_steady_state(facts: Facts) -> list[Finding]:
    """Nothing repeats."""
    if not facts.used or any(device.iterations is not None for device in facts.used):
        return []
    why = next(
        (device.repetition.outside for device in facts.used if device.repetition.outside), ""
    )
    text = "fewer than three steps that repeat were found, so no step time may be quoted" + (
        f" ({why})" if why else ""
    )
    command = facts.command("nvtx" if facts.has_ranges else _of_kernels(facts))
    return [_plain("no-steady-state", "no steady state", "info", text, command)]


def healthy(facts: Facts, findings: list[Finding]) -> list[Finding]:
    """The GPU is busy, and nothing at this level stands against it: go on with ncu."""
    against = [finding for finding in findings if finding.severity != "info"]
    if not facts.used or any(finding.id not in _AGREES_WITH_HEALTH for finding in against):
        return []
    least = min(facts.used, key=lambda device: device.budget.busy_ns / device.budget.window_ns)
    share = least.budget.busy_ns / least.budget.window_ns
    if share < HEALTHY_SHARE or any(device.short or _startup(device) for device in facts.used):
        return []
    if any(
        device.budget.copy_only_ns > COPIES_SHARE * device.budget.window_ns for device in facts.used
    ):
        return []  # busy with copies and memory sets
    others = ", the least of all" if len(facts.used) > 1 else ""
    text = (
        f"the GPU is busy for {percent_text(share)} of {least.span}{others}: only the kernels "
        "themselves can become faster"
    )
    if any(finding.id == "opaque-graphs" for finding in findings):
        text += "; what runs inside the CUDA graphs is not known"
    command = facts.command(_of_kernels(facts, "select" if least.gpu.ncu else "kernels"))
    return [_plain("healthy", "GPU busy", "info", text, command)]


def _of_kernels(facts: Facts, command: str = "kernels") -> str:
    """A command about kernels where any were recorded one by one, else that about time."""
    return command if any(device.kernels.launches for device in facts.used) else "breakdown"


def _texts(facts: Facts, *kinds: str) -> list[str]:
    """What is said of the captures, of these kinds."""
    return [str(note).removesuffix(".") for note in facts.problems if note.kind in kinds]


def _plain(
    identifier: str,
    name: str,
    severity: str,
    text: str,
    command: str,
    evidence: dict[str, Value] | None = None,
) -> Finding:
    return Finding(
        name, severity, text, next_command=command, id=identifier, evidence=evidence or {}
    )


CAPTURE_CHECKS = (
    several_jobs,
    no_gpu_work,
    opaque_graphs,
    capture_incomplete,
    startup_dominates,
    no_steady_state,
)
