"""What a comparison says in words: the sides, what differs, the verdict, the gate.

Nothing is cut and nothing is escaped here but control characters: each renderer does what its
format needs.
"""

import math
from dataclasses import replace

from nsightpy.names import file_name
from nsightpy.output.escape import printable
from nsightpy.results.comparison import (
    CANNOT_TELL,
    FASTER,
    LAUNCH_SPREAD,
    LEAST_SHARE,
    SAME,
    SLOWER,
    ComparedQuantity,
    ComparedSide,
    Comparison,
    GateOutcome,
    NoiseFloor,
)
from nsightpy.units import counted, format_time, significant, time_unit_for

# The circumstance that the sides launch different numbers of kernels.
OTHER_WORK = "kernels a window"
# What an answer is about, by the unit that is compared.
_SUBJECTS = {
    "step": "The step",
    "repetition": "What repeats (no steps found)",
    "window": "The window (no steps found)",
    "launch": "The sum of all launches",
}


def time_change(before: float | None, after: float | None) -> str:
    """Two times in one unit: 41.2 -> 44.5 ms."""
    times = [value for value in (before, after) if value is not None]
    unit, scale = time_unit_for(times)
    delta = abs((after or 0) - (before or 0)) / scale
    digits = 3
    if len(times) == 2 and delta and len({significant(v / scale, digits) for v in times}) == 1:
        digits += 1
    old, new = (
        "-" if value is None else significant(value / scale, digits) for value in (before, after)
    )
    return f"{old} -> {new} {unit}"


def percent_change(ratio: float | None) -> str:
    """A ratio as a change in per cent: +7.9 %."""
    return "-" if ratio is None else f"{_change(ratio)} %"


def interval(quantity: ComparedQuantity) -> str:
    """The interval of its change: +7.1 to +8.7 %; - where there is none."""
    low, high = quantity.ratio_low, quantity.ratio_high
    return "-" if low is None or high is None else f"{_change(low)} to {_change(high)} %"


def _change(ratio: float) -> str:
    change = 100 * (ratio - 1)
    decimals = 0 if abs(change) >= 9.95 else 1 if abs(change) >= 0.095 else 2
    text = f"{change:+.{decimals}f}"
    return text if float(text) else "0"


def side_name(side: ComparedSide) -> str:
    """The file or folder of a side's first run, or its baseline, and how many more there are."""
    if side.baseline:
        return printable(file_name(side.baseline))
    if not side.runs:
        return "nothing"
    names = list(map(file_name, side.names))
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return printable(f"{names[0]}{more}")


def side_size(side: ComparedSide, unit: str) -> str:
    """How many runs a side has, and of how many units: 5 runs of 20 steps."""
    counts = [run.units[unit].count for run in side.runs if unit in run.units]
    runs = counted(len(side.runs), "run")
    if unit not in ("step", "repetition") or not counts:
        return runs
    low, high = min(counts), max(counts)
    steps = counted(low, unit) if low == high else f"{low} to {counted(high, unit)}"
    return f"{runs} of {steps}"


def differences(result: Comparison) -> list[str]:
    """What differs between the sides: clocks 1980 MHz -> 1755 MHz."""
    return [
        printable(f"{each.name} {each.before or 'unknown'} -> {each.after or 'unknown'}")
        for each in result.circumstances
    ]


def circumstances(result: Comparison) -> list[tuple[str, str]]:
    """What all runs of both sides ran on and with, GPUs first, and what differs; with its label."""
    runs = [*result.before.runs, *result.after.runs]
    first = runs[0].circumstances if runs else {}
    alike = [
        printable(f"{name} {first[name].removeprefix(name).lstrip()}")
        for name in sorted(first, key=lambda name: name != "GPU")
        if first[name] and all(run.circumstances.get(name) == first[name] for run in runs)
    ]
    different = "; ".join(differences(result)) or "nothing that the reports record"
    return [*([("Both", "; ".join(alike))] if alike else []), ("Differs", different)]


def unit_name(result: Comparison) -> str:
    """What a side's time is of: step, window, all launches."""
    return "all launches" if result.unit == "launch" else result.unit


