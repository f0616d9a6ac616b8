"""What the kernels of one device say in a window: which dominate, and how they fill the GPU."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.findings.groups import NONE, Gpu, Group, Latency, Place
from nsightpy.analysis.findings.thresholds import (
    AMPERE,
    BEGUN,
    LATENCY_BLOCKS,
    LATENCY_NS,
    LATENCY_SPREAD,
    LEAST_SHARE,
    NEAR,
    SCHEDULERS,
    SHORT_NS,
    SMALL_GRID,
    WARP,
)
from nsightpy.analysis.intervals import Spans, measure_before, union
from nsightpy.analysis.work_graph.idle_intervals import (
    LAUNCH_BOUND,
    QUEUED,
    SYNC_DRAIN,
    IdleIntervals,
)
from nsightpy.analysis.work_graph.thresholds import HOST_GAP_NS
from nsightpy.frames import Frame, Ints, Labels
from nsightpy.names import measured_by_ncu

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
_GEMM = re.compile(r"gemm|cutlass|cublas|xmma|nvjet", re.IGNORECASE)
# Kernels that read and write every element for one small step, as frameworks name them.
_ELEMENTWISE = re.compile(
    r"[Ee]lementwise|at::native::reduce_kernel|CatArrayBatchedCopy|multi_tensor_apply|softmax_warp"
    r"|cunn_SoftMax|layer_norm|kernelPointwiseApply|^cupy_\w+__|Eigen::internal::EigenMetaKernel"
    r"|Eigen::internal::\w*ReductionKernel|_GPU_DT_\w+_kernel|broadcast_kernel|mapreduce_grid"
    r"|VectorizedBroadcastKernel|mxnet_generic_kernel"
)
_SOFTMAX = re.compile(r"softmax", re.IGNORECASE)
# What compilers and authors have fused already (Triton, nvFuser, XLA, fused optimisers), and
# memory sets.
_FUSED = re.compile(r"triton_|nvfuser|fused|fusion|FillFunctor", re.IGNORECASE)
# Regions of OpenMP and OpenACC that compilers made kernels of.
_DIRECTIVES = re.compile(r"^__omp_offloading_|^nvkernel_|_\d+_gpu(?:__red)?$")
# Libraries name their kernels after the architecture that they are made for: one with TF32.
_SINCE_AMPERE = re.compile(r"(?<![a-z])(?:ampere|ada|hopper|blackwell|sm(?:8|9|1[0-9])\d)_")

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class KernelEvidence:
    """The groups of a device's kernels inside its window, and what else they say (Evidence)."""

    groups: Mapping[str, Group]
    names: int = 0
    latency: Mapping[str, Latency] = field(default_factory=dict)
    begun_ns: int = 0
    directives: bool = False


def gpu_of_kernels(gpu: Gpu, kernels: Frame, tool: str) -> Gpu:
    """A GPU whose architecture is not recorded with the oldest that the kernels' names allow, and
    whether ncu measures it; `tool` may name the runtime that drove it."""
    gpu = replace(gpu, ncu=measured_by_ncu(gpu.name, tool))
    if gpu.compute_major or not any(map(_SINCE_AMPERE.search, kernels.labels("name").values)):
        return gpu
    return replace(gpu, compute_major=AMPERE)


def kernel_evidence(
    kernels: Frame, communicates: Mask, window: Spans, others: Spans, gpu: Gpu
) -> KernelEvidence:
    """What one device's kernels (names, times, COLUMNS) say; a mask of those that communicate.

    `others` is when the device copied or ran graphs.
    """
    running = Running.of(kernels, window)
    mine, apart = running.inside & ~communicates, running.inside & communicates
    computes = union(running.start[mine], running.end[mine])
    alone = window - computes - others
    groups = {
        "collectives": running.group(apart, alone),
        "exposed": _longest(union(running.start[apart], running.end[apart]) & alone),
    }
    if not mine.any():
        return KernelEvidence(groups)
    work = np.where(mine, running.work, 0)
    by_name = np.bincount(running.names.codes, work.astype(np.float64), len(running.names.values))
    masks = _masks(running, kernels, mine, gpu)
    # what larger kernels run beside is not left unused
    larger = mine & ~masks["small-grid"]
    unused = window - union(running.start[larger], running.end[larger])
    detail = {"small-grid": kernels.ints("blocks"), "tiny-blocks": kernels.ints("threads")}
    for name, mask in masks.items():
        free = unused if name == "small-grid" else window
        groups[name] = running.group(mask, free, detail.get(name))
    groups["top"] = running.group(mine & (running.names.codes == np.argmax(by_name)), window)
    groups["family"] = _family(running, by_name, mine)
    tenth = int(np.searchsorted(np.cumsum(work), BEGUN * work.sum()))
    return KernelEvidence(
        groups,
        int(np.count_nonzero(by_name)),
        _latencies(running, kernels.ints("blocks"), mine, by_name, gpu),
        int(running.start[tenth] - window.starts[0]),
        bool(2 * work[running.named(_DIRECTIVES)].sum() > work.sum()),
    )


