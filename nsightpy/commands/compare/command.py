"""compare: is it slower, by how much, because of what, and can that be believed?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from nsightpy.analysis.comparison.compare import compare_sides, unit_of
from nsightpy.analysis.comparison.gate import gated, noise_floor
from nsightpy.analysis.comparison.statistics import FEWEST_RUNS
from nsightpy.commands.compare.runs import (
    OneRun,
    OpenRun,
    Runs,
    listed,
    open_runs,
    same_kind,
    summaries,
)
from nsightpy.errors import NsightpyError, OutputError, UsageError
from nsightpy.query.request import Common
from nsightpy.query.signature import command_function
from nsightpy.readers.baseline import read_baseline
from nsightpy.results.comparison import COMPARE_FIELDS, ComparedSide, Comparison, Limits
from nsightpy.results.run_summary import RunSummary
from nsightpy.units import checked_time_ns

FIELDS = COMPARE_FIELDS
_OBJECT, _LIST = {"type": ["object", "null"]}, {"type": "array", "items": {"type": "object"}}
# What its document holds beside rows; see Comparison.members.
MEMBERS = {
    **{name: {"type": "string"} for name in ("unit", "spread")},
    **dict.fromkeys(("limits", "gate", "noise"), _OBJECT),
    "runs_needed": {"type": ["integer", "null"]},
    **dict.fromkeys(("circumstances", "details", "next_steps"), _LIST),
}
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", re.ASCII)
SAME_FILE = "{name} is on both sides: a run is the same as itself."


@command_function
def compare(
    before: Runs,
    after: Runs | None = None,
    *,
    gate: str | float | None = None,
    gate_ns: str | int | None = None,
    gate_on: str | None = None,
    strict: bool = False,
    noise: bool = False,
    baseline: Path | str | None = None,
    save_baseline: Path | str | None = None,
    overwrite: bool = False,
    **common: Unpack[Common],
) -> Comparison:
    """Runs before against runs after: each a report, or a folder as one rank set; times in ns.

    Compared is the step where all runs have iterations, else what repeats in all of them, else the
    window; of ncu reports launches.
    `before` and `after` are one run or several. With `baseline`, a file, they are the runs of that
    file, and the first argument is what came `after`. `gate` ("3%" or 0.03) and `gate_ns` (50_000,
    "50us") are what a change must pass to be one, and what must not be passed: `result.gate` tells
    whether the step is slower, or what `gate_on` names; `strict`: fails, too, where one cannot
    tell. `noise` compares halves of the runs with each other and gives the floor for a gate.
    `save_baseline` is a file for the last side's runs, a new one but with `overwrite`; one side
    alone is only kept. The
    statistics are those of docs/comparison.md. Raises UsageError, ReportError for unreadable
    reports, NsightpyError for runs without GPU work or with nothing in common.
    """
    limits = _limits(gate, gate_ns)
    sides = _sides(listed(before), listed(after), noise=noise, baseline=baseline is not None)
    kept = read_baseline(baseline) if baseline is not None else ()
    opened = [open_runs(side, **common) for side in sides]
    names = [(run.name, run.kind) for side in opened for run in side]
    same_kind([*((run.name, run.kind) for run in kept), *names])
    side_runs = _summaries(opened, kept, every=save_baseline is not None)
    if save_baseline is not None:
        _save(Path(save_baseline), side_runs[-1], overwrite)
    if noise:
        return _noise(side_runs[0], limits)
    if len(side_runs) + bool(kept) < 2:
        return _kept(side_runs[0])
    first = ComparedSide(kept, str(baseline)) if kept else ComparedSide(tuple(side_runs[0]))
    result = compare_sides(first, ComparedSide(tuple(side_runs[-1])), limits)
    _require_common(result)
    result = _noted(result, opened)
    if gate is None and gate_ns is None and gate_on is None:
        return result
    return gated(result, limits, gate_on, strict)


def _limits(gate: str | float | None, gate_ns: str | int | None) -> Limits:
    """The limits of a gate, else the usual ones. Raises UsageError."""
    usual = Limits()
    absolute = None if gate_ns is None else checked_time_ns(gate_ns)
    if absolute is not None and absolute < 0:
        raise UsageError(f"--gate-ns {gate_ns}: a limit is not below zero")
    return Limits(
        usual.relative if gate is None else _share(gate),
        usual.absolute_ns if absolute is None else absolute,
    )


def _share(gate: str | float) -> float:
    """A share from "3%", "0.03" or 0.03."""
    value = 0.0 if isinstance(gate, str) else gate
    if isinstance(gate, str):
        match = _PERCENT.fullmatch(gate)
        if match is None:
            raise UsageError(f"--gate {gate!r} is no limit: write 3% or 0.03")
        value = float(match[1]) / (100.0 if match[2] else 1.0)
    if not 0 <= value < 1:
        raise UsageError(f"--gate {gate}: a limit is from 0 to below 100 %; write 3% or 0.03")
    return float(value)


def _sides(
    first: list[OneRun], second: list[OneRun], *, noise: bool, baseline: bool
) -> list[list[OneRun]]:
    """The sides that are to be read. Raises UsageError."""
    if noise and (second or baseline):
        raise UsageError("--noise compares runs of one thing with each other: give one side")
    if baseline and second and first:
        raise UsageError("--baseline is the side before: give the runs after it only")
    sides = [side for side in (first, second) if side]
    if not sides:
        raise UsageError("no runs given: nsightpy compare BEFORE... -- AFTER...")
    if noise and len(first) < 2:
        raise UsageError("--noise needs two runs of the same thing at least; ten say more")
    return sides


def _summaries(
    sides: Sequence[Sequence[OpenRun]], kept: Sequence[RunSummary], *, every: bool
) -> list[list[RunSummary]]:
    """The summaries of all runs, side by side; all are read in one go."""
    all_runs = summaries([run for side in sides for run in side], kept, every=every)
    first = len(sides[0])
    return [all_runs[:first], all_runs[first:]] if len(sides) > 1 else [all_runs]


def _save(path: Path, runs: Sequence[RunSummary], overwrite: bool) -> None:
    from nsightpy.output.baseline import baseline_bytes
    from nsightpy.output.files import output_file

    for run in runs:
        if path.exists() and Path(run.name).exists() and path.samefile(run.name):
            raise OutputError(path, "is one of the reports", "give another file.")
    with output_file(path, force=overwrite) as file:
        file.write(baseline_bytes(runs))


def _kept(runs: Sequence[RunSummary]) -> Comparison:
    """What one side alone gives: its runs, compared with nothing."""
    side = ComparedSide(tuple(runs))
    notes = tuple(dict.fromkeys(note for run in runs for note in run.notes))
    return Comparison(
        "compare",
        COMPARE_FIELDS,
        (),
        inputs=side.names,
        notes=notes,
        after=side,
        unit=unit_of(runs),
        spread="nothing",
    )


def _noise(runs: Sequence[RunSummary], limits: Limits) -> Comparison:
    """Every other run against the ones between, and the floor of all such halves."""
    halves = compare_sides(ComparedSide(tuple(runs[::2])), ComparedSide(tuple(runs[1::2])), limits)
    floor = noise_floor([run.units[halves.unit].duration_ns for run in runs])
    notes = halves.notes
    if len(runs) < 2 * FEWEST_RUNS:
        notes = (
            f"{len(runs)} runs divide in few ways: the floor is rough; ten runs say more.",
            *notes,
        )
    return replace(halves, noise=floor, notes=notes)


def _require_common(comparison: Comparison) -> None:
    """Raise NsightpyError where no kernel of one side is one of the other."""
    if (
        any(kernel.before_names and kernel.after_names for kernel in comparison.kernels)
        or not comparison.kernels
    ):
        return
    names = [", ".join(side.names[:2]) for side in (comparison.before, comparison.after)]
    raise NsightpyError(
        f"{names[0]} and {names[1]} have no kernel in common: they are not runs of one program.\n"
        "  `nsightpy kernels` lists what each of them ran."
    )


def _noted(comparison: Comparison, sides: Sequence[Sequence[OpenRun]]) -> Comparison:
    """The comparison with a note where a run is on both sides."""
    if len(sides) < 2:
        return comparison
    first, second = ({Path(run.name).resolve() for run in side} for side in sides)
    notes = [SAME_FILE.format(name=path.name) for path in sorted(first & second)]
    return replace(comparison, notes=(*notes, *comparison.notes))
