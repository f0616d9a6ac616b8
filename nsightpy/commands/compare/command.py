"""compare: is it slower, by how much, because of what, and can that be believed?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeAlias, Unpack

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
from nsightpy.query.command import command
from nsightpy.query.options import Common, Option
from nsightpy.readers.baseline import read_baseline
from nsightpy.results.comparison import COMPARE_FIELDS, ComparedSide, Comparison, Limits
from nsightpy.results.keys import KERNEL, RowKey
from nsightpy.results.run_summary import RunSummary
from nsightpy.units import checked_time_ns

_OBJECT, _LIST = {"type": ["object", "null"]}, {"type": "array", "items": {"type": "object"}}
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", re.ASCII)
Gate: TypeAlias = Annotated[
    str | float | None, Option("What a change must pass to be one: 3%.  [1%]", "SHARE")
]
GateTime: TypeAlias = Annotated[str | int | None, Option("And in time: 50us.  [1us]", "TIME")]
GateName: TypeAlias = Annotated[
    str | None, Option("Gate a kernel, range or collective.  [step]", "NAME")
]
Baseline: TypeAlias = Annotated[
    Path | str | None, Option("The side before, as --save-baseline kept it.", "FILE")
]
NewBaseline: TypeAlias = Annotated[
    Path | str | None, Option("Keep the last side's runs in a new file.", "FILE")
]
SAME_FILE = "{name} is on both sides: a run is the same as itself."


@command(
    *COMPARE_FIELDS,
    keys=(RowKey(KERNEL, ("name",), only=("section", "kernel")),),
    members={
        **{name: {"type": "string"} for name in ("unit", "spread")},
        **dict.fromkeys(("limits", "gate", "noise"), _OBJECT),
        "runs_needed": {"type": ["integer", "null"]},
        **dict.fromkeys(("circumstances", "details", "next_steps"), _LIST),
    },
    text="nsightpy.render.comparison.text:print_comparison",
    picture="nsightpy.render.comparison.plot:comparison_figure",
    formats={
        "markdown": "nsightpy.render.comparison.markdown:comparison_markdown",
        "junit": "nsightpy.render.comparison.junit:comparison_junit",
    },
)
def compare(
    before: Runs,
    after: Runs | None = None,
    *,
    gate: Gate = None,
    gate_ns: GateTime = None,
    gate_on: GateName = None,
    strict: Annotated[bool, Option("A gate that cannot tell fails, too.")] = False,
    noise: Annotated[bool, Option("Runs of one thing: the floor for a gate.")] = False,
    baseline: Baseline = None,
    save_baseline: NewBaseline = None,
    overwrite: Annotated[bool, Option("Over an older one of that name.", typed="")] = False,
    top: Annotated[
        int | None, Option("First N kernels, collectives and ranges; 0 is all.", "N", least=0)
    ] = None,
    **common: Unpack[Common],
) -> Comparison:
    """Each run is a report, or a folder as one rank set; four runs a side or more tell most.

    Compared is the step where all runs have iterations, else what repeats in all of them, else the
    window; of ncu reports launches. With a gate the exit code is 3, and `gate.failed` is true,
    where the step (or --gate-on) is slower beyond both limits and its interval. --noise compares
    halves of the runs with each other. The statistics are those of docs/comparison.md.

    \b
      nsightpy compare before.nsys-rep after.nsys-rep
      nsightpy compare --gate 3% before/run* -- after/run*
      nsightpy compare --save-baseline base.json run*
      nsightpy compare --baseline base.json --gate 3% run*
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
    if any(limit is not None for limit in (gate, gate_ns, gate_on)):
        result = gated(result, limits, gate_on, strict)
    return result.cut(top) if top else result


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
