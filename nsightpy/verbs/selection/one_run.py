"""One run of the application for all kernels: the shortest stretch of launches with one of each."""

from __future__ import annotations

from dataclasses import replace

from nsightpy.analysis.selection.coverage import Choice, Selection, Unit
from nsightpy.analysis.selection.launch_places import warm
from nsightpy.analysis.selection.launch_window import shortest_window
from nsightpy.errors import UsageError
from nsightpy.verbs.request import Request
from nsightpy.verbs.selection.offers import Wanted, launches_in, steady_of
from nsightpy.verbs.selection.plan import NAME_COLUMNS, PlannedRun, names_of, window_run


def one_run_each(
    request: Request, wanted: Wanted, selection: Selection, output: str, form: str
) -> list[PlannedRun]:
    """One run per process for all its choices. Raises UsageError where no stretch holds them."""
    homes: dict[Unit, list[Choice]] = {}
    for choice in selection.choices:
        homes.setdefault(choice.unit, []).append(choice)
    runs = []
    for place, (unit, choices) in enumerate(homes.items(), start=1):
        name = output if len(homes) == 1 else f"{output}_{place:02d}"
        planned = _stretch(request, wanted, unit, choices, name, form)
        orders = tuple(selection.choices.index(choice) + 1 for choice in choices)
        runs.append(replace(planned, rows=orders))
    return runs


def _stretch(
    request: Request, wanted: Wanted, unit: Unit, choices: list[Choice], output: str, form: str
) -> PlannedRun:
    """The run of the shortest stretch, by the surest kind of name that all choices have."""
    report = next(one for one in request.ranks if str(one.path) == unit.report)
    done, weighed, _ = launches_in(report, wanted, steady_of(report, wanted))
    named = [dict(names_of(choice.variant, form)) for choice in choices]
    found = []
    for base in (base for base in named[0] if all(base in each for each in named)):
        window = shortest_window(
            done,
            unit.pid,
            [choice.variant for choice in choices],
            name=NAME_COLUMNS[base],
            may_stand=weighed & warm(done, wanted.warm_up),
            typical_ns=[choice.samples[0].duration_ns for choice in choices],
        )
        if window is not None:
            found.append(window_run(choices, window, base, output))
    if not found:
        raise UsageError("these kernels do not fit into one run: leave out --one-run")
    return replace(found[0], fallbacks=tuple(each.run for each in found[1:]))
