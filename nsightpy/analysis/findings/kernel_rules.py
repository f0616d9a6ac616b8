"""Rules on the kernels that ran: how large, how well they fill the GPU, which of them matter."""

from __future__ import annotations

from nsightpy.analysis.findings.evidence import Evidence, JobEvidence
from nsightpy.analysis.findings.rule import INFO, WARNING, Rule
from nsightpy.analysis.findings.thresholds import (
    AMPERE,
    DOMINANT_SHARE,
    ELEMENTWISE_SHARE,
    FEW_NAMES,
    LIKELY_SAVED,
    MANY,
    PERHAPS_SAVED,
)


def _severity(row: Evidence) -> str:
    """How kernels use a GPU is info where it mostly waits for launches, or worked for a moment."""
    return INFO if row.moment or row.waits_for_launches else WARNING


def _severity_of(row: Evidence, part_ns: int) -> str:
    """Kernels of a kind matter where they are much of the work."""
    return INFO if part_ns < DOMINANT_SHARE * row["kernels"].work_ns else _severity(row)


def _shown_by(row: Evidence, _: JobEvidence) -> str:
    return "operators" if row.traced else "kernels"


KERNEL_RULES = (
    Rule(
        "fp32-gemm",
        "FP32 matrix products",
        text=(
            "matrix products ran in FP32 without tensor cores (most in {group.name:kernel}; all of "
            "them {of_work:share} of the kernels' time): {loss}; <ampere|TF32 or BF16|FP16> would "
            "use them, where its precision is enough"
        ),
        next=_shown_by,
        passed="matrix products use tensor cores, or are few",
        when={"ampere": lambda row: row.gpu.compute_major >= AMPERE},
        most=_severity,
        saved=LIKELY_SAVED,
        kernel=True,
    ),
    Rule(
        "tiny-blocks",
        "tiny blocks",
        text=(
            "{group.count:kernels} with blocks of at most 32 threads ran for {loss}; most of it "
            "{group.name:kernel} with {group.detail:threads} a block: the blocks that fit "
            "on a multiprocessor at a time do not fill it"
        ),
        next="kernels --by grid",
        passed="blocks have several warps",
        most=lambda row: _severity_of(row, row["tiny-blocks"].named_ns),
        saved=LIKELY_SAVED,
        kernel=True,
    ),
    Rule(
        "small-grid",
        "small grids",
        text=(
            "{group.count:kernels} with too few blocks or threads for the {gpu.sm_count} "
            "multiprocessors ran for {loss}; most of it {group.name:kernel} with "
            "{group.detail:blocks}: <group.also|{group.also}|more, smaller blocks, or independent "
            "kernels side by side, would use the rest of the GPU>"
        ),
        next="kernels --by grid",
        passed="grids fill the multiprocessors",
        most=lambda row: _severity_of(row, row["small-grid"].work_ns),
        saved=LIKELY_SAVED,
        kernel=True,
    ),
    Rule(
        "small-kernels",
        "small kernels",
        text=(
            "{group.count:count} of {groups[kernels].count:count} kernels ran for less than 10.0 "
            "us; they and the waits for their launches took up to {loss}: <in_graphs|they run in "
            "CUDA graphs: fuse them|fuse them, or launch them as a CUDA graph>"
        ),
        next=lambda row, _: "operators" if row.traced else "launches",
        passed="kernels are few or long",
        of="short",
        matters=lambda row: row["short"].count >= max(MANY, row["kernels"].count / 2),
        saved=PERHAPS_SAVED,
        pace=True,
    ),
    Rule(
        "unfused-elementwise",
        "unfused elementwise kernels",
        text=(
            "elementwise and reduction kernels have {of_work:share} of the kernels' time: {loss}; "
            "<attends|{groups[attention].count:kernels} of softmax between matrix products are "
            "attention written out, which scaled_dot_product_attention does in one kernel; the "
            "rest, >fused (torch.compile, jax.jit, cupy.fuse, fused norms and optimisers) they "
            "would read and write memory less often"
        ),
        next=_shown_by,
        passed="elementwise steps are fused, or few",
        of="elementwise",
        matters=lambda row: (
            row["elementwise"].work_ns >= ELEMENTWISE_SHARE * row["kernels"].work_ns
        ),
        when={
            "attends": lambda row: (
                row["attention"].work_ns >= ELEMENTWISE_SHARE * row["elementwise"].work_ns
            )
        },
        most=_severity,
        saved=PERHAPS_SAVED,
    ),
    Rule(
        "dominating-kernel",
        "dominating kernel",
        text=(
            "<one|one kernel ran for {loss}: {group.name:kernel}, |the kernels made in "
            "{group.name} ran for {loss}: >{group.count:launches}, {of_work:share} of the kernels' "
            "time<group.also|; {group.also}><unaligned|; its operands are not aligned to 16 bytes: "
            "sizes that are multiples of 8 (pad them) use tensor cores in full>; <gpu.ncu|ncu|a "
            "kernel profiler of the GPU's maker> says how much of it could be saved"
        ),
        next=lambda row, _: "select" if row.gpu.ncu else "kernels",
        passed="no kernel has a quarter of the window",
        of="top",
        matters=lambda row: (
            row["top"].busy_ns >= DOMINANT_SHARE * row.window_ns
            and not (row.names < 2 and row.moment)
        ),
        when={
            "one": lambda row: row["top"].name in row["top"].by_name,
            "unaligned": lambda row: row["top"].name in row["unaligned"].by_name,
        },
        most=lambda row: INFO if row.names <= FEW_NAMES else _severity(row),
        saved=PERHAPS_SAVED,
        kernel=True,
    ),
)
