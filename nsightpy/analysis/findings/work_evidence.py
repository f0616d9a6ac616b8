"""What the kernels and copies of one device say in a window: which dominate, what nothing hides.

Unified memory is apart. Memory sets write what a copy within the device would: they count as such.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.findings.evidence import (
    AMPERE,
    NONE,
    SCHEDULERS,
    WARP,
    Evidence,
    Gpu,
    Group,
    Place,
)
from nsightpy.analysis.findings.thresholds import (
    ALIKE,
    BEGUN,
    LATENCY_BLOCKS,
    NEAR,
    SHORT_NS,
    SMALL_GRID,
)
from nsightpy.analysis.intervals import (
    NOTHING,
    Spans,
    measure_before,
    overlap_total,
    spans_of,
    union,
)
from nsightpy.analysis.kernel_categories import category_of
from nsightpy.analysis.memory.copies import (
    DIRECTIONS,
    PAGEABLE,
    SETS,
    UNIFIED,
    host_memory,
    large,
)
from nsightpy.analysis.thresholds import MATERIAL
from nsightpy.analysis.work_graph.idle_intervals import Cause, IdleIntervals
from nsightpy.analysis.work_graph.thresholds import HOST_GAP_NS
from nsightpy.frames import Frame, Ints, Labels
from nsightpy.units import format_time

COLUMNS = ("blocks", "threads")
# The function that a kernel's lambda was written in, where its body is an argument of a template:
# par_ranged2d_kernel<advec_mom_kernel(int, ...)::[lambda(int) (instance 1)]>(...)
_LAMBDA = re.compile(r"<(?:\w+::)*(\w+)\(.*\)(?: const)?::.*lambda")
# Matrix products and convolutions in FP32 on the SIMT units: cuBLAS, cuDNN and CUTLASS names.
# cublasGemv... in the arguments of others is none of them.
_FP32_GEMM = re.compile(
    r"(?<![A-Za-z])sgemm|Sgemm|SGEMM|scudnn|_ffma(?:_|$)|simt_s(?:gemm|fprop|dgrad|wgrad)"
    r"|gemmSN_\w+<float|xmma_\w+_f32f32_f32f32_f32|(?:dgrad|wgrad)\w*_engine<float"
)
_TENSOR = re.compile(r"_tf32|tensorop|_tensor\d+x\d+")
# Elements a load of a tensor core kernel's operands: 16 bytes are 8 of FP16, 4 of TF32.
_UNALIGNED = re.compile(r"tensorop.*_align[12](?!\d)")
# Kernels that read and write every element for one small step, as frameworks name them.
_ELEMENTWISE = re.compile(
    r"[Ee]lementwise|at::native::reduce_kernel|CatArrayBatchedCopy|multi_tensor_apply|softmax_warp"
    r"|cunn_SoftMax|layer_norm|kernelPointwiseApply|^cupy_\w+__|Eigen::internal::EigenMetaKernel"
    r"|Eigen::internal::\w*ReductionKernel|_GPU_DT_\w+_kernel|broadcast_kernel|mapreduce_grid"
    r"|VectorizedBroadcastKernel|mxnet_generic_kernel"
)
# What compilers and authors have fused already (Triton, nvFuser, XLA, fused optimisers), and
# memory sets.
_FUSED = re.compile(r"triton_|nvfuser|fused|fusion|FillFunctor", re.IGNORECASE)
# Libraries name their kernels after the architecture that they are made for: one with TF32.
_SINCE_AMPERE = re.compile(r"(?<![a-z])(?:ampere|ada|hopper|blackwell|sm(?:8|9|1[0-9])\d)_")

Mask = NDArray[np.bool_]


def with_kernels(row: Evidence, kernels: Frame, communicates: Mask, others: Spans) -> Evidence:
    """A device's row with what its kernels (names, times, COLUMNS) say.

    `communicates` is a mask of them, `others` when the device copied or ran graphs.
    """
    window, gpu = row.budget.window, row.gpu
    if not gpu.compute_major and any(map(_SINCE_AMPERE.search, kernels.labels("name").values)):
        gpu = replace(gpu, compute_major=AMPERE)
    start, end = kernels.ints("start_ns"), kernels.ints("end_ns")
    work = measure_before(window, end)
    work -= measure_before(window, start)
    running = Running(start, end, kernels.labels("name").merged(), window, work)
    computing, apart = (work > 0) & ~communicates, (work > 0) & communicates
    alone = window - union(start[computing], end[computing]) - others
    exposed = union(start[apart], end[apart]) & alone
    worst = Place.worst(exposed.starts, exposed.ends)
    groups = {
        "collectives": running.group(apart, alone),
        "exposed-communication": Group(alone_ns=exposed.total, worst=worst),
    }
    if not computing.any():
        return row.having(groups)
    work = np.where(computing, work, 0)
    by_name = np.bincount(running.names.codes, work.astype(np.float64), len(running.names.values))
    masks = _masks(running, kernels, computing, gpu)
    # what larger kernels run beside is not left unused
    larger = computing & ~masks["small-grid"]
    unused = window - union(start[larger], end[larger])
    blocks = kernels.ints("blocks")
    detail = {"small-grid": blocks, "tiny-blocks": kernels.ints("threads")}
    for name, mask in masks.items():
        free = unused if name == "small-grid" else window
        groups[name] = running.group(mask, free, detail.get(name))
    # the waits for their launches are not known yet
    groups["short"] = replace(groups["short"], alone_ns=0, by_name={})
    groups["top"] = _top(running, computing, by_name)
    for name in ("top", "small-grid"):
        latency = _latency(running, blocks, computing, groups[name], gpu)
        groups[name] = replace(groups[name], also=latency)
    tenth = int(np.searchsorted(np.cumsum(work), BEGUN * work.sum()))
    return row.having(
        groups,
        gpu=gpu,
        names=int(np.count_nonzero(by_name)),
        begun_ns=int(start[tenth] - window.starts[0]),
    )


@dataclass(frozen=True)
class Running:
    """The kernels of a device as columns, with the part of each inside a window (ns)."""

    start: Ints
    end: Ints
    names: Labels
    window: Spans
    work: Ints

    def named(self, pattern: re.Pattern[str], but: re.Pattern[str] | None = None) -> Mask:
        """The rows whose name has the one pattern and not the other."""
        return self.names.where(
            lambda name: bool(pattern.search(name)) and not (but and but.search(name))
        )

    def group(self, mask: Mask, free: Spans, detail: Ints | None = None) -> Group:
        """The group of some rows; `free` is the time in which it counts as alone."""
        rows = np.flatnonzero(mask)
        if not len(rows):
            return NONE
        codes, work = self.names.codes[rows], self.work[rows]
        weights = np.bincount(codes, work, len(self.names.values))
        best = int(np.argmax(weights))
        named = rows[codes == best]
        at = int(named[np.argmax(self.work[named])])
        spans = union(self.start[rows], self.end[rows])
        matter = np.flatnonzero(weights >= MATERIAL * weights.sum())
        return Group(
            busy_ns=(spans & self.window).total,
            alone_ns=(spans & free & self.window).total,
            work_ns=int(work.sum()),
            count=len(rows),
            name=self.names.values[best],
            named_ns=int(weights[best]),
            detail=0 if detail is None else int(detail[at]),
            worst=Place(int(self.start[at]), int(self.end[at] - self.start[at])),
            by_name={self.names.values[code]: int(weights[code]) for code in matter},
        )


def _masks(running: Running, kernels: Frame, computing: Mask, gpu: Gpu) -> dict[str, Mask]:
    """The compute kernels of each group that is one by shape, length or name."""
    blocks, threads = kernels.ints("blocks"), kernels.ints("threads")
    filled = SMALL_GRID * gpu.sm_count
    few_threads = (threads > 0) & (blocks * threads < filled * SCHEDULERS * WARP)
    simt = running.named(_FP32_GEMM, _TENSOR) if gpu.has_tensor_cores else np.zeros_like(computing)
    return {
        "kernels": computing,
        "short": computing & (running.end - running.start < SHORT_NS),
        "small-grid": computing & (blocks > 0) & ((blocks < filled) | few_threads),
        "tiny-blocks": computing & (threads > 0) & (threads <= WARP),
        "fp32-gemm": computing & simt,
        "elementwise": computing & running.named(_ELEMENTWISE, _FUSED),
        "unaligned": computing & running.named(_UNALIGNED),
        "attention": _attentions(running, computing),
    }


def _attentions(running: Running, computing: Mask) -> Mask:
    """The softmax kernels between two matrix products."""
    categories = running.names.renamed(category_of)
    rows, at = (np.flatnonzero(categories.equals([of])[computing]) for of in ("softmax", "gemm"))
    mask = np.zeros_like(computing)
    if len(at) and len(rows):
        after = np.searchsorted(at, rows)
        before, behind = at[np.maximum(after - 1, 0)], at[np.minimum(after, len(at) - 1)]
        near = (rows > before) & (rows - before <= NEAR) & (behind > rows) & (behind - rows <= NEAR)
        mask[np.flatnonzero(computing)[rows[near]]] = True
    return mask


def _top(running: Running, computing: Mask, by_name: NDArray[Any]) -> Group:
    """The kernels of the name, or of the lambdas of the function, that have the most work."""
    matches = [(_LAMBDA.search(name), name) for name in running.names.values]
    made_in = np.asarray([name if match is None else match[1] for match, name in matches])
    _, codes = np.unique(made_in, return_inverse=True)
    best = np.argmax(np.bincount(codes, by_name)) == codes
    group = running.group(computing & best[running.names.codes], running.window)
    return replace(group, name=str(made_in[best][0]))


def _latency(running: Running, blocks: Ints, computing: Mask, group: Group, gpu: Gpu) -> str:
    """What is said of a group's kernel that takes as long with many blocks as with few."""
    few_work = group.named_ns < MATERIAL * running.work[computing].sum()
    rows = np.flatnonzero(computing & running.names.equals([group.name]) & (blocks > 0))
    sizes = np.unique(blocks[rows])
    sizes = sizes[sizes <= 2 * gpu.sm_count]
    if few_work or len(sizes) < 2 or sizes[-1] < LATENCY_BLOCKS * sizes[0]:
        return ""
    lengths = (running.end - running.start)[rows]
    few, many = (int(np.median(lengths[blocks[rows] == size])) for size in (sizes[0], sizes[-1]))
    if few < SHORT_NS or many > ALIKE * few:
        return ""
    return (
        f"it takes as long with {sizes[-1]:,} blocks ({format_time(many)}) as with {sizes[0]:,} "
        f"({format_time(few)}), so that a batch, or a fusion, of several costs next to nothing"
    )


