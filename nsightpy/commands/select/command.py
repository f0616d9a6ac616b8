"""select: the few ncu runs that are worth their hours, from a ranking over all ranks."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

from nsightpy.analysis.selection.coverage import Selection, choose_kernels
from nsightpy.commands.select.offers import Offers, offers_of
from nsightpy.commands.select.plan import FIELDS, Plan, plan_notes, rows_of, starts
from nsightpy.errors import UsageError
from nsightpy.ncu_command import APPLICATION, Job, Options
from nsightpy.query import Communication, Option, Parts, Question
from nsightpy.query.command import command
from nsightpy.readers.nsys.capture import CUDA_PROFILER_API
from nsightpy.results import Note
from nsightpy.results.keys import VARIANT, row_keys

LAUNCHERS = ("srun", "mpirun", "mpiexec", "torchrun", "aprun", "jsrun", "flux", "prun")
_NOTHING = Note(
    "There are no kernels to choose from.",
    "Those of communication need --with-communication, those of CUDA graphs `nsys profile "
    "--cuda-graph-trace=node`; `nsightpy kernels` shows what ran.",
    "Those of communication need --with-communication; `nsightpy kernels` shows what ran.",
)


@command(
    *FIELDS,
    keys=row_keys(VARIANT, "name", "grid", "block"),
    text="nsightpy.render.text.terminal:print_plan",
)
def select(
    *,
    coverage: Annotated[
        float | None,
        Option(
            "The fewest kernels with this share of the GPU time.  [0.8, 25 kernels at most]",
            "SHARE",
        ),
    ] = None,
    top: Annotated[
        int | None, Option("The N kernels with most GPU time; 0 is all.", "N", least=0)
    ] = None,
    communication: Communication = (),
    with_communication: Annotated[bool, Option("Choose communication kernels, too.")] = False,
    metric_set: Annotated[
        str, Option("Set of sections; '' for none.", "NAME", typed="--set")
    ] = "roofline",
    extra: Annotated[
        Sequence[str], Option("More words for ncu.", "WORD", typed="--ncu-option", several=True)
    ] = (),
    application: Annotated[
        str | Sequence[str],
        Option("The application's own command, as words or as a shell reads it.", typed=""),
    ] = (),
) -> Question[Plan]:
    """A variant of a kernel is a name under one grid, block and shared memory.

    Each is measured by one launch: the one nearest the median duration in the steady state, never
    the first of its process. Words after -- are the application's own command.

    \b
      nsightpy select train.sqlite -- python train.py
      nsightpy select job/ --script slurm -o ncu.sbatch -- python train.py
    """
    if coverage is not None and not 0 < coverage <= 1:
        raise UsageError(f"coverage is a share above 0 and up to 1, not {coverage}")
    if not (metric_set.isascii() and metric_set.isprintable()):
        raise UsageError(f"--set takes a name of ncu, in printable ASCII, not {metric_set!a}")
    words = shlex.split(application) if isinstance(application, str) else application
    if words and words[0].rpartition("/")[2] in LAUNCHERS:
        raise UsageError(f"after -- stands what each rank runs, without {words[0]}")
    options = Options(metric_set, tuple(words) or APPLICATION, extra=tuple(extra))
    work = partial(
        offers_of,
        communication=tuple(communication),
        with_communication=with_communication,
    )
    return Question(
        work, partial(_plan, coverage=coverage, top=top, options=options), identified=True
    )


def _plan(
    parts: Parts[Offers], *, coverage: float | None, top: int | None, options: Options
) -> Plan:
    """The plan over all reports; without rows, and with the reason, where nothing is to choose."""
    offered = []
    for report, part in parts.results:
        for portion in part.portions:
            rank, source = report.rank_of(portion.pid)
            offered.append(replace(portion, report=str(report.path), rank=rank, rank_source=source))
    if not offered:
        return Plan("select", FIELDS, (), notes=(_NOTHING,), options=options)
    selection = choose_kernels(offered, coverage=coverage, top=top)
    options = replace(
        options,
        nvtx=tuple(dict.fromkeys(value for part in parts.values for value in part.nvtx)),
        graph="node" if any(choice.from_graph for choice in selection.choices) else "",
        rank_variable=_rank_variable(selection, parts.values),
        from_start=all(start.trigger != CUDA_PROFILER_API for start in starts(selection, parts)),
    )
    runs, rows = zip(*rows_of(selection, options), strict=True) if selection.choices else ((), ())
    ranks = [portion.rank for portion in offered if portion.rank is not None]
    processes = sum(part.processes for part in parts.values)
    hosts = {part.host for part in parts.values}
    whole = processes > max(ranks, default=0) and "" not in hosts
    # every captured process, and every rank up to the highest known
    size = max(1, processes, *(rank + 1 for rank in ranks))
    plan = Plan(
        "select",
        FIELDS,
        rows,
        total_rows=selection.variants if top and top < selection.variants else None,
        runs=runs,
        options=options,
        job=Job(size, len(hosts) if whole else 1),
    )
    return replace(plan, notes=tuple(plan_notes(plan, selection, parts)))


def _rank_variable(selection: Selection, offers: Sequence[Offers]) -> str:
    """The variable that distinguishes ranks in the names of reports; empty for one process."""
    sources = {choice.home.rank_source for choice in selection.choices}
    for kind, _, variable in (source.partition(" ") for source in sorted(sources)):
        if kind == "environment":
            return variable
    return "RANK" if sum(part.processes for part in offers) > 1 else ""
