"""What a reader of a plan must know: denominators, what is left out, the cost, the assumptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nsightpy.analysis.selection.coverage import Selection
from nsightpy.analysis.selection.launch_places import MOST_SHAPES
from nsightpy.commands.select.offers import ReportOffers
from nsightpy.commands.select.plan import Plan, starts_a_job
from nsightpy.names import brief
from nsightpy.ncu_command import APPLICATION
from nsightpy.query.rank_alignment import group_text
from nsightpy.query.steady_state import steady_notes
from nsightpy.readers.nsys.capture_start import CUDA_PROFILER_API, NVTX_RANGE, TORCH_PROFILER
from nsightpy.units import counted, format_time

# From this share on, graphs that nobody could look into come before everything else.
_MUCH = 0.1
_NOT_FOR_NCU = (
    "ncu measures GPUs of NVIDIA only, and these kernels ran on another maker's: the table says "
    "which are worth measuring, with its own profiler (rocprof-compute for AMD)."
)
# A note lists no more of anything.
MOST_SAID = 12


def plan_notes(
    plan: Plan, reports: Sequence[ReportOffers], metric_set: str, passes: int | None
) -> list[str]:
    """The notes of a plan, most important first."""
    return [
        *([] if all(part.ncu for part in reports) else [_NOT_FOR_NCU]),
        *_opaque(reports, at_least=_MUCH),
        *_weight(plan),
        *steady_notes(state for part in reports for state in part.steady.values()),
        *_start(plan, reports),
        *_cost(plan, metric_set, passes),
        *_where(plan),
        *_left_out(plan, reports),
        *_opaque(reports, below=_MUCH),
        *_doubts(plan, reports),
    ]


def _weight(plan: Plan) -> Iterator[str]:
    selection = plan.selection
    if selection is None:
        return
    chosen = len(selection.choices)
    yield from _cut_short(selection)
    yield (
        "share is of the GPU time of all kernels that may be chosen: "
        f"{format_time(selection.whole_ns)} in {counted(selection.variants, 'variant')}; "
        f"{'the one chosen takes' if chosen == 1 else f'the {chosen} chosen take'} "
        f"{100 * selection.share(selection.covered_ns):.1f} % of it."
    )


def _cut_short(selection: Selection) -> Iterator[str]:
    """That the plan has fewer rows than the coverage asks for, and that rows stand for sizes."""
    if selection.not_wanted:
        yield (
            f"{counted(selection.not_wanted, 'more variant')} would be needed for the usual 80 %: "
            "nobody runs ncu so often. --top N chooses more, --coverage SHARE as many as it takes."
        )
    sized = sum(choice.variant.size >= 0 for choice in selection.choices)
    if sized:
        which = "row stands" if sized == 1 else "rows stand"
        yield (
            f"{sized} {which} for launches of one size: their kernel ran under more than "
            f"{MOST_SHAPES} grids, which are grouped by powers of two of the threads launched. "
            "Grid and block are those of the launch that represents them."
        )


def _start(plan: Plan, reports: Sequence[ReportOffers]) -> Iterator[str]:
    """Where the count of launches begins, when the capture began later than the program."""
    chosen = {planned.unit.report for planned in plan.runs}
    starts = [part.start for part in reports if part.report in chosen]
    if any(start.trigger == CUDA_PROFILER_API for start in starts):
        if not plan.options.from_start:
            yield (
                "The capture began when the program called cudaProfilerStart. Skips count from "
                "there, and so does ncu: --profile-from-start off."
            )
        return
    if any(start.trigger == TORCH_PROFILER for start in starts):
        yield (
            "A PyTorch trace has demangled kernel names only (--form function or demangled), and "
            "no launches from before its profiler began. ncu counts those, too: if there were "
            "any, the skips are too small. torch.cuda.profiler.start() where the profiler begins, "
            "and --capture-range cudaProfilerApi, make both count the same. record_function makes "
            "no NVTX ranges: ncu cannot filter by them."
        )
        return
    late = max((start.late_ns for start in starts), default=0)
    by_range = any(start.trigger == NVTX_RANGE for start in starts)
    if (late or by_range) and plan.options.from_start and not plan.options.nvtx:
        how = " at an NVTX range" if by_range else ""
        when = f" {format_time(late)} after the program was launched" if late else ""
        yield (
            f"The capture began{how}{when}. ncu also counts the launches before that, which the "
            "report does not hold: if there were any, the skips are too small. --nvtx with a range "
            "that opened during the capture makes both count the same launches."
        )


def _cost(plan: Plan, metric_set: str, passes: int | None) -> Iterator[str]:
    selection = plan.selection
    if selection is None or not plan.runs:
        return
    launches = sum(planned.run.count for planned in plan.runs)
    each = "given" if passes is not None else f"assumed for --set {metric_set or 'with --metrics'}"
    yield (
        f"Cost: {counted(selection.passes, 'pass', 'passes')} ({each}; ncu prints the real number) "
        f"x {counted(launches, 'launch', 'launches')} = "
        f"{counted(selection.passes * launches, 'pass', 'passes')}, and "
        f"{counted(len(plan.runs), 'run')} of the application up to its last profiled launch"
        f"{' or' if plan.options.kill else ', then on'} to its end."
        f"{' --one-run profiles more launches in one run.' if len(plan.runs) > 1 else ''}"
    )


def _where(plan: Plan) -> Iterator[str]:
    places: dict[str, list[int]] = {}
    for planned in plan.runs:
        unit = planned.unit
        who = f"process {unit.pid}" if unit.rank is None else f"rank {unit.rank}"
        why = f" ({unit.rank_source})" if unit.rank_source else ""
        places.setdefault(f"{who} of {unit.report}{why}", []).extend(planned.rows)
    if plan.job.ranks > 1 or any(planned.unit.rank is not None for planned in plan.runs):
        for who, rows in list(places.items())[:MOST_SAID]:
            which = "" if len(places) == 1 else f" rows {row_text(rows)}"
            yield f"Launches are counted in {who}: measure{which} there."
        if len(places) > MOST_SAID:
            yield f"Other rows are measured in {len(places) - MOST_SAID:,} more processes (json)."
    if starts_a_job(plan.options.application):
        name = plan.options.application[0].rpartition("/")[2]
        yield (
            f"{name} starts the job: ncu then measures every process that it starts, each by its "
            "own count. --script with what each rank runs after -- measures the chosen ranks only."
        )
    elif plan.job.ranks > 1:
        yield (
            f"The job has {counted(plan.job.ranks, 'rank')}: --script slurm, mpi or torchrun "
            "profiles only those above and runs all others without ncu."
        )
        variable = plan.options.rank_variable
        by_variable = {
            f"environment {variable}" == planned.unit.rank_source for planned in plan.runs
        }
        if variable and by_variable != {True}:
            yield (
                f"{variable} is in the names of ncu's reports: the launcher has to set it; "
                "--rank-variable names another."
            )
    if plan.options.application == APPLICATION:
        yield "Give the application's own command after --; APPLICATION stands for it now."


def row_text(rows: Sequence[int]) -> str:
    """Rows as people write them: 1-4, 7."""
    texts = group_text(list(rows)).split(",")
    more = len(texts) - MOST_SAID
    return ", ".join([*texts[:MOST_SAID], *([f"and {more:,} more"] if more > 0 else [])])


def _left_out(plan: Plan, reports: Sequence[ReportOffers]) -> Iterator[str]:
    talking = sum(part.communication_ns for part in reports)
    kernels = sum(part.kernels_ns for part in reports)
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
            f"The budget leaves out {counted(len(chosen.over_budget), 'variant')} with "
            f"{100 * chosen.share(missing):.1f} % of the time."
        )
    if chosen.unreachable:
        have = "has" if len(chosen.unreachable) == 1 else "have"
        yield (
            f"{counted(len(chosen.unreachable), 'variant')} {have} no launch that can be profiled "
            f"there: {'; '.join(brief(variant.name, 80) for variant in chosen.unreachable[:3])}."
        )


def _opaque(
    reports: Sequence[ReportOffers], at_least: float = 0.0, below: float = 2.0
) -> Iterator[str]:
    """Graphs traced as a whole, when they have that share of the GPU time."""
    kernels = sum(part.kernels_ns for part in reports)
    graphs = sum(part.opaque_ns for part in reports)
    if graphs and at_least <= graphs / (graphs + kernels) < below:
        yield (
            f"{100 * graphs / (graphs + kernels):.1f} % of the GPU time ({format_time(graphs)}) "
            "ran in CUDA graphs that were traced as a whole: their kernels cannot be chosen."
        )


def _doubts(plan: Plan, reports: Sequence[ReportOffers]) -> Iterator[str]:
    warm_up = sum(portion.warm_up for part in reports for _, portion in part.offers)
    if warm_up:
        yield (
            "The first launch of each variant in its process is taken for warm-up and never "
            "profiled; the launch chosen is the one nearest the median of the others."
        )
    if plan.options.graph:
        yield (
            "Some kernels come from CUDA graphs: ncu may count the nodes of a graph in another "
            "order than they ran; check grid and block of what it profiled."
        )
    yield (
        "Autotuning and other chance move launches: compare grid and block of what ncu measured "
        "with this table (nsightpy headroom does)."
    )
