"""ranks: every rank on one clock; which kernels differ between ranks; where ranks wait."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, TypeAlias

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.ranking import tally_durations
from nsightpy.analysis.ranks.kernels import imbalance_of
from nsightpy.commands.ranks import calls, clocks, stages
from nsightpy.query import (
    NAME_COLUMNS,
    Communication,
    NameStyle,
    Option,
    Parts,
    Question,
    Scope,
    SystemReport,
)
from nsightpy.query.command import command
from nsightpy.results import Field, Note, Said, Table, rows_of
from nsightpy.results.keys import KERNEL, row_keys
from nsightpy.units import group_text, listed

KERNEL_FIELDS = (
    Field("name", "name", importance=1),
    Field("ranks", importance=6),
    Field("total_med_ns", "time", 1, heading="median rank", importance=5),
    Field("total_max_ns", "time", heading="slowest rank", importance=4),
    Field("slowest_rank", "id", heading="which", importance=3),
    Field("max_over_mean", "ratio", 4, heading="slowest / mean", importance=2),
    Field("instances_min", heading="fewest launches", importance=7),
    Field("instances_max", heading="most launches", importance=8),
    Field("compared", "text"),
)
ALONE = Note("Imbalance needs at least two ranks.", "Give their reports, or their folder.")
MOST_NAMED = 6

# (pid, device) -> kernel name -> (instances, total ns)
Profiles: TypeAlias = dict[tuple[int, int], dict[str, tuple[int, int]]]


@command(
    layouts=(clocks.FIELDS, KERNEL_FIELDS, stages.FIELDS, calls.FIELDS),
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
        work = partial(_profiles, label=NAME_COLUMNS[name], communication=left)
        return Question(work, _kernel_table, identified=True)
    if by == "stage":
        return stages.question(left)
    return calls.question() if by == "call" else clocks.question(left)


def _kernel_table(parts: Parts[Profiles]) -> Table:
    """One row per kernel (and kind of work): its total time on a rank, median and largest."""
    profiles = [
        (_called(report, pid, device, part), profile)
        for report, part in parts.results
        for (pid, device), profile in part.items()
    ]
    profiles.sort(key=lambda pair: (isinstance(pair[0], str), pair[0]))
    names = [called for called, _ in profiles]
    kernels, kinds = imbalance_of([profile for _, profile in profiles])
    rows = rows_of(
        KERNEL_FIELDS,
        kernels,
        ranks=lambda kernel: len(kernel.ranks),
        total_max_ns=lambda kernel: round(kernel.total_max_ns),
        slowest_rank=lambda kernel: names[kernel.slowest],
        compared=lambda kernel: group_text([names[rank] for rank in kernel.ranks]),
    )
    return Table("ranks", KERNEL_FIELDS, rows, notes=tuple(_notes(kinds, names)))


def _profiles(
    report: SystemReport, scope: Scope, *, label: str, communication: tuple[str, ...]
) -> Profiles:
    """Instances and total time of every compute kernel on each device of each process."""
    kernels = scope.read(report, "kernels", ("pid", "device", "name", label))
    kernels = kernels.take(~is_communication(kernels.labels("name"), communication))
    statistics = tally_durations(kernels, ("pid", "device", label)).statistics()
    totals: Profiles = {}
    for pid, device, kernel, count, total in statistics.rows("instances", "total"):
        totals.setdefault((pid, device), {})[str(kernel)] = (count, total)
    return totals


def _called(report: SystemReport, pid: int, device: int, part: Profiles) -> int | str:
    """The rank, or what else distinguishes this device of this process."""
    rank, _ = report.rank_of(pid)
    whose = f"{report.path.stem}:{pid}" if rank is None else str(rank)
    if sum(owner == pid for owner, _ in part) > 1:
        return f"{whose}/{device}"
    return whose if rank is None else rank


def _notes(kinds: Sequence[Sequence[int]], names: Sequence[int | str]) -> list[Said]:
    if len(names) < 2:
        return [ALONE]
    if len(kinds) < 2:
        return []
    groups = [group_text([names[place] for place in kind]) for kind in kinds]
    shown = listed(groups, MOST_NAMED, "; ")
    return [f"Ranks do {len(kinds)} kinds of work and are compared within each: {shown}."]
