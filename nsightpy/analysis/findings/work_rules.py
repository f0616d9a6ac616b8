"""Rules on the work of a device: copies that no kernel hides, kernels and how they fill the GPU."""

from nsightpy.analysis.findings import thresholds as limits
from nsightpy.analysis.findings.evidence import AMPERE, Evidence, Group, JobEvidence
from nsightpy.analysis.findings.rule import INFO, WARNING, Rule
from nsightpy.analysis.memory.copies import DIRECTIONS
from nsightpy.analysis.work_graph import replay


def _copy_severity(row: Evidence, copies: Group) -> str:
    """Large copies are info at most where they are done once, or for a moment only."""
    return INFO if row.moment or (copies.once and not row.iterations) else WARNING


def _exposed(way: str, where: str, less: str, beside: str = "") -> Rule:
    """The rule on the copies of one direction that nothing hides, and on the calls before them."""
    name = f"exposed-{way}"
    return Rule(
        name,
        f"copies not overlapped: {where}",
        text=(
            f"{{group.count:copies}} {where} ({{group.bytes:bytes}}<group.detail|, "
            "{group.detail:count} of them pageable>) ran, or were waited for, with no kernel "
            f"beside them: {{loss}}; {less}<iterations|{beside}>"
        ),
        next="memory --by memory",
        passed=f"copies {where} are hidden",
        of=way,
        ns=lambda row: row[way].alone_ns + row.caused(name),
        matters=lambda row: row[way].count,
        most=lambda row: _copy_severity(row, row[way]),
        edit=lambda _, work: replay.copies(
            work.graph,
            among=work.graph.work.names.where(lambda copy: copy.startswith(DIRECTIONS[way])),
        ),
    )


COPY_RULES = (
    _exposed(
        "h2d",
        "from host to device",
        "keep the data on the device",
        ", or copy ahead on another stream",
    ),
    _exposed(
        "d2h",
        "from device to host",
        "copy less",
        ", or copy on another stream while kernels run",
    ),
    _exposed(
        "d2d",
        "and memory sets within or between devices",
        "write results in place, or send less to other devices",
    ),
    Rule(
        "pageable-copies",
        "pageable copies",
        text=(
            "{group.bytes:bytes} in {group.count:copies} came from or went to pageable memory"
            "<group.rate| at {group.rate:number} GB/s>, {of_window}: pinned memory copies faster, "
            "and beside kernels"
        ),
        next="memory --by memory",
        passed="copies are of pinned memory",
        of="pageable",
        most=lambda row: _copy_severity(row, row["pageable"]),
        edit=lambda _, work: replay.copies(work.graph, among=work.graph.work.pageable),
        bound=False,
    ),
    Rule(
        "many-small-copies",
        "many small copies",
        text=(
            "{group.count:count} copies under 16.4 KB ({group.mean_bytes:bytes} on average) took "
            "{loss}, and each may hold up the host: copy once, or decide on the device"
        ),
        next="memory --by memory",
        passed="copies are few or large",
        of="small",
        matters=lambda row: row["small"].count >= limits.MANY,
    ),
    Rule(
        "unified-memory",
        "unified memory migrates",
        text=(
            "{group.bytes:bytes} of unified memory migrated, or was waited for, in {loss}; "
            "cudaMemPrefetchAsync or explicit copies avoid page faults"
        ),
        next="memory --by memory",
        passed="no pages migrate",
        of="unified",
        ns=lambda row: row["unified"].busy_ns + row.caused("unified-memory"),
    ),
)


def _kernel_severity(row: Evidence) -> str:
    """How kernels use a GPU is info where it mostly waits for launches, or worked for a moment."""
    return INFO if row.moment or row.waits_for_launches else WARNING


def _part_severity(row: Evidence, part_ns: int) -> str:
    """Kernels of a kind matter where they are much of the work."""
    return (
        INFO if part_ns < limits.DOMINANT_SHARE * row["kernels"].work_ns else _kernel_severity(row)
    )


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
        most=_kernel_severity,
        saved=limits.LIKELY_SAVED,
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
        most=lambda row: _part_severity(row, row["tiny-blocks"].named_ns),
        saved=limits.LIKELY_SAVED,
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
        most=lambda row: _part_severity(row, row["small-grid"].work_ns),
        saved=limits.LIKELY_SAVED,
        kernel=True,
    ),
    Rule(
        "small-kernels",
        "small kernels",
        text=(
            "{group.count:count} of {groups[kernels].count:count} kernels ran for less than 10.0 "
            "us; they and the waits for their launches took up to {loss}: fuse them, or launch "
            "them as a CUDA graph"
        ),
        next=lambda row, _: "operators" if row.traced else "launches",
        passed="kernels are few or long",
        of="short",
        matters=lambda row: row["short"].count >= max(limits.MANY, row["kernels"].count / 2),
        saved=limits.PERHAPS_SAVED,
        pace=True,
    ),
    Rule(
        "unfused-elementwise",
        "unfused elementwise kernels",
        text=(
            "elementwise and reduction kernels have {of_work:share} of the kernels' time: {loss}; "
            "<attends|{groups[attention].count:kernels} of softmax between matrix products are "
            "attention written out: scaled_dot_product_attention does that in one kernel|fused "
            "(torch.compile, jax.jit, cupy.fuse) they would access memory less often>"
        ),
        next=_shown_by,
        passed="elementwise steps are fused, or few",
        of="elementwise",
        matters=lambda row: (
            row["elementwise"].work_ns >= limits.ELEMENTWISE_SHARE * row["kernels"].work_ns
        ),
        when={
            "attends": lambda row: (
                row["attention"].work_ns >= limits.ELEMENTWISE_SHARE * row["elementwise"].work_ns
            )
        },
        most=_kernel_severity,
        saved=limits.PERHAPS_SAVED,
    ),
    Rule(
        "dominating-kernel",
        "dominating kernel",
        text=(
            "{group.name:kernel} ran for {loss}, in {group.count:launches}: {of_work:share} of the "
            "kernels' time<group.also|; {group.also}><unaligned|; its operands are not aligned to "
            "16 bytes: sizes that are multiples of 8 (pad them) use tensor cores in full>"
            "<gpu.ncu|; ncu says how much of it could be saved>"
        ),
        next=lambda row, _: "select" if row.gpu.ncu else "kernels",
        passed="no kernel has a quarter of the window",
        of="top",
        matters=lambda row: (
            row["top"].busy_ns >= limits.DOMINANT_SHARE * row.window_ns
            and not (row.names < 2 and row.moment)
        ),
        when={"unaligned": lambda row: row["top"].name in row["unaligned"].by_name},
        most=lambda row: INFO if row.names <= limits.FEW_NAMES else _kernel_severity(row),
        saved=limits.PERHAPS_SAVED,
        kernel=True,
    ),
)
