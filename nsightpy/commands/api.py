"""api: where the host's time in API calls went, as nsys stats cuda_api_sum counts it."""

from collections.abc import Iterable
from typing import Annotated

from nsightpy.commands.stats.operations import CALLS
from nsightpy.query import Option, Question
from nsightpy.query.command import command
from nsightpy.query.splits import parse_splits, split_field
from nsightpy.results import Table

_SPLITS = ("rank", "process")


@command(*CALLS.fields, more=tuple(map(split_field, _SPLITS)), keys=CALLS.identity)
def api(
    *, by: Annotated[str | Iterable[str], Option("Split by rank, process.", "LIST")] = ""
) -> Question[Table]:
    """Columns and figures are those of `nsys stats --report cuda_api_sum`; times in ns. A call
    belongs to a process, not to a device. Those of MPI and of the operating system: `nsightpy stats
    -r mpi_event_sum`, -r osrt_sum.
    """
    return CALLS.question("api", splits=parse_splits(by, _SPLITS))
