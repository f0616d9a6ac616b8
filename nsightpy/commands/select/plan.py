"""The plan that `select` makes: a table of kernels, and the ncu runs that measure them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nsightpy.analysis.selection.coverage import KernelChoice, ProfiledProcess, Selection
from nsightpy.analysis.selection.launch_places import LaunchCounts, Sample, Variant
from nsightpy.analysis.selection.launch_window import Window
from nsightpy.errors import UsageError, require_choice
from nsightpy.names import brief
from nsightpy.ncu_command import Job, NameFilter, Options, Run, argv, response_file, shell_line
from nsightpy.ncu_command.filters import BASES
from nsightpy.ncu_command.scripts import OWN_RANK, SCRIPTS, script
from nsightpy.results import Field, Table, Value
from nsightpy.units import format_time

FIELDS = (
    Field("order"),
    Field("name", "text"),
    Field("mangled", "text"),
    Field("grid", "text", own=True),
    Field("block", "text", own=True),
    Field("instances"),
    Field("total_ns", "ns"),
    Field("share", "ratio", 4),
    Field("cumulative_share", "ratio", 4),
    Field("representative_ns", "ns"),
    Field("launch_skip", "id"),
    Field("launch_count", "id"),
    Field("command", "text"),
    Field("shared_bytes"),
)
AUTO = "auto"
_TITLE_WIDTH = 100
FORMS = (AUTO, *BASES)
NAME_COLUMNS = {"mangled": "mangled_name", "function": "base_name", "demangled": "name"}
LAUNCHERS = ("srun", "mpirun", "mpiexec", "torchrun", "aprun", "jsrun", "flux", "prun")


@dataclass(frozen=True)
class PlannedRun:
    """One run of ncu: the rows of the plan it serves, what to try next if it matches nothing."""

    run: Run
    rows: tuple[int, ...]
    unit: ProfiledProcess
    expected: tuple[tuple[Variant, int], ...]
    fallbacks: tuple[Run, ...] = ()
    role: str = "median"

    @property
    def title(self) -> str:
        """What it measures, for people."""
        variant, duration = self.expected[0]
        shape = f"grid {shaped(variant.grid)}, block {shaped(variant.block)}"
        more = f" and {len(self.expected) - 1} more" if len(self.expected) > 1 else ""
        name = brief(variant.name or variant.base or variant.mangled, _TITLE_WIDTH)
        which = "" if self.unit.rank is None else f", rank {self.unit.rank}"
        usual = "" if self.role == "median" else ", the slowest launch"
        return f"{name}{more}: {shape}, {format_time(duration)} in nsys{which}{usual}"


@dataclass(frozen=True, repr=False)
class Plan(Table):
    """The table of `nsightpy select`, and behind it the runs: lines, scripts, JSON."""

    selection: Selection | None = None
    runs: tuple[PlannedRun, ...] = ()
    options: Options = field(default_factory=Options)
    job: Job = field(default_factory=Job)

    def lines(self) -> list[str]:
        """One shell line per run; each runs as it stands, in the rank it is for."""
        return [shell_line(planned.run, self.options) for planned in self.runs]

    def script(self, kind: str, launcher: str = "") -> str:
        """A batch script (slurm, mpi, torchrun, plain) in which only the chosen ranks run ncu.

        `launcher` replaces how the job is started, "srun -n 8". Raises UsageError.
        """
        require_choice("script", kind, SCRIPTS)
        application = self.options.application
        if kind != "plain" and starts_a_job(application):
            raise UsageError(
                f"the script starts the job itself: give what each rank runs after --, and "
                f"--launcher {application[0]!r} with its options"
            )
        rank_variable = "" if kind == "plain" else OWN_RANK
        options = replace(self.options, rank_variable=rank_variable)
        runs = [planned.run for planned in self.runs]
        if kind != "plain" and any(not run.ranks for run in runs):
            if self.job.ranks > 1:
                raise UsageError(
                    "the reports do not say which rank each process is; --rank-regex finds it "
                    "in their names"
                )
            runs = [replace(run, ranks=run.ranks or (0,)) for run in runs]
        return script(
            kind,
            runs,
            options,
            titles=[planned.title for planned in self.runs],
            job=self.job,
            launcher=shlex.split(launcher),
        )

    def members(self) -> dict[str, Any]:
        """The runs as plain JSON values: words, line, ranks, what is expected, fallbacks."""
        return {"runs": [self._run_record(planned) for planned in self.runs]}

    def _run_record(self, planned: PlannedRun) -> dict[str, Any]:
        file = response_file(planned.run, self.options)
        return {
            "rows": list(planned.rows),
            "role": planned.role,
            "rank": planned.unit.rank,
            "report": planned.unit.report,
            "pid": planned.unit.pid,
            "argv": argv(planned.run, self.options),
            "command": shell_line(planned.run, self.options),
            "response_file": None if file is None else {"name": file[0], "text": file[1]},
            "expected": [_expected(variant, ns) for variant, ns in planned.expected],
            "fallbacks": [argv(run, self.options) for run in planned.fallbacks],
        }


def starts_a_job(application: Sequence[str]) -> bool:
    """Whether the application's own command is a launcher of ranks."""
    return application[0].rpartition("/")[2] in LAUNCHERS


