"""The plan that `select` makes: a table of kernels, the ncu runs that measure them, and notes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from nsightpy.analysis.selection.coverage import PASSES, PASSES_OTHERWISE, Selection
from nsightpy.analysis.selection.launch_places import shaped
from nsightpy.analysis.selection.thresholds import MOST_SHAPES
from nsightpy.commands.select.offers import Offers
from nsightpy.errors import ReportError, UsageError, require_choice
from nsightpy.names import brief
from nsightpy.ncu_command import (
    APPLICATION,
    OWN_RANK,
    Job,
    Options,
    Run,
    script,
    shell_line,
)
from nsightpy.query.engine import Parts
from nsightpy.query.steps import steady_notes
from nsightpy.readers.nsys.capture import (
    CUDA_PROFILER_API,
    NVTX_RANGE,
    TORCH_PROFILER,
    CaptureStart,
)
from nsightpy.results import Field, Row, Table
from nsightpy.units import counted, format_time

FIELDS = (
    Field("order", importance=2),
    Field("name", "name", importance=1),
    Field("mangled", "text"),
    Field("grid", "text", own=True, importance=9),
    Field("block", "text", own=True, importance=10),
    Field("instances", heading="launches", importance=5),
    Field("total_ns", "time", heading="GPU time", importance=6),
    Field("share", "share", 4, heading="of time %", importance=3),
    Field("cumulative_share", "share", 4, heading="sum %", importance=4),
    Field("representative_ns", "time", heading="one launch", importance=7),
    Field("launch_skip", "id", importance=8),
    Field("launch_count", "id"),
    Field("command", "text"),
    Field("shared_bytes", "bytes", heading="shared memory"),
    Field("rank", "id"),
)
_TITLE_WIDTH = 100
SCRIPT_KINDS = ("plain", "slurm", "mpi", "torchrun")
_NOT_FOR_NCU = (
    "ncu measures GPUs of NVIDIA only, and these kernels ran on another maker's: the table says "
    "which are worth measuring, with its own profiler (rocprof-compute for AMD)."
)
_COUNTED_FROM_THERE = (
    "The capture began when the program called cudaProfilerStart. Skips count from there, and so "
    "does ncu: --profile-from-start off."
)
_LATE = (
    "The capture began after the program did. ncu also counts the launches before that, which the "
    "report does not hold: if there were any, the skips are too small. --nvtx with a range that "
    "opened during the capture makes both count the same launches."
)
_TORCH = (
    "A PyTorch trace has no launches from before its profiler began, which ncu counts, too: if "
    "there were any, the skips are too small. Capture with nsys."
)
_GRAPH = (
    "Some kernels come from CUDA graphs: ncu may count the nodes of a graph in another order than "
    "they ran; check grid and block of what it profiled."
)


@dataclass(frozen=True, repr=False)
class Plan(Table):
    """The table of `nsightpy select`, and behind it the runs, one of each row."""

    runs: tuple[Run, ...] = ()
    options: Options = field(default_factory=Options)
    job: Job = field(default_factory=Job)

    def script(self, kind: str) -> str:
        """A batch script (slurm, mpi, torchrun, plain) in which only the chosen ranks run ncu.

        Raises UsageError, and ReportError where nothing was chosen.
        """
        require_choice("script", kind, SCRIPT_KINDS)
        if not self.runs:
            reasons = " ".join(map(str, self.notes))
            raise ReportError(self.inputs[0], "has nothing to measure", reasons)
        runs = self.runs
        if kind == "plain":
            return script(kind, runs, replace(self.options, rank_variable=""), self.job)
        if any(run.rank is None for run in runs):
            if self.job.ranks > 1:
                raise UsageError(
                    "the reports do not say which rank each process is; --rank-regex finds it "
                    "in their names"
                )
            runs = tuple(replace(run, rank=0) for run in runs)
        options = replace(self.options, rank_variable=OWN_RANK)
        return script(kind, runs, options, self.job)


def rows_of(selection: Selection, options: Options) -> Iterator[tuple[Run, Row]]:
    """One run for the launch of each choice, and its row of the table."""
    covered = 0
    for order, choice in enumerate(selection.choices, start=1):
        sample, rank = choice.sample, choice.home.rank
        shape = sample.shape
        name, grid, block = shape.any_name, shaped(shape.grid), shaped(shape.block)
        covered += choice.total_ns
        which = "" if rank is None else f", rank {rank}"
        title = (
            f"{brief(name, _TITLE_WIDTH)}: grid {grid}, block {block}, "
            f"{format_time(sample.duration_ns)} in nsys{which}"
        )
        surest = choice.variant.surest_name
        run = Run(*surest, sample.place, f"ncu_{order:02d}", rank, title)
        yield (
            run,
            (
                *(order, name, shape.mangled or None, grid, block, choice.instances),
                *(choice.total_ns, selection.share(choice.total_ns), selection.share(covered)),
                *(sample.duration_ns, run.skip, 1, shell_line(run, options)),
                *(shape.static_shared + shape.dynamic_shared, run.rank),
            ),
        )


def plan_notes(plan: Plan, selection: Selection, parts: Parts[Offers]) -> Iterator[str]:
    """The notes of a plan, most important first."""
    offers = parts.values
    if not all(part.ncu for part in offers):
        yield _NOT_FOR_NCU
    if plan.runs:
        metric_set = plan.options.metric_set
        passes = PASSES.get(metric_set, PASSES_OTHERWISE)
        which = f"--set {metric_set}" if metric_set else "these metrics"
        once = sum(choice.sample.duration_ns for choice in selection.choices)
        yield (
            f"Measuring takes {counted(len(plan.runs), 'run')} of the application, in each about "
            f"{passes} passes ({which}; ncu prints the real number) over one launch: {passes} x "
            f"{format_time(once)} = {format_time(passes * once)} of kernels in all."
        )
    yield from _weight(selection, offers)
    yield from steady_notes(state for part in offers for state in part.steady)
    yield from _start(plan, starts(selection, parts))
    if plan.options.graph:
        yield _GRAPH
    if plan.options.application == APPLICATION:
        yield "Give the application's own command after --; APPLICATION stands for it now."


def starts(selection: Selection, parts: Parts[Offers]) -> list[CaptureStart]:
    """How the captures began in which launches are chosen."""
    chosen = {choice.home.report for choice in selection.choices}
    return [part.start for report, part in parts.results if str(report.path) in chosen]


def _weight(selection: Selection, offers: Sequence[Offers]) -> Iterator[str]:
    """What is left out."""
    if selection.not_wanted:
        yield (
            f"{counted(selection.not_wanted, 'more variant')} would be needed for the usual 80 %: "
            "--top N chooses more, --coverage SHARE as many as it takes."
        )
    if sized := sum(choice.variant.size >= 0 for choice in selection.choices):
        yield (
            f"Launches of one size, by powers of two of their threads: {counted(sized, 'row')}. "
            f"Their kernel ran under more than {MOST_SHAPES} grids."
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
        yield f"{counted(len(selection.unreachable), 'variant')} without a launch in the range."


def _start(plan: Plan, captures: Sequence[CaptureStart]) -> Iterator[str]:
    """Where the count of launches begins, when the capture began later than the program."""
    triggers = {start.trigger for start in captures}
    late = any(start.late_ns for start in captures)
    if CUDA_PROFILER_API in triggers:
        yield _COUNTED_FROM_THERE
    elif TORCH_PROFILER in triggers:
        yield _TORCH
    elif (late or NVTX_RANGE in triggers) and not plan.options.nvtx:
        yield _LATE
