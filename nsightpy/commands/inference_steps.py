"""inference-steps: what each step of an inference engine took on the host and on the GPU."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from nsightpy.analysis.nvtx.projection import CALL_COLUMNS, OPERATION_COLUMNS, RANGE_COLUMNS
from nsightpy.analysis.operators import inference
from nsightpy.analysis.operators.inference import Step, step_lines
from nsightpy.frames import GPU_FRAMES, Frame
from nsightpy.query.common_clock import common_clock
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Row, Table, fields_in

FIELDS = (
    Field("rank", "id"),
    Field("step", "id"),
    Field("phase", "text", own=True),
    Field("requests"),
    Field("tokens"),
    *fields_in("ns", "start_ns", "host_ns", "busy_ns", "launching_ns"),
    Field("graph_launches"),
    Field("operations"),
    Field("tokens_per_s", "per s", 1),
    Field("elapsed_ns", "ns"),
)


@command_function
def inference_steps(reports: Paths, *, top: int | None = None, **common: Unpack[Common]) -> Table:
    """The annotated steps of vLLM and SGLang in time order: tokens, host and GPU time; in ns.

    busy: for how long any operation ran that the step launched. launching: the length of the calls
    that launched them. elapsed: from the step's begin to the end of the work that it launched, or
    to the begin of its thread's next step where that is earlier; tokens_per_s: tokens over it.
    Notes give the medians of prefill, decode and mixed steps.
    """
    request = Request.of(reports, **common)
    results = request.map(partial(_steps, scope=request.scope), ranked=True).results
    clock = common_clock(request.ranks)
    rows = [
        _row(step, rank, place, clock.moment(str(report.path), step.pid, step.start_ns))
        for report, (steps, ranks) in results
        for place, (step, rank) in enumerate(zip(steps, ranks, strict=True), 1)
    ]
    rows.sort(key=lambda row: (int(row[5] or 0), str(row[0])))
    notes = step_lines([step for _, (steps, _) in results for step in steps])
    return request.finish(Table("inference-steps", FIELDS, tuple(rows)).first(top), *notes)


def _steps(report: SystemReport, *, scope: Scope) -> tuple[list[Step], list[int | None]]:
    ranges = scope.narrow(report, report.frame("nvtx_ranges", RANGE_COLUMNS))
    work = [scope.narrow(report, report.frame(name, OPERATION_COLUMNS)) for name in GPU_FRAMES]
    calls = report.frame("api_calls", (*CALL_COLUMNS, "name"))
    steps = inference.inference_steps(ranges, Frame.concatenate(work), calls)
    return steps, [report.rank_of(step.pid)[0] for step in steps]


def _row(step: Step, rank: int | None, place: int, start_ns: int) -> Row:
    batch = step.batch
    figures = (step.busy_ns, step.launching_ns, step.graph_launches, step.operations)
    about = (batch.phase, batch.requests, batch.tokens)
    return (
        rank,
        place,
        *about,
        start_ns,
        step.host_ns,
        *figures,
        step.tokens_per_s,
        step.elapsed_ns,
    )
