"""Comparisons made by hand: what renderers are shown, with names as they are found and worse."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from nsightpy.results.comparison import (
    COMPARE_FIELDS,
    CircumstanceDifference,
    ComparedQuantity,
    ComparedSide,
    Comparison,
    GateOutcome,
    Limits,
)
from nsightpy.results.run_summary import PARTS, RunSummary, UnitSummary

MS = 1_000_000
AROUND = (-0.06, -0.02, 0.0, 0.03, 0.05)
HOSTILE = "evil\x1b[31m<script>alert(1)</script>]]>&|`*\n\u202e\ud800\x00$x$ kernel<T>"
FLASH = (
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)128, (int)128, (int)64, (int)4, "
    "(bool)0, (bool)0, cutlass::bfloat16_t>, (bool)0, (bool){causal}>(flash::Flash_fwd_params)"
)
ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::{functor}<float>, "
    "std::array<char *, (unsigned long)3>>(int, T2, T3)"
)
TILE = "ampere_bf16_s16816gemm_bf16_{tile}_ldg8_f2f_stages_32x6_tn"


def quantity(
    name: str, before: Sequence[float], after: Sequence[float], **more: Any
) -> ComparedQuantity:
    """A quantity from its values per run in ms; interval and verdict from their extremes."""
    first, last = (tuple(round(value * MS) for value in side) for side in (before, after))
    given: dict[str, Any] = {"section": "kernel", "matched_by": "full name", "before_name": name}
    given |= {"before_runs": first, "after_runs": last}
    given |= {"before_ns": round(median(first)) if first else None}
    given |= {"after_ns": round(median(last)) if last else None}
    if any(first) and any(last) and len(first) > 1:
        low, high = min(last) / max(first), max(last) / min(first)
        verdict = "slower" if low > 1.01 else "faster" if high < 0.99 else "cannot tell"
        given |= {"ratio_low": low, "ratio_high": high, "verdict": verdict}
        given["runs_needed"] = 9 if verdict == "cannot tell" else None
    made = ComparedQuantity(name, **(given | more))
    if not (made.before_count and made.after_count) or made.delta_from_count_ns is not None:
        return made
    each = ((made.before_ns or 0) / made.before_count + (made.after_ns or 0) / made.after_count) / 2
    by_count = round((made.after_count - made.before_count) * each)
    return replace(
        made, delta_from_count_ns=by_count, delta_from_duration_ns=made.delta_ns - by_count
    )


def side(name: str, step_ms: Sequence[float], steps: int, **circumstances: str) -> ComparedSide:
    """A run for each value, of that many steps."""
    nothing = (0,) * (len(PARTS) - 1)
    runs = [
        RunSummary("nsys", f"runs/{name}{number}.nsys-rep", {"step": unit}, circumstances)
        for number, length in enumerate((round(one * MS) for one in step_ms), 1)
        for unit in [UnitSummary(length, (length, *nothing), steps)]
    ]
    return ComparedSide(tuple(runs))


def five(value: float) -> list[float]:
    """The values of five runs around one, in ms."""
    return [value + 0.2 * one if value else 0.0 for one in AROUND]


def comparison(**changes: Any) -> Comparison:
    """Five runs a side of a training step that became slower, for several reasons."""
    step = [41.2 + one for one in AROUND], [44.46 + one for one in AROUND]
    values = [(30.1, 32.9), (4.2, 4.4), (0.3, 0.3), (0, 0), (6.0, 6.26), (0.4, 0.4)]
    values += [(0, 0)] * (len(PARTS) - len(values) - 1)
    values.append((41.2 - sum(one for one, _ in values), 44.46 - sum(one for _, one in values)))
    parts = tuple(
        quantity(name, five(one), five(other), section="time")
        for name, (one, other) in zip(PARTS, values, strict=True)
    )
    both = {"GPU": "NVIDIA H100 80GB HBM3", "ranks": "2", "nsys": "2026.2.1", "clocks": "1980 MHz"}
    reduced = {"section": "collective", "before_count": 16.0, "after_count": 16.0}
    slower = "the step is slower by 7.9 %, beyond 3 % and 50.0 us"
    made = Comparison(
        "compare",
        COMPARE_FIELDS,
        (),
        inputs=("runs/before1.nsys-rep", "runs/after1.nsys-rep"),
        before=side("before", step[0], 20, **both),
        after=side("after", step[1], 20, **(both | {"clocks": "1755 MHz"})),
        step=quantity("step", *step, section="step", p_value=0.0079),
        parts=parts,
        kernels=kernels(),
        collectives=(quantity("AllReduce 64 MiB", five(5.1), five(5.31), **reduced),),
        ranges=(
            quantity("forward", five(12.0), five(12.1), section="range"),
            quantity("backward", five(20.0), five(22.7), section="range"),
        ),
        circumstances=(CircumstanceDifference("clocks", "1980 MHz", "1755 MHz"),),
        limits=Limits(0.03, 50_000),
        gate=GateOutcome(Limits(0.03, 50_000), "step", False, "slower", True, slower),
        next_steps=(
            ("nsightpy kernels runs/after1.nsys-rep", "what takes longest now"),
            ("nsightpy timeline runs/after1.nsys-rep -o after.png", "where in the step"),
        ),
    )
    made = replace(made, **changes)
    return replace(made, rows=tuple(one.row for one in made.quantities))


def kernels() -> tuple[ComparedQuantity, ...]:
    """Kernels of every kind of match, the greatest change first."""
    name, order = {"matched_by": "name without arguments"}, {"matched_by": "order of launches"}
    name |= {"before_name": TILE.format(tile="128x64")}
    order |= {"before_name": "layernorm_kernel"}
    new, gone = ({"matched_by": "", "verdict": verdict} for verdict in ("new", "gone"))
    flash, mul = FLASH.format(causal=1), ELEMENTWISE.format(functor="MulFunctor")
    tile, norm = TILE.format(tile="256x128"), "triton_layernorm_0"
    rows: list[Any] = [
        (flash, [13.6, 13.61, 13.59], [15.4, 15.38, 15.41], (34.0, 34.0), {}),
        (mul, [0.9, 0.91, 0.9], [1.8, 1.81, 1.79], (10.0, 20.0), {}),
        (tile, [3.2, 3.21, 3.2], [2.9, 2.91, 2.9], (8.0, 8.0), name),
        (norm, [0.5, 0.5, 0.51], [0.3, 0.3, 0.31], (12.0, 12.0), order),
        ("debug_checksum", [], [0.25, 0.25, 0.26], (0.0, 1.0), new),
        ("old_softmax<float>", [0.1, 0.1, 0.1], [], (12.0, 0.0), gone),
    ]
    for place in range(12):
        many = ELEMENTWISE.format(functor=f"Functor{place:02d}")
        rows.append((many, [0.2, 0.21], [0.201 + place / 1e4, 0.211], (12.0, 12.0), {}))
    return tuple(
        quantity(called, *sides, before_count=a or None, after_count=b or None, **about)
        for called, *sides, (a, b), about in rows
    )


def hostile() -> Comparison:
    """The same with names that attack terminals, tables, pages and pictures."""
    made = comparison()
    once: dict[str, Any] = {"before_count": 1.0, "after_count": 1.0, "before_name": HOSTILE[::-1]}
    bad = quantity(HOSTILE, [1.0, 1.0], [3.0, 3.1], matched_by="order of launches", **once)
    return replace(
        made,
        inputs=(HOSTILE,),
        kernels=(bad, *made.kernels),
        ranges=(replace(bad, section="range"),),
        before=ComparedSide(tuple(replace(run, name=HOSTILE) for run in made.before.runs)),
        circumstances=(CircumstanceDifference(HOSTILE, HOSTILE, ""),),
        notes=(HOSTILE,),
        next_steps=((f"nsightpy kernels '{HOSTILE}'", HOSTILE),),
        gate=GateOutcome(Limits(), HOSTILE, True, "slower", True, HOSTILE),
    )