def launching_ns(kernels: Frame, communicates: Mask, gaps: IdleIntervals) -> int:
    """What launching and starting kernels under 10 us took while nothing ran.

    `gaps.after` are rows of the work whose first rows are those of `kernels`.
    """
    short = (kernels.ints("end_ns") - kernels.ints("start_ns") < SHORT_NS) & ~communicates
    before = (gaps.after >= 0) & (gaps.after < kernels.rows)
    before[before] = short[gaps.after[before]]
    waited = gaps.times[before][:, [Cause.LAUNCH_BOUND, Cause.SYNC_DRAIN]].sum()
    started = gaps.times[before & (gaps.length < HOST_GAP_NS), Cause.QUEUED].sum()
    return int(waited + started)


def with_copies(row: Evidence, operations: Frame, kernels: Spans) -> Evidence:
    """A device's row with what its memory operations cost; copies under 16 KiB count as small only.

    `kernels` is when any ran. Pageable memory's by_name is its time without kernels, by direction.
    """
    window, names, is_large = row.budget.window, operations.labels("operation"), large(operations)
    start, end = operations.ints("start_ns"), operations.ints("end_ns")
    inside = measure_before(window, end) > measure_before(window, start)
    ways = {way: names.equals(wanted) for way, wanted in DIRECTIONS.items()}
    copies = np.logical_or.reduce(list(ways.values()))
    masks = {way: mask & is_large for way, mask in ways.items()}
    masks["small"] = copies & ~names.equals([SETS]) & ~is_large
    masks["unified"] = names.where(lambda name: name.startswith(UNIFIED))
    masks["pageable"] = is_large & host_memory(operations).equals([PAGEABLE])
    alone, edges = window - kernels, _around_work(kernels & window)
    groups = {
        name: _group(operations.take(mask & inside), window, alone, edges)
        for name, mask in masks.items()
    }
    by_way = {
        way: (spans_of(operations.take(mask & masks["pageable"])) & alone).total
        for way, mask in ways.items()
    }
    groups["pageable"] = replace(groups["pageable"], by_name=by_way)
    return row.having(groups)


