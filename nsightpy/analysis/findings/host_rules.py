"""Rules on why a device had nothing to do, and on start-up: what its threads did instead."""

from __future__ import annotations

from nsightpy.analysis.findings import gains
from nsightpy.analysis.findings.evidence import Evidence
from nsightpy.analysis.findings.groups import Place
from nsightpy.analysis.findings.rule import ERROR, INFO, WARNING, Rule
from nsightpy.analysis.findings.thresholds import (
    BLIND_SHARE,
    FEW_LAUNCHES,
    LEAST_SHARE,
    WARNING_SHARE,
)
from nsightpy.analysis.idle.host_activity import ON_CPU
from nsightpy.analysis.work_graph.thresholds import HOST_GAP_NS


def _lost(row: Evidence) -> int:
    """Idle time that blocking calls brought about."""
    return row.caused("sync-drain") + row.idle.run_ahead_lost_ns


def _put_off(row: Evidence) -> int:
    """Host-gap time after blocking calls, where that is nearly all there is of them."""
    return _instead(row, _lost(row), row.idle.put_off_ns)


def _before_loading(row: Evidence) -> int:
    """Host-gap time until code was loaded, where that is nearly all there is of loading."""
    return _instead(row, row.caused("first-launch"), row.idle.before_loading_ns)


def _instead(row: Evidence, own_ns: int, other_ns: int) -> int:
    least = WARNING_SHARE * row.window_ns
    return other_ns if own_ns < least <= other_ns and not row.idle.beside else 0


def _launching(row: Evidence) -> int:
    """What launching costs, where there are enough launches to speak of a pace."""
    few = row["kernels"].count + row["graphs"].count < FEW_LAUNCHES
    return 0 if few else row.caused("launch-bound")


def _loading(row: Evidence) -> int:
    """The time since code was first loaded before what counts of a device, a moment only."""
    moment = row.short if row.iterations is None else row.startup_ns
    return row.repetition.loading_ns if moment else 0


def _loading_place(row: Evidence) -> Place:
    first, lasted = row.repetition.first_ns, row.repetition.loading_ns
    return Place((first if row.iterations is None else row.budget.start_ns) - lasted, lasted)


def _early(row: Evidence) -> bool:
    """Whether most of what did not begin is one interval where the window begins."""
    worst = row.idle.worst["queued"]
    late = worst.start_ns - row.budget.start_ns > LEAST_SHARE * row.window_ns
    return not late and 2 * worst.duration_ns > row.idle.overdue_ns


def _unknown_host(row: Evidence) -> bool:
    """Whether nothing says what the host did in host gaps."""
    named = row.idle.host and not row.idle.host.startswith(ON_CPU)
    return not (row.idle.calls.get("host-gap") or row.has_ranges or named)


