"""What a reader of a plan must know: denominators, what is left out, the cost, the assumptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nsightpy.ncu_command import APPLICATION
from nsightpy.units import format_time
from nsightpy.verbs.steady_windows import steady_notes

if TYPE_CHECKING:
    from nsightpy.verbs.select import Found
    from nsightpy.verbs.select_plan import Plan


def plan_notes(
    plan: Plan, found: Sequence[Found], metric_set: str, passes: int | None
) -> list[str]:
    """The notes of a plan, most important first."""
    return [
        *_weight(plan),
        *steady_notes(state for part in found for state in part.steady),
        *_cost(plan, metric_set, passes),
        *_where(plan),
        *_left_out(plan, found),
        *_doubts(plan, found),
    ]


def _weight(plan: Plan) -> Iterator[str]:
    selection = plan.selection
    if selection is None:
        return
    whole, count = format_time(selection.whole_ns), len(selection.choices)
    yield (
        f"share is of the GPU time of all kernels that may be chosen: {whole} in "
        f"{selection.variants:,} variants; these {count} cover "
        f"{100 * selection.share(selection.covered_ns):.1f} % of it."
    )


def _cost(plan: Plan, metric_set: str, passes: int | None) -> Iterator[str]:
    selection = plan.selection
    if selection is None or not plan.runs:
        return
    launches = sum(planned.run.count for planned in plan.runs)
    each = "given" if passes is not None else f"assumed for --set {metric_set or 'with --metrics'}"
    runs = len(plan.runs)
    yield (
        f"Cost: {selection.passes} passes ({each}; ncu prints the real number) x {launches:,} "
        f"launches = {selection.passes * launches:,} passes, and {runs} "
        f"{'run' if runs == 1 else 'runs'} of the application up to its last profiled launch"
        f"{' or' if plan.options.kill else ', then on'} to its end."
    )


def _where(plan: Plan) -> Iterator[str]:
    places: dict[str, list[int]] = {}
    for planned in plan.runs:
        unit = planned.unit
        who = f"process {unit.pid}" if unit.rank is None else f"rank {unit.rank}"
        why = f" ({unit.rank_source})" if unit.rank_source else ""
        places.setdefault(f"{who} of {unit.report}{why}", []).extend(planned.rows)
    for who, rows in places.items():
        numbers = ", ".join(map(str, dict.fromkeys(rows)))
        yield f"Launches are counted in {who}: profile there (rows {numbers})."
    if plan.ranks > 1:
        yield (
            f"The job has {plan.ranks} processes: --script slurm, mpi or torchrun profiles only "
            "the ranks above and runs all others untouched."
        )
    if plan.options.application == APPLICATION:
        yield "Give the application's own command after --; APPLICATION stands for it now."


def _left_out(plan: Plan, found: Sequence[Found]) -> Iterator[str]:
    talking = sum(part.communication_ns for part in found)
    kernels = sum(part.kernels_ns for part in found)
    chosen = plan.selection
    if chosen is None:
        return
    if talking and kernels > chosen.whole_ns:
        yield (
            f"Communication kernels are left out ({100 * talking / kernels:.1f} % of all kernel "
            "time): replaying one waits for ranks that do not replay. --with-communication "
            "includes them."
        )
    if chosen.over_budget:
        missing = sum(choice.total_ns for choice in chosen.over_budget)
        yield (
            f"The budget leaves out {len(chosen.over_budget)} variants with "
            f"{100 * chosen.share(missing):.1f} % of the time."
        )
    if chosen.unreachable:
        yield (
            f"{len(chosen.unreachable)} variants have no launch that can be profiled there: "
            f"{', '.join(variant.name for variant in chosen.unreachable[:3])}."
        )
    graphs, time = (
        sum(part.opaque_launches for part in found),
        sum(part.opaque_ns for part in found),
    )
    if graphs:
        share = 100 * time / (time + kernels)
        yield (
            f"{graphs:,} CUDA graph launches ({format_time(time)}, {share:.1f} % of the GPU time) "
            "were traced as a whole: their kernels cannot be chosen. nsys profile "
            "--cuda-graph-trace=node shows them."
        )


def _doubts(plan: Plan, found: Sequence[Found]) -> Iterator[str]:
    warm_up = sum(portion.warm_up for part in found for _, portion in part.portions)
    if warm_up:
        yield (
            "The first launch of each variant in its process is taken for warm-up and never "
            "profiled; representative_ns is of the launch nearest the median of the others."
        )
    if plan.options.graph:
        yield (
            "Some kernels come from CUDA graphs: ncu may count the nodes of a graph in another "
            "order than they ran; check grid and block of what it profiled."
        )
    yield (
        "Skips count launches from the start of the process: autotuning and other chance moves "
        "them. Compare grid and block of the result with this table (nsightpy headroom does)."
    )
