"""What an inference engine's steps and its CUDA-graph launches took.

Steps are the annotations of vLLM (execute_NEW_context_N(...)_generation_M(...)) and SGLang
(step[DECODE bs=32], step[EXTEND bs=1 toks=888]); a context request is a prefill.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.intervals import measure_before, union
from nsightpy.analysis.launches import graph_calls
from nsightpy.analysis.nvtx.projection import launched, project, thread_key
from nsightpy.frames import Frame, Ints
from nsightpy.units import counted, format_time

_VLLM = re.compile(r"execute_(?:(\d+)_)?context_(\d+)\(([^)]*)\)_generation_(\d+)\(([^)]*)\)")
_SGLANG = re.compile(r"step\[(\w+) bs=(\d+)(?: toks=(\d+))?")
_QUERY = re.compile(r"(?:sq)?(\d+)")


@dataclass(frozen=True, slots=True)
class Batch:
    """What a step worked on: phase (prefill, decode, mixed), requests, tokens."""

    phase: str
    requests: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Step:
    """One step; times in ns: of its annotation on the host, of the union of its GPU work, and of
    the calls that launched it.

    `elapsed_ns`: from its begin to the end of that work, or to the begin of its thread's next step
    where that is earlier; None without work.
    """

    batch: Batch
    pid: int
    start_ns: int
    host_ns: int
    busy_ns: int
    launching_ns: int
    graph_launches: int
    operations: int
    elapsed_ns: int | None

    @property
    def tokens_per_s(self) -> float | None:
        return self.batch.tokens / (self.elapsed_ns * 1e-9) if self.elapsed_ns else None


@dataclass(frozen=True, slots=True)
class GraphLaunches:
    """For each launch of a CUDA graph: how many operations ran, from the first start to the last
    end, how long any of them ran, and how long the call took, in ns."""

    operations: Ints
    extent_ns: Ints
    busy_ns: Ints
    call_ns: Ints


def batch_of(name: str) -> Batch | None:
    """What an annotation says of its step; None for other names."""
    if match := _VLLM.match(name):
        context, generation = int(match[2]), int(match[4])
        query = _QUERY.match(match[3])
        prefilled = int(query[1]) if query and context else 0
        tokens = int(match[1]) if match[1] else prefilled + generation
        phase = "mixed" if context and generation else "prefill" if context else "decode"
        return Batch(phase, context + generation, tokens)
    if match := _SGLANG.match(name):
        decodes = "DECODE" in match[1].upper()
        phase = "decode" if decodes else "mixed" if "MIX" in match[1].upper() else "prefill"
        return Batch(phase, int(match[2]), int(match[3] or (match[2] if decodes else 0)))
    return None


def inference_steps(ranges: Frame, work: Frame, calls: Frame) -> list[Step]:
    """The steps among the ranges, by start; of nested annotations those of the engine's inner one.

    Frames with RANGE_COLUMNS, OPERATION_COLUMNS and CALL_COLUMNS and name.
    """
    names = ranges.labels("name").values
    inner = [code for code, name in enumerate(names) if _SGLANG.match(name)]
    wanted = inner or [code for code, name in enumerate(names) if _VLLM.match(name)]
    steps = ranges.take(np.isin(ranges.labels("name").codes, wanted))
    if not steps.rows:
        return []
    done = launched(work, calls)
    projection = project(steps, done)
    graphs = np.isin(done.call_start, graph_calls(calls).ints("start_ns"))
    start, end = work.ints("start_ns")[done.rows], work.ints("end_ns")[done.rows]
    names_of = steps.labels("name")
    ended, following = projection.end.tolist(), _begins_of_next(steps)
    found = []
    for row, (low, high) in enumerate(
        zip(projection.low.tolist(), projection.high.tolist(), strict=True)
    ):
        batch = batch_of(names_of[row])
        first, last = int(done.first[low]), int(done.first[high])
        if batch is None:
            continue
        begin = int(steps.ints("start_ns")[row])
        host = int(steps.ints("end_ns")[row]) - begin
        launching = int((done.call_end[low:high] - done.call_start[low:high]).sum())
        busy = union(start[first:last], end[first:last]).total
        count = int(graphs[low:high].sum())
        elapsed = min(ended[row], following[row]) - begin if last > first else None
        pid = int(steps.ints("pid")[row])
        found.append(Step(batch, pid, begin, host, busy, launching, count, last - first, elapsed))
    return found


def _begins_of_next(steps: Frame) -> list[int]:
    """When the next step of each one's thread begins, in ns; the last moment there is for none."""
    begins, following = [], dict[int, int]()
    threads, starts = thread_key(steps).tolist(), steps.ints("start_ns").tolist()
    for thread, start in zip(reversed(threads), reversed(starts), strict=True):
        begins.append(following.get(thread, np.iinfo(np.int64).max))
        following[thread] = start
    return begins[::-1]


def graph_launches(work: Frame, calls: Frame) -> GraphLaunches | None:
    """The CUDA-graph launches whose kernels were recorded; None without any."""
    done = launched(work, graph_calls(calls))
    if not len(done):
        return None
    start, end = work.ints("start_ns")[done.rows], work.ints("end_ns")[done.rows]
    count = np.diff(done.first)
    call = np.repeat(np.arange(len(done)), count)
    extent = done.end - done.start
    # each launch in a stretch of time of its own, so that one union serves all
    shift = call * (int(extent.max()) + 1) - done.start[call]
    covered = union(start + shift, end + shift)
    edges = np.arange(len(done) + 1) * (int(extent.max()) + 1)
    busy = np.diff(measure_before(covered, edges))
    return GraphLaunches(count, extent, busy, done.call_end - done.call_start)


def step_lines(steps: Sequence[Step]) -> list[str]:
    """One sentence for each phase: medians over its steps."""
    lines = []
    for phase in ("prefill", "decode", "mixed"):
        mine = [step for step in steps if step.batch.phase == phase]
        if not mine:
            continue
        host, busy, launching = (
            float(np.median([getattr(step, name) for step in mine]))
            for name in ("host_ns", "busy_ns", "launching_ns")
        )
        tokens = float(np.median([step.batch.tokens for step in mine]))
        graphs = float(np.median([step.graph_launches for step in mine]))
        operations = float(np.median([step.operations for step in mine]))
        launched = counted(round(graphs), "graph launch", "graph launches")
        lines.append(
            f"{counted(len(mine), f'{phase} step')}, median: {tokens:,.0f} tokens, "
            f"{format_time(busy)} of GPU time in {operations:,.0f} operations, {launched}, "
            f"{format_time(launching)} in launching calls, {format_time(host)} on the host."
        )
    return lines


def graph_lines(parts: Sequence[GraphLaunches]) -> list[str]:
    """One sentence about CUDA-graph launches."""
    if not parts:
        return []
    operations, extent, busy, call = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("operations", "extent_ns", "busy_ns", "call_ns")
    )
    middle = [float(np.median(values)) for values in (operations, busy, extent - busy, call)]
    text = (
        f"{counted(len(operations), 'CUDA-graph launch', 'CUDA-graph launches')}, median: "
        f"{middle[0]:,.0f} operations, {format_time(middle[1])} busy, {format_time(middle[2])} of "
        f"gaps between them, {format_time(middle[3])} in the call."
    )
    return [text]
