"""Rules on why a device had nothing to do, and on start-up: what its threads did instead."""

from nsightpy.analysis.findings import gains, thresholds as limits
from nsightpy.analysis.findings.evidence import Evidence
from nsightpy.analysis.findings.rule import ERROR, INFO, WARNING, Rule
from nsightpy.analysis.work_graph import replay
from nsightpy.analysis.work_graph.host_activity import ON_CPU
from nsightpy.analysis.work_graph.host_chain import ALLOCATION


def _put_off(row: Evidence) -> int:
    """Work outside CUDA that could be done beside what blocking calls wait for, in ns."""
    return row["sync-drain"].by_name.get("host-gap", 0)


WHOLE_RULES = (
    Rule(
        "opaque-graphs",
        "opaque CUDA graphs",
        text=(
            "{loss_ns:time}, {share:share} of the window, ran in CUDA graphs traced as a whole: "
            "their kernels are in no ranking; `nsys profile --cuda-graph-trace=node` opens them"
        ),
        next="breakdown",
        passed="the kernels of CUDA graphs are recorded",
        of="graphs",
        most=lambda _: ERROR,
        least=limits.MUST_SHARE,
        fact=True,
    ),
    Rule(
        "startup-dominates",
        "start-up dominates",
        text=(
            "{loss_ns:time} of the {capture_ns:time} in which {name} was captured are outside of "
            "its <iterations|steady iterations|work> ({window_ns:time}): totals over the capture "
            "mislead"
        ),
        next=lambda row, _: "iterations" if row.iterations else "api" if row.causes else "kernels",
        passed="most of the capture is steady work",
        of=lambda row: row.startup,
        whole_ns=lambda row: row.capture_ns,
        most=lambda _: INFO,
        fact=True,
        every=True,
    ),
)
HOST_RULES = (
    Rule(
        "first-launch",
        "GPU idle: first launches",
        text=(
            "code was loaded or compiled while the GPU had nothing to do<group.name|, mostly in "
            "{group.name}>: {loss}; a warm-up keeps it out of what is measured"
        ),
        next="gaps",
        passed="no code is loaded or compiled",
        edit=gains.first_launches,
    ),
    Rule(
        "first-launch",
        "start-up: first launches",
        text=(
            "{name} began its <iterations|steady iterations|work> {loss_ns:time} after "
            "{group.name} first made the context or loaded code"
        ),
        next="api",
        of="loading",
        matters=lambda row: row.short if row.iterations is None else row.startup.alone_ns,
        whole_ns=lambda row: row.capture_ns,
        most=lambda _: INFO,
        fact=True,
        variant=True,
    ),
    Rule(
        "host-gap",
        "GPU idle: host busy elsewhere",
        text=(
            "nothing was launched while the launching thread was <group.name|in calls of "
            "{group.name}|outside CUDA>: {loss}<host|: {host}><unknown|; ranges in the code (NVTX, "
            "torch.profiler.record_function) or CPU samples of nsys would say what>"
        ),
        next="gaps",
        passed="the launching threads stay with CUDA",
        when={
            "unknown": lambda row: (
                not (row["host-gap"].name or row.has_ranges)
                and (not row.host or row.host.startswith(ON_CPU))
            ),
        },
        most=lambda row: INFO if row.beside else WARNING,
        edit=lambda _, work: replay.host_gaps(work.graph),
    ),
    Rule(
        "sync-drain",
        "GPU idle: blocking calls drain the queue",
        text=(
            "the host waited for the GPU {group.count:times}<group.name|, mostly in {group.name}>, "
            "with nothing queued behind: up to {loss}, idle until the queue had filled again"
            "<later|; part of it is host-gap, too: work outside CUDA that could be done beside>"
            "<group.by_name[launch-bound]|; part of it is launch-bound, too>"
        ),
        next="gaps",
        passed="no blocking call drains the queue",
        when={"later": _put_off},
        most=lambda row: INFO if _put_off(row) else WARNING,
        edit=lambda _, work: replay.waits(work.graph),
        pace=True,
    ),
    Rule(
        "allocation",
        "GPU idle: allocation",
        text=(
            "memory was allocated or freed while the GPU had nothing to do<group.name|, mostly in "
            "{group.name}>: {loss}; allocate once, or from a pool that keeps what is freed"
        ),
        next="gaps",
        passed="nothing is allocated while the GPU waits",
        edit=lambda _, work: replay.calls_of(work.graph, ALLOCATION),
    ),
    Rule(
        "launch-bound",
        "GPU idle: launch-bound",
        text=(
            "the GPU waited for launches, in gaps below 1 ms between kernels"
            "<groups[kernels].count| (kernels take {groups[kernels].mean_ns:time} on average)>: "
            "{loss}; CUDA graphs, torch.compile or fused kernels save launches<costly|; {costly}>"
        ),
        next=lambda row, _: "operators" if row.traced else "gaps",
        passed="the host launches ahead of the GPU",
        matters=lambda row: row["kernels"].count + row["graphs"].count >= limits.FEW_LAUNCHES,
        edit=lambda _, work: replay.launches(work.graph),
        pace=True,
    ),
    Rule(
        "capture-incomplete",
        "GPU idle: not explained",
        text=(
            "why {name} was idle is not known: {loss}<causes||; no API calls were recorded "
            "(`nsys profile -t cuda`)><group.also|; {group.also}>"
        ),
        next="info",
        of="unknown",
        matters=lambda row: row["unknown"].alone_ns >= limits.WARNING_SHARE * row.window_ns,
        bound=False,
    ),
    Rule(
        "capture-incomplete",
        "GPU idle: launched, not begun",
        text=(
            "work launched 1 ms or more before did not begin, with nothing else on the GPU: "
            "{loss}; what it waited for is not in the capture"
        ),
        next="gaps",
        of="queued",
        most=lambda _: INFO,
    ),
)