def graph_group(graphs: Frame, window: Spans) -> Group:
    """The CUDA graphs of one device that were traced as a whole."""
    start, end = graphs.ints("start_ns"), graphs.ints("end_ns")
    lasted = measure_before(window, end) - measure_before(window, start)
    if not lasted.any():
        return NONE
    busy, worst = (union(start, end) & window).total, Place.worst(start, end, lasted)
    return Group(busy, busy, count=int(np.count_nonzero(lasted)), worst=worst)


def _around_work(kernels: Spans) -> Spans:
    """The time until a tenth of the kernels' time has passed, and when only a tenth is left."""
    if not len(kernels):
        return NOTHING
    done = np.cumsum(kernels.ends - kernels.starts)
    first, last = np.searchsorted(done, (BEGUN * kernels.total, (1 - BEGUN) * kernels.total))
    limits = np.iinfo(np.int64)
    begin, end = int(kernels.starts[first]), int(kernels.ends[last])
    return Spans.of(limits.min, begin) | Spans.of(end, limits.max)


def _group(copies: Frame, window: Spans, alone: Spans, edges: Spans) -> Group:
    """The group of some operations in a window, in its part `alone` and at the edges of work."""
    if not copies.rows:
        return NONE
    start, end = copies.ints("start_ns"), copies.ints("end_ns")
    busy, exposed = spans_of(copies) & window, spans_of(copies) & alone
    inside = measure_before(window, end) - measure_before(window, start)
    cost = measure_before(exposed, end) - measure_before(exposed, start)
    sizes = np.maximum(copies.ints("bytes"), 0)
    return Group(
        busy_ns=busy.total,
        alone_ns=exposed.total,
        work_ns=int(inside.sum()),
        edge_ns=overlap_total(exposed, edges),
        count=copies.rows,
        bytes=round((sizes * (inside / (end - start))).sum()),
        detail=int(np.count_nonzero(host_memory(copies).equals([PAGEABLE]))),
        worst=Place.worst(start, end, cost),
    )