def answer(result: Comparison) -> str:
    """The step in a sentence: by how much it changed, and from what to what."""
    step, subject = result.step, _SUBJECTS[result.unit]
    times = time_change(step.before_ns, step.after_ns)
    change = percent_change(step.ratio)
    if step.verdict in (SLOWER, FASTER):
        return f"{subject} is {step.verdict} by {change.lstrip('+-')}: {times}"
    if step.verdict == SAME:
        return f"{subject} takes the same time: {times}, {change}"
    return f"Cannot tell whether {subject[0].lower()}{subject[1:]} changed: {times}, {change}"


def confidence(result: Comparison) -> str:
    """How sure that is: the interval and what it is made of, p, the limits, the runs needed."""
    step = result.step
    sure = "" if result.spread == "nothing" else "95 % "
    spread = f"{sure}interval {interval(step)} {_spread(result)}"
    parts = ["one value a side, so no interval" if step.ratio_low is None else spread]
    if step.p_value is not None:
        parts.append(f"p = {significant(step.p_value, 2)}")
    limits = result.limits
    least = f"{100 * limits.relative:g} % and {format_time(limits.absolute_ns)}"
    parts.append(f"limits {least}, for its parts also {100 * LEAST_SHARE:g} % of it")
    if result.unit == "window" and OTHER_WORK in {each.name for each in result.circumstances}:
        parts.append("the windows do not hold the same work")
    if step.verdict == CANNOT_TELL and step.runs_needed:
        parts.append(f"{counted(step.runs_needed, 'run')} a side would tell")
    return "; ".join(parts)


def _spread(result: Comparison) -> str:
    before, after = len(result.before.runs), len(result.after.runs)
    sizes = f"{before} and {after} runs"
    if before == after:
        sizes = f"{counted(before, 'run') if before > 1 else 'one run'} a side"
    if result.spread == "runs":
        return f"over {sizes}"
    if result.spread == "nothing":
        return f"if each measurement is within {100 * LAUNCH_SPREAD:g} %"
    return f"over the {result.unit}s of {sizes} (the runs' own spread is not covered)"


def gate_line(gate: GateOutcome) -> str:
    """What became of a gate, and why."""
    word = "failed" if gate.failed else "cannot tell" if gate.verdict == CANNOT_TELL else "held"
    return f"{word}: {printable(gate.reason)}"


def noise_runs(result: Comparison) -> str:
    """The runs that were compared with each other."""
    whole = replace(result.before, runs=(*result.before.runs, *result.after.runs))
    return f"{side_name(whole)}, {side_size(whole, result.unit)}"


def noise_line(noise: NoiseFloor) -> str:
    """The floor that A against A shows."""
    return (
        f"{significant(100 * noise.relative, 2)} % and {format_time(noise.absolute_ns)}, from "
        f"{counted(noise.runs, 'run')}: halves of them differ by no more (95 %)"
    )


def gate_options(noise: NoiseFloor) -> str:
    """The floor as options, rounded up so that the floor itself holds."""
    relative = math.ceil(1000 * noise.relative - 1e-9) / 10
    unit, scale = time_unit_for([noise.absolute_ns])
    tenths = math.ceil(10 * noise.absolute_ns / scale - 1e-9) / 10
    return f"--gate {relative:g}% --gate-ns {tenths:g}{unit}"


def shown_parts(result: Comparison) -> list[ComparedQuantity]:
    """The parts that take any time worth printing, and then what they add up to."""
    least = LEAST_SHARE * (result.step.before_ns or result.step.after_ns or 0)
    parts = [p for p in result.parts if max(p.before_ns or 0, p.after_ns or 0) >= max(least, 1)]
    return [*parts, result.step]


def contributors(result: Comparison) -> list[ComparedQuantity]:
    """Kernels and collectives, the greatest change first: they lie within the parts.

    Where there are collectives, their kernels are not named a second time.
    """
    named = bool(result.collectives)
    kernels = (kernel for kernel in result.kernels if not (named and kernel.communicates))
    return sorted((*kernels, *result.collectives), key=lambda quantity: -abs(quantity.delta_ns))
