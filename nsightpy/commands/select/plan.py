"""The plan that `select` makes: a table of kernels, and the ncu runs that measure them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from nsightpy.analysis.selection.coverage import KernelChoice, Selection
from nsightpy.analysis.selection.launch_places import shaped
from nsightpy.errors import ReportError, UsageError, require_choice
from nsightpy.names import brief
from nsightpy.ncu_command import SCRIPTS, Job, Options, Run, script, shell_line
from nsightpy.ncu_command.scripts import OWN_RANK
from nsightpy.results import Field, Table, Value
from nsightpy.units import format_time

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
SCRIPT_KINDS = tuple(SCRIPTS)
LAUNCHERS = ("srun", "mpirun", "mpiexec", "torchrun", "aprun", "jsrun", "flux", "prun")


@dataclass(frozen=True, repr=False)
class Plan(Table):
    """The table of `nsightpy select`, and behind it the runs, one of each row."""

    runs: tuple[Run, ...] = ()
    options: Options = field(default_factory=Options)
    job: Job = field(default_factory=Job)

    def script(self, kind: str, launcher: str = "") -> str:
        """A batch script (slurm, mpi, torchrun, plain) in which only the chosen ranks run ncu.

        `launcher` replaces how the job is started, "srun -n 8". Raises UsageError, and ReportError
        where nothing was chosen.
        """
        require_choice("script", kind, SCRIPT_KINDS)
        if not self.runs:
            reasons = " ".join(map(str, self.notes))
            raise ReportError(self.inputs[0], "has nothing to measure", reasons)
        application, runs = self.options.application, self.runs
        if kind != "plain" and starts_a_job(application):
            raise UsageError(
                f"the script starts the job itself: give what each rank runs after --, and "
                f"--launcher {application[0]!r} with its options"
            )
        if kind != "plain" and any(run.rank is None for run in runs):
            if self.job.ranks > 1:
                raise UsageError(
                    "the reports do not say which rank each process is; --rank-regex finds it "
                    "in their names"
                )
            runs = tuple(replace(run, rank=0) for run in runs)
        options = replace(self.options, rank_variable="" if kind == "plain" else OWN_RANK)
        return script(kind, runs, options, job=self.job, launcher=shlex.split(launcher))


def starts_a_job(application: Sequence[str]) -> bool:
    """Whether the application's own command is a launcher of ranks."""
    return application[0].rpartition("/")[2] in LAUNCHERS


def runs_of(selection: Selection) -> tuple[Run, ...]:
    """One run for the launch of each choice."""
    return tuple(
        Run(
            *choice.variant.surest_name,
            choice.sample.place,
            f"ncu_{order:02d}",
            choice.unit.rank,
            _title(choice),
        )
        for order, choice in enumerate(selection.choices, start=1)
    )


def _title(choice: KernelChoice) -> str:
    """What a run measures, for people."""
    shape, rank = choice.sample.shape, choice.unit.rank
    name = brief(shape.name or shape.base or shape.mangled, _TITLE_WIDTH)
    which = "" if rank is None else f", rank {rank}"
    sizes = f"grid {shaped(shape.grid)}, block {shaped(shape.block)}"
    return f"{name}: {sizes}, {format_time(choice.sample.duration_ns)} in nsys{which}"


def rows(
    selection: Selection, runs: Sequence[Run], options: Options
) -> Iterator[tuple[Value, ...]]:
    """The rows of the table, one per choice."""
    covered = 0
    for order, (choice, run) in enumerate(zip(selection.choices, runs, strict=True), start=1):
        shape = choice.sample.shape
        covered += choice.total_ns
        yield (
            order,
            shape.name or shape.base or shape.mangled,
            shape.mangled or None,
            shaped(shape.grid),
            shaped(shape.block),
            choice.instances,
            choice.total_ns,
            selection.share(choice.total_ns),
            selection.share(covered),
            choice.sample.duration_ns,
            run.skip,
            1,
            shell_line(run, options),
            shape.static_shared + shape.dynamic_shared,
            run.rank,
        )