@dataclass(frozen=True)
class Running:
    """The kernels of a device as columns, with the part of each inside a window (ns)."""

    start: Ints
    end: Ints
    names: Labels
    window: Spans
    work: Ints

    @classmethod
    def of(cls, kernels: Frame, window: Spans) -> Running:
        """Kernels by their times and names."""
        start, end = kernels.ints("start_ns"), kernels.ints("end_ns")
        work = measure_before(window, end)
        work -= measure_before(window, start)
        return cls(start, end, kernels.labels("name").merged(), window, work)

    @property
    def inside(self) -> Mask:
        """Which kernels run inside the window."""
        inside: Mask = self.work > 0
        return inside

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
        matter = np.flatnonzero(weights >= LEAST_SHARE * weights.sum())
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


def _masks(running: Running, kernels: Frame, mine: Mask, gpu: Gpu) -> dict[str, Mask]:
    """The compute kernels of each group that is one by shape, length or name."""
    blocks, threads = kernels.ints("blocks"), kernels.ints("threads")
    filled = SMALL_GRID * gpu.sm_count
    few_threads = (threads > 0) & (blocks * threads < filled * SCHEDULERS * WARP)
    simt = running.named(_FP32_GEMM, _TENSOR) if gpu.has_tensor_cores else np.zeros_like(mine)
    return {
        "kernels": mine,
        "short": mine & (running.end - running.start < SHORT_NS),
        "small-grid": mine & (blocks > 0) & ((blocks < filled) | few_threads),
        "tiny-blocks": mine & (threads > 0) & (threads <= WARP),
        "fp32-gemm": mine & simt,
        "elementwise": mine & running.named(_ELEMENTWISE, _FUSED),
        "unaligned": mine & running.named(_UNALIGNED),
        "attention": _attentions(running, mine),
    }


def _attentions(running: Running, mine: Mask) -> Mask:
    """The softmax kernels between two matrix products."""
    softmax, product = (running.named(pattern)[mine] for pattern in (_SOFTMAX, _GEMM))
    softmax &= ~product
    at = np.flatnonzero(product)
    rows = np.flatnonzero(softmax)
    mask = np.zeros_like(mine)
    if len(at) and len(rows):
        after = np.searchsorted(at, rows)
        before, behind = at[np.maximum(after - 1, 0)], at[np.minimum(after, len(at) - 1)]
        near = (rows > before) & (rows - before <= NEAR) & (behind > rows) & (behind - rows <= NEAR)
        mask[np.flatnonzero(mine)[rows[near]]] = True
    return mask


def _family(running: Running, by_name: NDArray[Any], mine: Mask) -> Group:
    """The kernels made of the lambdas of one function that have the most work; its name."""
    functions = {
        code: match[1]
        for code, name in enumerate(running.names.values)
        if (match := _LAMBDA.search(name))
    }
    work: dict[str, float] = {}
    for code, function in functions.items():
        work[function] = work.get(function, 0.0) + float(by_name[code])
    if not work:
        return NONE
    best = max(work, key=lambda function: (work[function], function))
    chosen = np.asarray([functions.get(n) == best for n in range(len(running.names.values))])
    return replace(running.group(mine & chosen[running.names.codes], running.window), name=best)


def _latencies(
    running: Running, blocks: Ints, mine: Mask, by_name: NDArray[Any], gpu: Gpu
) -> dict[str, Latency]:
    """Of kernels that matter, those that take as long with many blocks as with few, by name."""
    found = {}
    for code in np.flatnonzero(by_name >= LEAST_SHARE * by_name.sum()).tolist():
        rows = np.flatnonzero(mine & (running.names.codes == code) & (blocks > 0))
        sizes = np.unique(blocks[rows])
        sizes = sizes[sizes <= 2 * gpu.sm_count]
        if len(sizes) < 2 or sizes[-1] < LATENCY_BLOCKS * sizes[0]:
            continue
        few, many = (
            int(np.median((running.end - running.start)[rows[blocks[rows] == size]]))
            for size in (sizes[0], sizes[-1])
        )
        if few >= LATENCY_NS and many <= LATENCY_SPREAD * few:
            found[running.names.values[code]] = Latency(int(sizes[0]), few, int(sizes[-1]), many)
    return found


def _longest(spans: Spans) -> Group:
    """Some time as a group, with its longest stretch as the worst place."""
    if not len(spans):
        return NONE
    at = int(np.argmax(spans.ends - spans.starts))
    start = int(spans.starts[at])
    place = Place(start, int(spans.ends[at]) - start)
    return Group(busy_ns=spans.total, alone_ns=spans.total, count=len(spans), worst=place)


def short_cost_ns(kernels: Frame, communicates: Mask, window: Spans, gaps: IdleIntervals) -> int:
    """The time of kernels under 10 us in a window, and of launching and starting them.

    `gaps.after` are rows of the work whose first rows are those of `kernels`.
    """
    start, end = kernels.ints("start_ns"), kernels.ints("end_ns")
    short = (end - start < SHORT_NS) & ~communicates
    run = union(start[short], end[short]) & window
    before = (gaps.after >= 0) & (gaps.after < kernels.rows)
    before[before] = short[gaps.after[before]]
    waited = sum(gaps.times[before, cause].sum() for cause in (LAUNCH_BOUND, SYNC_DRAIN))
    started = gaps.times[before & (gaps.length < HOST_GAP_NS), QUEUED].sum()
    return run.total + int(waited + started)
