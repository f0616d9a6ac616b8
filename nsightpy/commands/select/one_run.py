"""One run of the application for all kernels: the shortest stretch of launches with one of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nsightpy.analysis.selection.coverage import KernelChoice, ProfiledProcess, Selection
from nsightpy.analysis.selection.launch_places import Launches, Mask, standing
from nsightpy.analysis.selection.launch_window import shortest_window
from nsightpy.commands.select.offers import ReportOffers, launches_in
from nsightpy.commands.select.plan import NAME_COLUMNS, PlannedRun, names_of, window_run
from nsightpy.commands.select.settings import Criteria, NcuSettings
from nsightpy.errors import UsageError
from nsightpy.query.request import Request


def one_run_each(
    request: Request,
    criteria: Criteria,
    settings: NcuSettings,
    reports: Sequence[ReportOffers],
    selection: Selection,
) -> tuple[Selection, list[PlannedRun]]:
    """One run per process for all its choices, and the choices whose stretches the budget allows.

    A stretch holds more launches than choices, and all of them are profiled: the choices with the
    least time are left out until passes x launches is within the budget. Raises UsageError where
    no stretch holds them.
    """
    kept, budget = selection, criteria.budget
    used = {choice.unit.report for choice in selection.choices}
    steady = {part.report: part.steady for part in reports if part.report in used}
    launches = {}
    for report in (rank for rank in request.ranks if str(rank.path) in used):
        done, weighed, _ = launches_in(report, request.scope, steady[str(report.path)])
        launches[str(report.path)] = done, standing(done, weighed, criteria.warm_up)
    while True:
        runs = _runs(kept, settings.output, settings.form, launches)
        cost = kept.passes * sum(planned.run.count for planned in runs)
        if budget is None or cost <= budget:
            return kept, runs
        if len(kept.choices) == 1:
            raise UsageError(
                f"--budget {criteria.budget} is less than one run of {cost} passes takes"
            )
        kept = replace(
            kept,
            choices=kept.choices[:-1],
            over_budget=(kept.choices[-1], *kept.over_budget),
        )


def _runs(
    selection: Selection, output: str, form: str, launches: Mapping[str, tuple[Launches, Mask]]
) -> list[PlannedRun]:
    """The runs of a selection; `launches` has of each report all, and those that may stand."""
    homes: dict[ProfiledProcess, list[KernelChoice]] = {}
    for choice in selection.choices:
        homes.setdefault(choice.unit, []).append(choice)
    runs = []
    for place, (unit, choices) in enumerate(homes.items(), start=1):
        name = output if len(homes) == 1 else f"{output}_{place:02d}"
        planned = _stretch(*launches[unit.report], unit, choices, name, form)
        orders = tuple(selection.choices.index(choice) + 1 for choice in choices)
        runs.append(replace(planned, rows=orders))
    return runs


def _stretch(
    done: Launches,
    may_stand: Mask,
    unit: ProfiledProcess,
    choices: list[KernelChoice],
    output: str,
    form: str,
) -> PlannedRun:
    """The run of the shortest stretch, by the surest kind of name that all choices have."""
    named = [dict(names_of(choice.variant, form)) for choice in choices]
    window_runs = []
    for base in (base for base in named[0] if all(base in each for each in named)):
        window = shortest_window(
            done,
            unit.pid,
            [choice.variant for choice in choices],
            name=NAME_COLUMNS[base],
            may_stand=may_stand,
            typical_ns=[choice.samples[0].duration_ns for choice in choices],
        )
        if window is not None:
            window_runs.append(window_run(choices, window, base, output))
    if not window_runs:
        raise UsageError("these kernels do not fit into one run: leave out --one-run")
    return replace(window_runs[0], fallbacks=tuple(each.run for each in window_runs[1:]))
