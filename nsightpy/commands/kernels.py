"""kernels: which kernels the GPU time went to, as nsys stats cuda_gpu_kern_sum counts it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated

from nsightpy.analysis.ranking import times
from nsightpy.commands.stats.operations import KERNELS
from nsightpy.query.command import command
from nsightpy.query.engine import Question
from nsightpy.query.options import NAME_COLUMNS, NameStyle, Option
from nsightpy.query.splits import parse_splits, split_field
from nsightpy.results import Table

_SPLITS = ("rank", "device", "process", "stream", "grid", "block", "category")
CATEGORY = ("category",)
_IN_CATEGORIES = replace(KERNELS, keys=(), columns=times(), identity=())


@command(
    layouts=(KERNELS.fields, (split_field(*CATEGORY), *_IN_CATEGORIES.fields)),
    more=tuple(map(split_field, _SPLITS)),
    keys=KERNELS.identity,
)
def kernels(
    *,
    by: Annotated[
        str | Iterable[str],
        Option("Split by rank, device, process, stream, grid, block, category.", "LIST"),
    ] = "",
    name: NameStyle = "demangled",
) -> Question[Table]:
    """Columns and figures are those of `nsys stats --report cuda_gpu_kern_sum`; times in ns.

    Time (%) is a share of all kernel time, not of wall time. --by category alone has one row a
    category: what kernels compute, by the names that libraries give them; of `other` the name says
    nothing.
    """
    splits = parse_splits(by, _SPLITS)
    ranking = _IN_CATEGORIES if splits == CATEGORY else KERNELS
    return ranking.question("kernels", NAME_COLUMNS[name], splits)
