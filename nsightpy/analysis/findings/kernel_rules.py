"""Rules on the kernels that ran: how large, how well they fill the GPU, which of them matter."""

from __future__ import annotations

from nsightpy.analysis.findings.evidence import Evidence, JobEvidence
from nsightpy.analysis.findings.rule import INFO, WARNING, Rule
from nsightpy.analysis.findings.thresholds import (
    AMPERE,
    DOMINANT_SHARE,
    ELEMENTWISE_SHARE,
    LIKELY_SAVED,
    MANY,
    PERHAPS_SAVED,
)


def _severity(row: Evidence) -> str:
    """How kernels use a GPU is info where it mostly waits for launches, or worked for a moment."""
    return INFO if row.moment or row.waits_for_launches else WARNING


def _severity_of(row: Evidence, part_ns: int) -> str:
    """Kernels of a kind matter where they are much of the work."""
    few = part_ns < DOMINANT_SHARE * row["kernels"].work_ns
    return INFO if few else _severity(row)


def _short(row: Evidence) -> int:
    """What many short kernels and the waits for their launches take."""
    few = row["short"].count < max(MANY, row["kernels"].count / 2)
    return 0 if few else row.short_ns


def _elementwise(row: Evidence) -> int:
    few = row["elementwise"].work_ns < ELEMENTWISE_SHARE * row["kernels"].work_ns
    return 0 if few else row["elementwise"].busy_ns


def _attends(row: Evidence) -> bool:
    """Whether a good part of the elementwise work is attention that is written out."""
    return row["attention"].work_ns >= ELEMENTWISE_SHARE * row["elementwise"].work_ns > 0


def dominating(row: Evidence) -> str:
    """The group of the kernels that decide how long the window takes; empty without any."""
    least = DOMINANT_SHARE * row.window_ns
    if row.names < 2 and row.moment:
        return ""
    return next((name for name in ("top", "family") if row[name].busy_ns >= least), "")


def _shown_by(row: Evidence, _: JobEvidence) -> str:
    return "operators" if row.traced else "kernels"


KERNEL_RULES = (
    Rule(
        "fp32-gemm",
        "FP32 matrix products",
        ns=lambda row: row["fp32-gemm"].busy_ns,
        text=(
            "matrix products ran in FP32 without tensor cores (most in {group.name:kernel}; all of "
            "them {of_work:share} of the kernels' time): {loss}; <ampere|TF32 or BF16|FP16> would "
            "use them, where its precision is enough"
        ),
        next=_shown_by,
        passed="matrix products use tensor cores, or are few",
        when={"ampere": lambda row: row.gpu.compute_major >= AMPERE},
        of="fp32-gemm",
        most=_severity,
        bound=False,
        saved=LIKELY_SAVED,
        kernel=True,
    ),
    Rule(
        "tiny-blocks",
        "tiny blocks",
        ns=lambda row: row["tiny-blocks"].busy_ns,
        text=(
            "{group.count:kernels} with blocks of at most 32 threads ran for {loss}; most of it "
            "{group.name:kernel} with {group.detail:threads} a block: the blocks that fit "
            "on a multiprocessor at a time do not fill it"
        ),
        next="kernels --by grid",
        passed="blocks have several warps",
        of="tiny-blocks",
        most=lambda row: _severity_of(row, row["tiny-blocks"].named_ns),
        bound=False,
        saved=LIKELY_SAVED,
        kernel=True,
    ),
    Rule(
        "small-grid",
        "small grids",
        ns=lambda row: row["small-grid"].alone_ns,
        text=(
            "{group.count:kernels} with too few blocks or threads for the {gpu.sm_count} "
            "multiprocessors ran for {loss}; most of it {group.name:kernel} with "
            "{group.detail:blocks}: <latent|it takes as long with {top_latency.many:count} "
            "({top_latency.many_ns:time}) as with {top_latency.few:count} "
            "({top_latency.few_ns:time}), so that a batch, or a fusion, of several costs next to "
            "nothing|more, smaller blocks, or independent kernels side by side, would use the rest "
            "of the GPU>"
        ),
        next="kernels --by grid",
        passed="grids fill the multiprocessors",
        when={"latent": lambda row: row["small-grid"].name in row.latency},
        of="small-grid",
        most=lambda row: _severity_of(row, row["small-grid"].work_ns),
        bound=False,
        saved=LIKELY_SAVED,
        kernel=True,
    ),
    Rule(
        "small-kernels",
        "small kernels",
        ns=_short,
        text=(
            "{group.count:count} of {groups[kernels].count:count} kernels ran for less than 10.0 "
            "us; they and the waits for their launches took up to {loss}: <in_graphs|they run in "
            "CUDA graphs: fuse them|fuse them, or launch them as a CUDA graph>"
        ),
        next=lambda row, _: "operators" if row.traced else "launches",
        passed="kernels are few or long",
        of="short",
        time=lambda row: {"small kernels": _short(row)},
        saved=PERHAPS_SAVED,
        pace=True,
    ),
    Rule(
        "unfused-elementwise",
        "unfused elementwise kernels",
        ns=_elementwise,
        text=(
            "elementwise and reduction kernels have {of_work:share} of the kernels' time: {loss}; "
            "<attends|{groups[attention].count:kernels} of softmax between matrix products are "
            "attention written out, which scaled_dot_product_attention does in one kernel; the "
            "rest, >fused (torch.compile, jax.jit, cupy.fuse, fused norms and optimisers) they "
            "would read and write memory less often"
        ),
        next=_shown_by,
        passed="elementwise steps are fused, or few",
        when={"attends": _attends},
        of="elementwise",
        most=_severity,
        saved=PERHAPS_SAVED,
    ),
    Rule(
        "dominating-kernel",
        "dominating kernel",
        ns=lambda row: row[dominating(row)].busy_ns,
        text=(
            "<one|one kernel ran for {loss}: {group.name:kernel}, |the kernels made in "
            "{group.name} ran for {loss}: >{group.count:launches}, {of_work:share} of the kernels' "
            "time<latent|; it takes as long with {top_latency.many:count} blocks "
            "({top_latency.many_ns:time}) as with {top_latency.few:count} "
            "({top_latency.few_ns:time}), so that a batch, or a fusion, of several costs next to "
            "nothing><unaligned|; its operands are not aligned to 16 bytes: sizes that are "
            "multiples of 8 (pad them) use tensor cores in full>; <gpu.ncu|ncu|a kernel profiler "
            "of the GPU's maker> says how much of it could be saved"
        ),
        next=lambda row, _: "select" if row.gpu.ncu else "kernels",
        passed="no kernel has a quarter of the window",
        when={
            "one": lambda row: dominating(row) == "top",
            "latent": lambda row: row["top"].name in row.latency,
            "unaligned": lambda row: row["top"].name in row["unaligned"].by_name,
        },
        of=dominating,
        most=lambda row: INFO if row.few_kernels else _severity(row),
        bound=False,
        saved=PERHAPS_SAVED,
        kernel=True,
    ),
)
