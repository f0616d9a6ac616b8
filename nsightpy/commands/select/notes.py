"""What a reader of a plan must know: denominators, what is left out, the cost, the assumptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nsightpy.analysis.selection.coverage import Selection, passes_of
from nsightpy.analysis.selection.launch_places import MOST_SHAPES
from nsightpy.commands.select.offers import Offers
from nsightpy.commands.select.plan import Plan, starts_a_job
from nsightpy.names import brief
from nsightpy.ncu_command import APPLICATION
from nsightpy.query.engine import Parts
from nsightpy.query.steady_state import steady_notes
from nsightpy.readers.nsys.capture import (
    CUDA_PROFILER_API,
    NVTX_RANGE,
    TORCH_PROFILER,
    CaptureStart,
)
from nsightpy.units import counted, format_time, group_text

_NOT_FOR_NCU = (
    "ncu measures GPUs of NVIDIA only, and these kernels ran on another maker's: the table says "
    "which are worth measuring, with its own profiler (rocprof-compute for AMD)."
)
_COUNTED_FROM_THERE = (
    "The capture began when the program called cudaProfilerStart. Skips count from there, and so "
    "does ncu: --profile-from-start off."
)
_TORCH = (
    "A PyTorch trace has no launches from before its profiler began, which ncu counts, too: if "
    "there were any, the skips are too small. Capture with nsys, or let the program call "
    "torch.cuda.profiler.start() where its profiler begins and give ncu --profile-from-start off "
    "(--ncu-option)."
)
_GRAPH = (
    "Some kernels come from CUDA graphs: ncu may count the nodes of a graph in another order than "
    "they ran; check grid and block of what it profiled."
)
# A note lists no more of anything.
MOST_SAID = 12


def plan_notes(plan: Plan, selection: Selection, parts: Parts[Offers]) -> Iterator[str]:
    """The notes of a plan, most important first."""
    offers = parts.values
    if not all(part.ncu for part in offers):
        yield _NOT_FOR_NCU
    yield from _cost(plan, selection)
    yield from _weight(selection, offers)
    yield from steady_notes(state for part in offers for state in part.steady)
    yield from _start(plan, starts(selection, parts))
    yield from _where(plan, selection)
    if plan.options.graph:
        yield _GRAPH
    if plan.options.application == APPLICATION:
        yield "Give the application's own command after --; APPLICATION stands for it now."


def starts(selection: Selection, parts: Parts[Offers]) -> list[CaptureStart]:
    """How the captures began in which launches are chosen."""
    chosen = {choice.unit.report for choice in selection.choices}
    return [part.start for report, part in parts.results if str(report.path) in chosen]


def _cost(plan: Plan, selection: Selection) -> Iterator[str]:
    """What measuring takes: passes x duration."""
    if not plan.runs:
        return
    options = plan.options
    passes = passes_of(options.metric_set)
    once = sum(choice.sample.duration_ns for choice in selection.choices)
    which = f"--set {options.metric_set}" if options.metric_set else "these metrics"
    yield (
        f"Measuring takes {counted(len(plan.runs), 'run')} of the application, in each about "
        f"{passes} passes ({which}; ncu prints the real number) over one launch: {passes} x "
        f"{format_time(once)} = {format_time(passes * once)} of kernels in all."
    )


def _weight(selection: Selection, offers: Sequence[Offers]) -> Iterator[str]:
    """What shares are of, and what is left out."""
    yield (
        f"share is of {format_time(selection.whole_ns)} of GPU time in "
        f"{counted(selection.variants, 'variant')}."
    )
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
            f"{MOST_SHAPES} grids, which are grouped by powers of two of the threads launched."
        )
    talking = sum(part.communication_ns for part in offers)
    kernels = sum(part.kernels_ns for part in offers)
    graphs = sum(part.opaque_ns for part in offers)
    if talking and kernels > selection.whole_ns:
        yield (
            f"Communication kernels are left out ({100 * talking / kernels:.1f} % of all kernel "
            "time): replaying one waits for ranks that do not replay. --with-communication "
            "includes them."
        )
    if graphs:
        yield (
            f"{100 * graphs / (graphs + kernels):.1f} % of the GPU time ({format_time(graphs)}) "
            "ran in CUDA graphs that were traced as a whole: their kernels cannot be chosen. "
            "`nsys profile --cuda-graph-trace=node` shows them."
        )
    if selection.unreachable:
        have = "has" if len(selection.unreachable) == 1 else "have"
        yield (
            f"{counted(len(selection.unreachable), 'variant')} {have} no launch in the range: "
            f"{'; '.join(brief(variant.name, 80) for variant in selection.unreachable[:3])}."
        )


def _start(plan: Plan, captures: Sequence[CaptureStart]) -> Iterator[str]:
    """Where the count of launches begins, when the capture began later than the program."""
    triggers = {start.trigger for start in captures}
    late = max((start.late_ns for start in captures), default=0)
    if CUDA_PROFILER_API in triggers:
        yield _COUNTED_FROM_THERE
    elif TORCH_PROFILER in triggers:
        yield _TORCH
    elif (late or NVTX_RANGE in triggers) and not plan.options.nvtx:
        how = " at an NVTX range" if NVTX_RANGE in triggers else ""
        when = f" {format_time(late)} after the program was launched" if late else ""
        yield (
            f"The capture began{how}{when}. ncu also counts the launches before that, which the "
            "report does not hold: if there were any, the skips are too small. --nvtx with a range "
            "that opened during the capture makes both count the same launches."
        )


def _where(plan: Plan, selection: Selection) -> Iterator[str]:
    """In which processes launches are counted, and how those alone are measured."""
    places: dict[str, list[int]] = {}
    for order, choice in enumerate(selection.choices, start=1):
        unit = choice.unit
        who = f"process {unit.pid}" if unit.rank is None else f"rank {unit.rank}"
        why = f" ({unit.rank_source})" if unit.rank_source else ""
        places.setdefault(f"{who} of {unit.report}{why}", []).append(order)
    if plan.job.ranks > 1:
        for who, rows in list(places.items())[:MOST_SAID]:
            which = "" if len(places) == 1 else f" rows {row_text(rows)}"
            yield f"Launches are counted in {who}: measure{which} there."
        if len(places) > MOST_SAID:
            yield f"Other rows are measured in {len(places) - MOST_SAID:,} more processes."
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


def row_text(rows: Sequence[int]) -> str:
    """Rows as people write them: 1-4, 7."""
    texts = group_text(list(rows)).split(",")
    more = len(texts) - MOST_SAID
    return ", ".join([*texts[:MOST_SAID], *([f"and {more:,} more"] if more > 0 else [])])
