"""kernels: which kernels the GPU time went to, as nsys stats cuda_gpu_kern_sum counts it."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from nsightpy.analysis.ranking import columns, times
from nsightpy.commands.stats.operations import KERNELS
from nsightpy.query import (
    NAME_COLUMNS,
    NameStyle,
    Option,
    Parts,
    Question,
    Scope,
    SystemReport,
    Work,
)
from nsightpy.query.command import command
from nsightpy.query.launching_lines import LINES, SOURCES, source_of_lines
from nsightpy.query.splits import parse_splits, split_field
from nsightpy.results import Table, number

_SPLITS = ("rank", "device", "process", "stream", "grid", "block", "category", "line")
CATEGORY = ("category",)
_IN_CATEGORIES = replace(KERNELS, keys=(), columns=columns(times()), identity=())


@command(
    layouts=(KERNELS.fields, (split_field(*CATEGORY), *_IN_CATEGORIES.fields)),
    more=tuple(map(split_field, _SPLITS)),
    keys=KERNELS.identity,
)
def kernels(
    *,
    by: Annotated[
        str | Iterable[str],
        Option("Split by rank, device, process, stream, grid, block, category, line.", "LIST"),
    ] = "",
    name: NameStyle = "demangled",
) -> Question[Table]:
    """Columns and figures are those of `nsys stats --report cuda_gpu_kern_sum`; times in ns.

    Time (%) is a share of all kernel time, not of wall time. --by category alone has one row a
    category: what kernels compute, by the names that libraries give them; of `other` the name says
    nothing.

    --by line: what launched a kernel, in traces with_stack the innermost Python function outside
    torch and Python itself around the call, of the backward pass around the forward operator; else
    the innermost code range, operators of a framework last. Kernels of a CUDA graph have the line
    of the replay.
    """
    splits = parse_splits(by, _SPLITS)
    ranking = _IN_CATEGORIES if splits == CATEGORY else KERNELS
    question = ranking.question("kernels", NAME_COLUMNS[name], splits)
    if "line" not in splits:
        return question
    work = partial(_with_source, work=question.work)
    combine = partial(_with_notes, combine=question.combine)
    return replace(question, work=work, combine=combine)


def _with_source(report: SystemReport, scope: Scope, *, work: Work) -> tuple[Any, str]:
    """What a work gives, and where the lines of the report come from."""
    return work(report, scope), source_of_lines(report)


def _with_notes(parts: Parts[tuple[Any, str]], *, combine: Callable[[Parts[Any]], Any]) -> Table:
    """The table with what part of the time has a line, and what lines are."""
    tallied = [(report, tallies) for report, (tallies, _) in parts.results]
    table: Table = combine(replace(parts, results=tallied))
    times = list(zip(table["line"], map(number, table["Total Time (ns)"]), strict=True))
    linked, whole = sum(time for line, time in times if line), sum(time for _, time in times)
    if not whole:
        return table
    if not linked:
        return replace(table, rows=(), notes=(*table.notes, LINES))
    sources = [SOURCES[source] for source in SOURCES if source in {s for _, s in parts.values}]
    note = f"{100 * linked / whole:.3g} % of the kernels' time has a line: {'; or '.join(sources)}."
    return replace(table, notes=(*table.notes, note))