WHOLE_RULES = (
    Rule(
        "opaque-graphs",
        "opaque CUDA graphs",
        ns=lambda row: row["graphs"].busy_ns,
        text=(
            "{loss_ns:time}, {share:share} of the window, ran in CUDA graphs traced as a whole: "
            "their kernels are in no ranking; `nsys profile --cuda-graph-trace=node` opens them"
        ),
        next="breakdown",
        passed="the kernels of CUDA graphs are recorded",
        of="graphs",
        most=lambda row: ERROR if row["graphs"].busy_ns >= BLIND_SHARE * row.window_ns else INFO,
        bound=False,
        alone=False,
        fact=True,
    ),
    Rule(
        "startup-dominates",
        "start-up dominates",
        ns=lambda row: row.startup_ns,
        whole_ns=lambda row: row.capture_ns,
        text=(
            "{loss_ns:time} of the {capture_ns:time} in which {name} was captured are <iterations|"
            "outside of its steady iterations ({window_ns:time})|no repeated work: it worked "
            "within {whole_ns:time}><late|, and of that {late_ns:time} pass before a tenth of its "
            "kernels' work is done><repetition.outside| ({repetition.outside})>: totals over the "
            "capture mislead<iterations||; record what repeats, after a warm-up>"
        ),
        next=lambda row, job: (
            "iterations" if row.iterations else "api" if job.has_calls else "kernels"
        ),
        passed="most of the capture is steady work",
        when={"late": lambda row: row.late_ns >= LEAST_SHARE * row.window_ns},
        place=lambda row: row.startup,
        time=lambda row: {"start-up": row.startup_ns},
        most=lambda _: INFO,
        bound=False,
        alone=False,
        fact=True,
        every=True,
    ),
)
HOST_RULES = (
    Rule(
        "first-launch",
        "GPU idle: first launches",
        ns=lambda row: row.caused("first-launch") + _before_loading(row),
        text=(
            "code was loaded or compiled while the GPU had nothing to do<call|, mostly in {call}>: "
            "{loss}<before|; {idle.before_loading_ns:time} of it are time outside CUDA just "
            "before, in which a just-in-time compiler works (also counted as host-gap)>; a warm-up "
            "keeps it out of what is measured"
        ),
        next="gaps",
        passed="no code is loaded or compiled",
        when={"before": _before_loading},
        time=lambda row: {
            "first-launch": row.caused("first-launch"),
            "host-gap": _before_loading(row),
        },
        most=lambda row: INFO if _before_loading(row) else WARNING,
        edit=gains.first_launches,
    ),
    Rule(
        "first-launch",
        "start-up: first launches",
        ns=_loading,
        whole_ns=lambda row: row.capture_ns,
        text=(
            "{name} began <iterations|its steady iterations|to work> {loss_ns:time} after "
            "{repetition.loading_call} first made the context or loaded code: that, compilation "
            "and first use come before"
        ),
        next="api",
        place=_loading_place,
        time=lambda row: {"start-up": _loading(row)},
        most=lambda _: INFO,
        bound=False,
        fact=True,
        variant=True,
    ),
    Rule(
        "host-gap",
        "GPU idle: host busy elsewhere",
        ns=lambda row: row.caused("host-gap"),
        text=(
            "nothing was launched while the launching thread was <call|in calls of {call}|outside "
            "CUDA> for <long|1 ms|100 us> or more at a time<idle.blocked_by|, after a blocking "
            "call ({idle.blocked_by}) that let the queue run empty>: {loss}<idle.host|: "
            "{idle.host}><unknown|; ranges in the code (NVTX) or CPU sampling of Nsight Systems "
            "(`nsys profile -t cuda,nvtx,osrt -s cpu`) would say what><untold|; ranges in the code "
            "(torch.profiler.record_function) would say what>"
        ),
        next="gaps",
        passed="the launching threads stay with CUDA",
        when={
            "long": lambda row: row.idle.worst["host-gap"].duration_ns >= HOST_GAP_NS,
            "unknown": lambda row: _unknown_host(row) and not row.traced,
            "untold": lambda row: _unknown_host(row) and row.traced,
        },
        most=lambda row: INFO if row.idle.beside else WARNING,
        edit=gains.host_gaps,
    ),
    Rule(
        "sync-drain",
        "GPU idle: blocking calls drain the queue",
        ns=lambda row: _lost(row) + _put_off(row),
        text=(
            "the host waited for the GPU {idle.drained:times}<call|, mostly in {call}>, with "
            "nothing queued behind: up to {loss}, idle until the queue had filled again<later|; "
            "{idle.put_off_ns:time} of it are work outside CUDA that could be done beside what "
            "those calls wait for (also counted as host-gap)><ahead|; "
            "{idle.causes[sync-drain]:time} of it until the next launch, "
            "{idle.run_ahead_lost_ns:time} in launches that come one by one afterwards (also "
            "counted as launch-bound)>"
        ),
        next="gaps",
        passed="no blocking call drains the queue",
        when={
            "later": _put_off,
            "ahead": lambda row: (
                row.idle.run_ahead_lost_ns > row.caused("sync-drain") / 10 and not _put_off(row)
            ),
        },
        time=lambda row: {
            "sync-drain": row.caused("sync-drain"),
            "launch-bound": row.idle.run_ahead_lost_ns,
            "host-gap": _put_off(row),
        },
        most=lambda row: INFO if _put_off(row) else WARNING,
        edit=gains.waits,
        pace=True,
    ),
    Rule(
        "allocation",
        "GPU idle: allocation",
        ns=lambda row: row.caused("allocation"),
        text=(
            "memory was allocated or freed while the GPU had nothing to do<call|, mostly in "
            "{call}>: {loss}; allocate once, or <pool|let the pool keep what is freed (its release "
            "threshold)|from a pool>"
        ),
        next="gaps",
        passed="nothing is allocated while the GPU waits",
        when={"pool": lambda row: "Async" in row.idle.calls.get("allocation", "")},
        edit=gains.allocations,
    ),
    Rule(
        "launch-bound",
        "GPU idle: launch-bound",
        ns=_launching,
        text=(
            "the GPU waited for launches, in gaps below 1 ms between kernels<mean_kernel_ns| "
            "(kernels take {mean_kernel_ns:time} on average)>: {loss}; CUDA graphs, torch.compile "
            "or fused kernels save launches<costly|; {costly}>"
        ),
        next=lambda row, _: "operators" if row.traced else "gaps",
        passed="the host launches ahead of the GPU",
        edit=gains.launches,
        pace=True,
    ),
    Rule(
        "capture-incomplete",
        "GPU idle: launched, not begun",
        ns=lambda row: row.idle.overdue_ns,
        text=(
            "work had been launched for 1 ms or more and did not begin, with nothing else on the "
            "GPU: {loss}; what it waited for is not in the capture: an event, work from before the "
            "capture, or another process on this GPU<early|; most of it is where the capture begins"
            ": record from earlier on>"
        ),
        next="gaps",
        place=lambda row: row.idle.worst.get("queued"),
        when={"early": _early},
        most=lambda _: INFO,
    ),
)
