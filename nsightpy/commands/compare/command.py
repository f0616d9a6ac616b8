"""compare: is it slower, by how much, because of what, and can that be believed?"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeAlias, Unpack

from nsightpy.analysis.comparison.compare import compare_sides, gated, unit_of
from nsightpy.analysis.comparison.thresholds import FEWEST_RUNS
from nsightpy.analysis.comparison.verdicts import noise_floor
from nsightpy.commands.compare.runs import (
    OneRun,
    OpenRun,
    Runs,
    listed,
    open_run,
    same_kind,
    summaries,
)
from nsightpy.commands.findings.command import findings
from nsightpy.errors import NsightpyError, OutputError, UsageError
from nsightpy.query import Common, Option, Request, answer
from nsightpy.query.command import command
from nsightpy.readers.references import read_baseline
from nsightpy.results import Table
from nsightpy.results.comparison import COMPARE_FIELDS, GONE, NEW, ComparedSide, Comparison, Limits
from nsightpy.results.keys import KERNEL, RowKey
from nsightpy.results.run_summary import RunSummary
from nsightpy.units import format_time, parse_time_ns

_OBJECT, _LIST = {"type": ["object", "null"]}, {"type": "array", "items": {"type": "object"}}
Gate: TypeAlias = Annotated[
    str | float | None, Option("What a change must pass to be one: 3%.  [1%]", "SHARE")
]
Baseline: TypeAlias = Annotated[
    Path | str | None, Option("The side before, as --save-baseline kept it.", "FILE")
]
NewBaseline: TypeAlias = Annotated[
    Path | str | None, Option("Keep the last side's runs in a new file.", "FILE")
]
# The findings about each part of the time, beside that of the idle cause it is.
FINDINGS = {
    "exposed communication": ("exposed-communication", "straggler"),
    "copies alone": ("exposed-h2d", "exposed-d2h"),
}
# What the gains of findings are of, where they are of the unit that is compared.
WINDOWS = {"step": "steady", "window": "whole"}


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
        "markdown": "nsightpy.render.comparison.for_ci:comparison_markdown",
        "junit": "nsightpy.render.comparison.for_ci:comparison_junit",
    },
)
def compare(
    before: Runs,
    after: Runs | None = None,
    *,
    gate: Gate = None,
    gate_ns: Annotated[str | int | None, Option("And in time: 50us.  [1us]", "TIME")] = None,
    gate_on: Annotated[
        str | None, Option("Gate a kernel, range or collective.  [step]", "NAME")
    ] = None,
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
    opened = [[open_run(run, **common) for run in side] for side in sides]
    runs = [run for side in opened for run in side]
    same_kind([*kept, *runs])
    found, last = tuple(summaries(runs)), len(opened[-1])
    first = ComparedSide(found[:-last] or kept, str(baseline or ""))
    second = ComparedSide(found[-last:])
    if save_baseline is not None:
        _save(Path(save_baseline), second.runs, overwrite)
    if noise:
        return _noise(second.runs, limits)
    if not first.runs:
        notes = tuple(dict.fromkeys(note for run in second.runs for note in run.notes))
        empty = Comparison("compare", COMPARE_FIELDS, (), inputs=second.names, notes=notes)
        return replace(empty, after=second, unit=unit_of(second.runs), spread="nothing")
    result = compare_sides(first, second, limits)
    _require_common(result)
    if not baseline:
        result = replace(result, notes=(*promises(opened[0][0], result), *result.notes))
    if any(limit is not None for limit in (gate, gate_ns, gate_on)):
        result = gated(result, limits, gate_on, strict)
    return result.cut(top) if top else result


def _limits(gate: str | float | None, gate_ns: str | int | None) -> Limits:
    """The limits of a gate, else the usual ones; a share is "3%", "0.03" or 0.03. Raises
    UsageError."""
    limits = Limits()
    if gate_ns is not None:
        limits = replace(limits, absolute_ns=parse_time_ns(gate_ns))
    if limits.absolute_ns < 0:
        raise UsageError(f"--gate-ns {gate_ns}: a limit is not below zero")
    if gate is None:
        return limits
    text = str(gate).strip()
    try:
        value = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise UsageError(f"--gate {gate}: a limit is from 0 to below 100 %; write 3% or 0.03")
    return replace(limits, relative=value)


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


def _save(path: Path, runs: Sequence[RunSummary], overwrite: bool) -> None:
    from nsightpy.output.baseline import baseline_bytes
    from nsightpy.output.files import output_file

    for run in runs:
        if path.exists() and Path(run.name).exists() and path.samefile(run.name):
            raise OutputError(path, "is one of the reports", "give another file.")
    with output_file(path, force=overwrite) as file:
        file.write(baseline_bytes(runs))


def _noise(runs: Sequence[RunSummary], limits: Limits) -> Comparison:
    """Every other run against the ones between, and the floor of all such halves."""
    halves = compare_sides(ComparedSide(tuple(runs[::2])), ComparedSide(tuple(runs[1::2])), limits)
    floor = noise_floor([run.units[halves.unit].duration_ns for run in runs])
    few = f"{len(runs)} runs divide in few ways: the floor is rough; ten runs say more."
    notes = [few] if len(runs) < 2 * FEWEST_RUNS else []
    return replace(halves, noise=floor, notes=(*notes, *halves.notes))


def _require_common(comparison: Comparison) -> None:
    """Raise NsightpyError where the sides share no kernel, and no opaque graph hides any."""
    opaque = any(part.name == "opaque CUDA graphs" for part in comparison.parts)
    common = any(kernel.verdict not in (NEW, GONE) for kernel in comparison.kernels)
    if comparison.kernels and not (common or opaque):
        names = [", ".join(side.names[:2]) for side in (comparison.before, comparison.after)]
        raise NsightpyError(
            f"{names[0]} and {names[1]} have no kernel in common: they are not runs of one program."
            "\n  `nsightpy kernels` lists what each of them ran."
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
        names = (f"idle: {row['id']}", *(name for name, of in FINDINGS.items() if row["id"] in of))
        part, gain = next((name for name in names if name in less), None), row["gain_ns"]
        if part is not None and isinstance(gain, int) and row["window"] == WINDOWS[unit]:
            yield (
                f"A replay of {run.name} without {row['id']} promised {format_time(gain)} less a "
                f"{unit}: {part} now takes {format_time(less[part])} less, and the {unit} {change}."
            )
