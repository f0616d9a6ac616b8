"""ranks: every rank on one clock, and where ranks differ or wait for each other."""

from __future__ import annotations

from typing import Annotated

from nsightpy.commands.ranks import calls, clocks, kernels, stages
from nsightpy.query.command import command
from nsightpy.query.engine import Question
from nsightpy.query.options import Communication, NameStyle, Option
from nsightpy.results import Table
from nsightpy.results.keys import KERNEL, row_keys


@command(
    layouts=(clocks.FIELDS, kernels.FIELDS, stages.FIELDS, calls.FIELDS),
    keys=row_keys(KERNEL, "name"),
)
def ranks(
    *,
    by: Annotated[
        str,
        Option(
            "A row per rank; kernel, whose time differs between ranks; pipeline stage; or call of "
            "MPI in which ranks wait.",
            choices=("rank", "kernel", "stage", "call"),
        ),
    ] = "rank",
    communication: Communication = (),
    name: NameStyle = "demangled",
) -> Question[Table]:
    """offset_ns is how far a rank's clock was ahead of the first rank's when its session began,
    beyond what the report itself corrects; drift_ppm what it gains from then on, empty where the
    capture is too short for one (offset_ns then is that of its middle); both are found from the
    ends of shared collectives, with percentiles of what remains. Where alignment is MPI, the first
    and last residual are the ends of the interval that MPI calls leave. wait_ns is the time in
    collectives before the last rank came. A straggler is named only where one rank is last far
    beyond chance, waits least, and delays the others.

    By kernel: ranks that run the same kernels in the same proportions are compared, most time lost
    beyond the mean first; where they captured different amounts, totals are scaled to the usual
    one. Communication kernels are left out: their time holds waiting.

    By stage: stages are chains of ranks that hand each other data by NCCL's Send and Recv, two by
    two, numbered from the end with the lowest rank. A bubble is time in which a rank waits for its
    neighbour and its device does nothing else; transfer is the rest of its exchanges that nothing
    hides. Times are means of a stage's ranks and add up to the window.

    By call: late sender: in a receive before its send began; late receiver: in a blocking send
    before its receive began; wait at barrier, at n-to-n: until the last rank came; late broadcast:
    for the root; early reduce: the root, until the last rank came. caused_by is the rank that most
    of it was waited for; gpu_idle_ns for how long no device of the process did anything meanwhile.
    """
    left = tuple(communication)
    if by == "kernel":
        return kernels.question(name, left)
    if by == "stage":
        return stages.question(left)
    return calls.question() if by == "call" else clocks.question(left)
