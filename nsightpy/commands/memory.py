"""memory: copies and sets by time and size, as nsys stats cuda_gpu_mem_time_sum and _size_sum."""

from collections.abc import Iterable
from functools import partial
from typing import Annotated, TypeAlias

from nsightpy.analysis.memory.copies import believable
from nsightpy.analysis.tally import Tally
from nsightpy.commands.stats.operations import OPERATIONS
from nsightpy.query import Option, Parts, Question, Scope, SystemReport
from nsightpy.query.command import command
from nsightpy.query.splits import parse_splits, split_field
from nsightpy.results import Table

_SPLITS = ("rank", "device", "process", "stream", "memory")
# Time and sizes; the fastest memory.
_Part: TypeAlias = tuple[list[Tally], int]


@command(*OPERATIONS.fields, more=tuple(map(split_field, _SPLITS)), keys=OPERATIONS.identity)
def memory(
    *,
    by: Annotated[
        str | Iterable[str],
        Option(
            "Split by rank, device, process, stream, memory (pageable, pinned, managed).", "LIST"
        ),
    ] = "",
) -> Question[Table]:
    """Figures are those of `nsys stats` cuda_gpu_mem_time_sum and cuda_gpu_mem_size_sum.

    Times in ns, MB is 10^6 bytes, GB/s bytes per ns. --by adds splits in front.
    """
    splits = parse_splits(by, _SPLITS)

    def ranked(parts: Parts[_Part]) -> Table:
        tallied = Parts(parts.request, [(report, part) for report, (part, _) in parts.results])
        table = OPERATIONS.table("memory", splits, tallied)
        return believable(table, max((fastest for _, fastest in parts.values), default=0))

    work = partial(_part, splits=splits)
    return Question(work, ranked, identified="rank" in splits, of_each="rank")


def _part(report: SystemReport, scope: Scope, *, splits: tuple[str, ...]) -> _Part:
    return OPERATIONS.work(splits)(report, scope, label="name"), fastest_memory(report)


def fastest_memory(report: SystemReport) -> int:
    """The bandwidth of the fastest device memory of a report, in bytes per second; 0 if unknown."""
    speeds = report.frame("devices").ints("memory_bytes_per_s")
    return int(speeds.max(initial=0))
