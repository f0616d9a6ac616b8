"""api: where the host's time in API calls went, as nsys stats cuda_api_sum counts it."""

from collections.abc import Iterable
from typing import Annotated

from nsightpy.commands.stats.operations import LIBRARIES
from nsightpy.query import Option, Question
from nsightpy.query.command import command
from nsightpy.query.splits import parse_splits, split_field
from nsightpy.results import Table

_SPLITS = ("rank", "process")
_CUDA = LIBRARIES["cuda"]


@command(*_CUDA.fields, more=tuple(map(split_field, _SPLITS)), keys=_CUDA.identity)
def api(
    *,
    library: Annotated[
        str, Option("Whose calls; osrt is the operating system's.", choices=tuple(LIBRARIES))
    ] = "cuda",
    by: Annotated[str | Iterable[str], Option("Split by rank, process.", "LIST")] = "",
) -> Question[Table]:
    """Columns and figures are those of `nsys stats --report cuda_api_sum`; times in ns.

    With --library osrt they are those of osrt_sum; --library mpi --by rank shows how long each rank
    was in each MPI call. A call belongs to a process, not to a device.
    """
    about = LIBRARIES[library]
    question = about.question("api", splits=parse_splits(by, _SPLITS))
    return question if library == "cuda" else about.explained(question)
