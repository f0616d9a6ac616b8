"""What the compute kernels of one device say in a window: which dominate, and how they fill it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

SHORT_NS = 10_000
WARP = 32
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
# Kernels that read and write every element for one small step: those of PyTorch, TensorFlow, CuPy,
# Paddle, MXNet, and the broadcasts and reductions of Julia.
_ELEMENTWISE = re.compile(
    r"[Ee]lementwise|at::native::reduce_kernel|CatArrayBatchedCopy|multi_tensor_apply|softmax_warp"
    r"|cunn_SoftMax|layer_norm|kernelPointwiseApply|^cupy_\w+__|Eigen::internal::EigenMetaKernel"
    r"|Eigen::internal::\w*ReductionKernel|_GPU_DT_\w+_kernel|broadcast_kernel|mapreduce_grid"
    r"|VectorizedBroadcastKernel|mxnet_generic_kernel"
)
# What compilers and authors have fused already (Triton, nvFuser, XLA, fused optimisers), and
# memory sets.
_FUSED = re.compile(r"triton_|nvfuser|fused|fusion|FillFunctor", re.IGNORECASE)
# Regions of OpenMP and OpenACC that compilers made kernels of.
_DIRECTIVES = re.compile(r"^__omp_offloading_|^nvkernel_|_\d+_gpu(?:__red)?$")
# Libraries name their kernels after the architecture that they are made for: one with TF32.
_SINCE_AMPERE = re.compile(r"(?<![a-z])(?:ampere|ada|hopper|blackwell|sm(?:8|9|1[0-9])\d)_")
AMPERE = 8
# Fewer blocks than this part of the multiprocessors leave a material part of the GPU without work:
# persistent kernels and those in clusters begin nearly as many blocks as there are.
SMALL_GRID = 0.8
# A multiprocessor has four schedulers; fewer warps in all leave some of them without work.
FEWEST_THREADS = 4 * WARP
# Kernels that follow one another this closely could have run side by side.
CLOSE_NS = 100_000
# Of compute capability 7.5, and without tensor cores.
_NO_TENSOR_CORES = re.compile(r"GTX 16|\bMX[45]50\b|\bT(?:400|500|550|600|1000|1200|2000)\b")


@dataclass(frozen=True, slots=True)
class Gpu:
    """What must be known of a GPU; 0 where the capture does not say. `ncu`: ncu measures it."""

    sm_count: int = 0
    compute_major: int = 0
    name: str = ""
    ncu: bool = True

    @property
    def has_tensor_cores(self) -> bool:
        """Compute capability 7.0 on, but for the small GPUs of Turing, which have none."""
        return self.compute_major >= 7 and not _NO_TENSOR_CORES.search(self.name)


@dataclass(frozen=True, slots=True)
class Part:
    """Kernels that share a trait: their time in the window as a union and as work, in ns.

    `name` is the kernel of them with the most work, named_ns, `launches` how many they are.
    """

    busy_ns: int = 0
    work_ns: int = 0
    launches: int = 0
    name: str = ""
    detail: str = ""
    named_ns: int = 0
    start_ns: int = 0
    duration_ns: int = 0


@dataclass(frozen=True, slots=True)
class KernelUse:
    """The compute kernels of one device inside a window; without arguments there are none.

    `family` are the kernels made of one function's lambdas. `short` are those under 10 us.
    `first_tenth_ns` is when a tenth of the work was done, from the window's begin. `directives`:
    most of the work is in regions of OpenMP or OpenACC.
    """

    work_ns: int = 0
    launches: int = 0
    names: int = 0
    top: Part = Part()
    family: Part = Part()
    short: Part = Part()
    small_grid: Part = Part()
    tiny_block: Part = Part()
    fp32_gemm: Part = Part()
    elementwise: Part = Part()
    serial: Part = Part()
    serial_streams: int = 0
    first_tenth_ns: int = 0
    directives: bool = False


COLUMNS = ("blocks", "threads")


def gpu_of_kernels(gpu: Gpu, kernels: Frame, tool: str) -> Gpu:
    """A GPU whose architecture is not recorded with the oldest that the kernels' names allow, and
    whether ncu measures it; `tool` may name the runtime that drove it."""
    gpu = replace(gpu, ncu=measured_by_ncu(gpu.name, tool))
    if gpu.compute_major or not any(map(_SINCE_AMPERE.search, kernels.labels("name").values)):
        return gpu
    return replace(gpu, compute_major=AMPERE)


def kernel_use(
    kernels: Frame, communicates: NDArray[np.bool_], window: Spans, gpu: Gpu
) -> KernelUse:
    """The use of one device's kernels (names, times, stream, COLUMNS).

    `communicates` marks those that are communication; they are left out.
    """
    start, end = kernels.ints("start_ns"), kernels.ints("end_ns")
    work = measure_before(window, end)
    work -= measure_before(window, start)
    mine = (work > 0) & ~communicates
    launches = int(np.count_nonzero(mine))
    if not launches:
        return KernelUse()
    work[~mine] = 0
    names = kernels.labels("name").merged()
    by_name = np.bincount(names.codes, weights=work, minlength=len(names.values))
    top = int(np.argmax(by_name))
    blocks, threads = kernels.ints("blocks"), kernels.ints("threads")
    short = mine & (end - start < SHORT_NS)
    filled = SMALL_GRID * gpu.sm_count
    few_threads = (threads > 0) & (blocks * threads < filled * FEWEST_THREADS)
    small = mine & (blocks > 0) & ((blocks < filled) | few_threads)
    tiny = mine & (threads > 0) & (threads <= WARP)
    gemm = _matching(names, _FP32_GEMM if gpu.has_tensor_cores else None, _TENSOR)
    directives = work[_matching(names, _DIRECTIVES)].sum()
    tenth = _place_of_tenth(np.cumsum(work))

    def part(mask: NDArray[np.bool_], detail: Ints | None = None) -> Part:
        return _part(kernels, names, work, mask, window, detail)

    # what larger kernels run beside is not left unused
    others = mine & ~small
    alone = window - union(start[others], end[others]) if small.any() else window
    serial, streams = _serial_streams(kernels, small)

    return KernelUse(
        work_ns=int(work.sum()),
        launches=launches,
        names=int(np.count_nonzero(by_name)),
        top=part(mine & (names.codes == top)),
        family=_family(part, names, by_name, mine),
        short=part(short),
        small_grid=_part(kernels, names, work, small, alone, blocks),
        tiny_block=part(tiny, threads),
        fp32_gemm=part(mine & gemm),
        elementwise=part(mine & _matching(names, _ELEMENTWISE, _FUSED)),
        serial=part(serial),
        serial_streams=streams,
        first_tenth_ns=int(kernels.ints("start_ns")[tenth] - window.starts[0]),
        directives=bool(2 * directives > work.sum()),
    )


def short_cost_ns(
    kernels: Frame, communicates: NDArray[np.bool_], window: Spans, gaps: IdleIntervals
) -> int:
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


def _place_of_tenth(done: Ints) -> int:
    """Where a tenth of what is done in all was done."""
    return int(np.searchsorted(done, done[-1] / 10))


def _family(
    part: Callable[[NDArray[np.bool_]], Part],
    names: Labels,
    by_name: NDArray[Any],
    mine: NDArray[np.bool_],
) -> Part:
    """The kernels made of the lambdas of one function that have the most work; its name."""
    families = {
        code: match[1] for code, name in enumerate(names.values) if (match := _LAMBDA.search(name))
    }
    work: dict[str, float] = {}
    for code, family in families.items():
        work[family] = work.get(family, 0.0) + float(by_name[code])
    if not work:
        return Part()
    best = max(work, key=lambda family: (work[family], family))
    chosen = np.asarray([families.get(code) == best for code in range(len(names.values))])
    return replace(part(mine & chosen[names.codes]), name=best)


def _matching(
    names: Labels, pattern: re.Pattern[str] | None, but: re.Pattern[str] | None = None
) -> NDArray[np.bool_]:
    """The rows whose name has the one pattern and not the other."""
    return names.where(
        lambda name: (
            pattern is not None and bool(pattern.search(name)) and not (but and but.search(name))
        )
    )


def _part(
    kernels: Frame,
    names: Labels,
    work: Ints,
    mask: NDArray[np.bool_],
    window: Spans,
    detail: Ints | None,
) -> Part:
    rows = np.flatnonzero(mask)
    if not len(rows):
        return Part()
    codes, done = names.codes[rows], work[rows]
    weights = np.bincount(codes, weights=done, minlength=len(names.values))
    best = int(np.argmax(weights))
    named = np.flatnonzero(codes == best)
    at = int(named[np.argmax(done[named])])
    work_ns = int(done.sum())
    del codes, done, named  # as large as the kernels, as are the times
    start, end = kernels.ints("start_ns")[rows], kernels.ints("end_ns")[rows]
    return Part(
        busy_ns=(union(start, end) & window).total,
        work_ns=work_ns,
        launches=len(rows),
        name=names.values[best],
        named_ns=int(weights[best]),
        detail="" if detail is None else f"{int(detail[rows[at]]):,}",
        start_ns=int(start[at]),
        duration_ns=int(end[at] - start[at]),
    )


def _serial_streams(kernels: Frame, small: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], int]:
    """Kernels that leave most of the GPU free and follow closely one of another stream, alone.

    A mask, and on how many streams they ran; none where those are fewer than three.
    """
    rows = np.flatnonzero(small)
    mask = np.zeros(kernels.rows, dtype=np.bool_)
    stream = kernels.ints("stream")[rows]
    if not len(rows) or (stream == stream[0]).all():
        return mask, 0
    start, end = kernels.ints("start_ns")[rows], kernels.ints("end_ns")[rows]
    gap = start[1:] - np.maximum.accumulate(end)[:-1]
    follows = np.zeros(len(rows), dtype=np.bool_)
    follows[1:] = (gap >= 0) & (gap < CLOSE_NS) & (stream[1:] != stream[:-1])
    # and nothing begins before it ends
    follows[:-1] &= gap >= 0
    serial = rows[follows]
    streams = len(np.unique(stream[follows]))
    if streams < 3:
        return mask, 0
    mask[serial] = True
    return mask, streams
