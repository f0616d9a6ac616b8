"""Running a plan here: ncu in the chosen ranks, the bare application in all others."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nsightpy.commands.select.plan import Plan, PlannedRun
from nsightpy.errors import ToolFailedError
from nsightpy.ncu_command import Options, Run, argv
from nsightpy.readers.ncu.run import NcuOutcome, available, failure, remedy, run_ncu
from nsightpy.readers.nsys.rank_keys import RANK_KEYS
from nsightpy.readers.tools.nvidia_tools import Tool, find_tool
from nsightpy.readers.tools.signals import signals_raise
from nsightpy.readers.tools.tool_run import run_tool
from nsightpy.results import Field, Table, Value
from nsightpy.units import counted

FIELDS = (
    Field("order", "text"),
    Field("name", "text"),
    Field("form", "text"),
    Field("profiled"),
    Field("passes"),
    Field("report", "text"),
)


@dataclass(frozen=True, repr=False)
class NcuOutcomes(Table):
    """What was run: one row per run of ncu; `reports` are the files to read."""

    reports: tuple[Path, ...] = ()


def run_plan(
    plan: Plan,
    *,
    report_progress: Callable[[str], None] | None = None,
    csv_folder: Path | None = None,
) -> NcuOutcomes:
    """Run the commands of a plan one after another, in this rank, and say what came of each.

    A run that matches nothing is tried again with the next way to name the kernel; not in a rank
    of a launcher, where the others would start their next run meanwhile. With
    `csv_folder` ncu writes no reports: its CSV pages go there. Raises ToolNotFoundError and
    ToolFailedError; its message names the remedy where one is known.
    """
    tool = find_tool("ncu")
    options = replace(plan.options, version=tool.version, csv=csv_folder is not None)
    rank = own_rank(os.environ)
    if options.rank_variable not in os.environ:
        options = replace(options, rank_variable="")
    rows: list[tuple[Value, ...]] = []
    reports: list[Path] = []
    notes: list[str] = []
    with signals_raise():
        for place, planned in enumerate(plan.runs, start=1):
            if rank is not None and planned.run.ranks and rank not in planned.run.ranks:
                _untouched(options.application)
                continue
            if report_progress is not None:
                report_progress(f"run {place} of {len(plan.runs)}: {planned.title}")
            keep = None if csv_folder is None else csv_folder / f"{planned.run.output}.csv"
            ways = [planned.run, *(planned.fallbacks if rank is None else ())]
            if rank is not None and not options.rank_variable:
                ways = [replace(run, output=f"{run.output}_{rank}") for run in ways]
            form, outcome = _attempts(tool, ways, options, report_progress, keep)
            made = keep if keep is not None else outcome.report
            reports += [made] if made is not None else []
            rows.append(_row(planned, form, outcome, made))
            notes += _doubts(outcome, planned)
    if reports and csv_folder is None:
        files = shlex.join(["--ncu", *map(str, reports)])
        notes.append(f"Next: nsightpy headroom {shlex.join(plan.inputs)} {files}")
    return NcuOutcomes(
        "select", FIELDS, tuple(rows), plan.inputs, tuple(notes), reports=tuple(reports)
    )


def own_rank(environment: Mapping[str, str]) -> int | None:
    """The rank that the launcher gave this process, if any."""
    values = (environment.get(name, "") for name in RANK_KEYS)
    return next((int(value) for value in values if value.isdecimal()), None)


def _attempts(
    tool: Tool,
    ways: Sequence[Run],
    options: Options,
    report_progress: Callable[[str], None] | None,
    keep: Path | None,
) -> tuple[str, NcuOutcome]:
    """The outcome of the first way to name the kernel that matches, and which it was."""
    outcome = None
    for run in ways:
        outcome = run_ncu(tool, argv(run, options)[1:], on_output=report_progress, keep=keep)
        if outcome.matched:
            return run.kernels.base, outcome
        if report_progress is not None:
            report_progress(f"no kernel matched by its {run.kernels.base} name")
    if outcome is None:
        raise ValueError("a run has a way to name its kernel")
    names = available(outcome.output)
    error = failure(tool, outcome.returncode, outcome.output)
    there = f" ncu saw {counted(len(names), 'kernel')}: {', '.join(names[:5])}." if names else ""
    raise ToolFailedError(error.path, error.problem, remedy(outcome.output) + there)


def _row(
    planned: PlannedRun, form: str, outcome: NcuOutcome, report: Path | None
) -> tuple[Value, ...]:
    return (
        ",".join(map(str, planned.rows)),
        planned.expected[0][0].name,
        form,
        len(outcome.profiled),
        max((passes for _, passes in outcome.profiled), default=0) or None,
        None if report is None else str(report),
    )


def _doubts(outcome: NcuOutcome, planned: PlannedRun) -> list[str]:
    notes = []
    if outcome.returncode:
        notes.append(
            f"{planned.run.output}: the application ended with an error "
            f"(ncu's code {outcome.returncode}); what was profiled before is kept."
        )
    if len(outcome.profiled) < planned.run.count:
        notes.append(
            f"{planned.run.output}: {len(outcome.profiled)} of {planned.run.count} launches were "
            "profiled: the application ended early, or launches in another order."
        )
    return notes


def _untouched(application: Sequence[str]) -> None:
    run = run_tool(list(application))
    if run.returncode:
        raise ToolFailedError(application[0], f"ended with code {run.returncode}")