def shaped(extent: Sequence[int]) -> str:
    """A grid or block as 128x1x1."""
    return "x".join(map(str, extent))


def planned_runs(selection: Selection, output: str, form: str) -> list[PlannedRun]:
    """One run per launch: the filter that is surest for its names, the others as fallbacks."""
    planned = []
    for order, choice in enumerate(selection.choices, start=1):
        for sample in choice.samples:
            name = f"{output}_{order:02d}" + ("" if sample.role == "median" else f"_{sample.role}")
            runs = [
                Run(
                    NameFilter(base, (kernel_name,)),
                    _skip(sample, base),
                    1,
                    name,
                    _ranks(choice.unit),
                )
                for base, kernel_name in names_of(choice.variant, form)
            ]
            expected = ((sample.shape or choice.variant, sample.duration_ns),)
            planned.append(
                PlannedRun(runs[0], (order,), choice.unit, expected, tuple(runs[1:]), sample.role)
            )
    return planned


def window_run(
    choices: Sequence[KernelChoice], window: Window, base: str, output: str
) -> PlannedRun:
    """The one run of a stretch of launches with one of every choice; all in one process."""
    names = dict.fromkeys(dict(names_of(c.variant, base))[base] for c in choices)
    unit = choices[0].unit
    run = Run(NameFilter(base, tuple(names)), window.skip, window.count, output, _ranks(unit))
    expected = tuple(zip(window.shapes, window.durations_ns, strict=True))
    return PlannedRun(run, tuple(range(1, 1 + len(choices))), unit, expected)


def names_of(variant: Variant, form: str) -> list[tuple[str, str]]:
    """The ways to name a kernel (base, name), the surest first; raises UsageError for none."""
    by_form = {"mangled": variant.mangled, "function": variant.base, "demangled": variant.name}
    wanted = BASES if form == AUTO else (form,)
    names = [(base, by_form[base]) for base in wanted if by_form[base]]
    if not names:
        raise UsageError(f"{variant.name or variant.base!r} has no {form} name in the report")
    return names


def rows(
    selection: Selection, runs: Sequence[PlannedRun], options: Options
) -> Iterator[tuple[Value, ...]]:
    """The rows of the table, one per choice; its first run is the one that is shown."""
    served: dict[int, PlannedRun] = {}
    for planned in runs:
        for order in planned.rows:
            served.setdefault(order, planned)
    covered = 0
    for order, choice in enumerate(selection.choices, start=1):
        planned = served[order]
        variant, duration = planned.expected[planned.rows.index(order)]
        covered += choice.total_ns
        yield (
            order,
            variant.name or variant.base or variant.mangled,
            variant.mangled or None,
            shaped(variant.grid),
            shaped(variant.block),
            choice.instances,
            choice.total_ns,
            selection.share(choice.total_ns),
            selection.share(covered),
            duration,
            planned.run.skip,
            planned.run.count,
            shell_line(planned.run, options),
            variant.static_shared + variant.dynamic_shared,
        )


def _skip(sample: Sample, base: str) -> int:
    places: LaunchCounts = sample.places
    skip: int = getattr(places, base)
    return skip


def _ranks(unit: ProfiledProcess) -> tuple[int, ...]:
    return () if unit.rank is None else (unit.rank,)


def _expected(variant: Variant, duration_ns: int) -> dict[str, Any]:
    return {
        "name": variant.name,
        "mangled": variant.mangled or None,
        "function": variant.base,
        "grid": shaped(variant.grid),
        "block": shaped(variant.block),
        "static_shared_bytes": variant.static_shared,
        "dynamic_shared_bytes": variant.dynamic_shared,
        "duration_ns": duration_ns,
    }
