"""What a replay of a run before had promised for what takes less time after."""

from __future__ import annotations

from collections.abc import Iterator

from nsightpy.commands.compare.runs import OpenRun
from nsightpy.commands.findings.command import findings
from nsightpy.errors import NsightpyError
from nsightpy.query.engine import answer
from nsightpy.query.request import Request
from nsightpy.results import Table
from nsightpy.results.comparison import Comparison
from nsightpy.units import format_time

# The findings about each part of the time, beside that of the idle cause it is.
FINDINGS = {
    "exposed communication": ("exposed-communication", "straggler"),
    "copies alone": ("exposed-h2d", "exposed-d2h"),
}
# What the gains of findings are of, where they are of the unit that is compared.
WINDOWS = {"step": "steady", "window": "whole"}
PROMISED = (
    "A replay of {run} without {finding} promised {gain} less a {unit}: {part} now takes {less} "
    "less, and the {unit} {change}."
)


def promises(run: OpenRun, comparison: Comparison) -> Iterator[str]:
    """A sentence for each finding of a run before whose part of the unit has become smaller."""
    unit, step = comparison.unit, comparison.step
    least = comparison.limits.at(step.before_ns or 0)
    less = {part.name: -part.delta_ns for part in comparison.parts if -part.delta_ns > least}
    if unit not in WINDOWS or not less or not isinstance(run.reports, Request):
        return
    try:
        found: Table = answer(run.reports, findings.question())
    except NsightpyError:
        return
    change = f"{format_time(abs(step.delta_ns))} {'less' if step.delta_ns < 0 else 'more'}"
    for row in found.records():
        known = (
            f"idle: {row['id']}",
            *(name for name in less if row["id"] in FINDINGS.get(name, ())),
        )
        part = next((name for name in known if name in less), None)
        gain = row["gain_ns"]
        if part is None or not isinstance(gain, int) or row["window"] != WINDOWS[unit]:
            continue
        yield PROMISED.format(
            run=run.name,
            finding=row["id"],
            gain=format_time(gain),
            unit=unit,
            part=part,
            less=format_time(less[part]),
            change=change,
        )
