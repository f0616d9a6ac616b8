"""collectives: NCCL operations by size and group: transfer and wait, bandwidth, who is late."""

from nsightpy.analysis.ranks.arrivals import arrivals_of
from nsightpy.analysis.ranks.collective_groups import (
    Abnormal,
    GroupedCollective,
    grouped_collectives,
)
from nsightpy.query import Parts, Question
from nsightpy.query.command import command
from nsightpy.query.rank_alignment import RankPart, UnitNames, align_parts, once, rank_part
from nsightpy.results import Field, Note, Said, Table, rows_of
from nsightpy.results.keys import COLLECTIVE, row_keys
from nsightpy.units import format_bytes

FIELDS = (
    Field("operation", "name", importance=1),
    Field("group", "text", importance=2),
    Field("ranks", importance=10),
    Field("instances", heading="count", importance=4),
    Field("bytes", "bytes", heading="size", importance=3),
    Field("duration_med_ns", "time", 1, heading="median", importance=6),
    Field("transfer_med_ns", "time", 1, heading="median transfer", importance=7),
    Field("jitter_med_ns", "time", 1, heading="median jitter", importance=11),
    Field("algbw_gb_per_s", "GB/s", 3, heading="alg GB/s", importance=12),
    Field("busbw_gb_per_s", "GB/s", 3, heading="bus GB/s", importance=5),
    Field("last_rank", "id", heading="last rank", importance=8),
    Field("last_share", "share", 4, importance=9),
    Field("abnormal", importance=13),
    Field("busbw_with_wait_gb_per_s", "GB/s", 3, heading="bus GB/s with wait"),
)
NO_SIZES = Note(
    "No bandwidth where bytes is empty: the captures lack these sizes (kernels of other "
    "libraries than NCCL never have them).",
    "They are in NCCL's NVTX payload: NCCL 2.16 and `nsys profile -t cuda,nvtx`, and an "
    "export with `--include-json true` (nsys 2025 on).",
    "They are arguments of NCCL's kernels, which PyTorch 2.3 and later write.",
)
TORN = Note(
    "Of groups with a question mark not all ranks were captured: their arrivals are unknown.",
    "Profile every rank of the job and give all reports.",
)
DOUBTFUL = Note(
    "Some groups are not known: their collectives end as those of one group and of several would, "
    "and are shown as one group's.",
    "NCCL's NVTX payload names the groups.",
    "PyTorch 2.3 and later write the groups as arguments of NCCL's kernels.",
)


@command(
    layouts=(FIELDS,),
    keys=row_keys(COLLECTIVE, "operation", "bytes", "ranks"),
    picture="nsightpy.render.plots.collectives_plot:collectives_figure",
)
def collectives() -> Question[Table]:
    """Most time first. bytes is S, the size of the whole operation (AllGather, ReduceScatter,
    AllToAll: n times what one rank passes); transfer the shortest participant's duration, jitter
    what a rank waits beyond it, all of them medians; algbw = S / transfer, busbw as nccl-tests
    counts it, both in GB/s of 10^9 bytes. busbw_with_wait is that of the whole duration; it is
    known for one rank alone, too. abnormal counts the instances far beyond the median of their
    kind.
    """
    return Question(rank_part, _table, identified=True)


def _table(parts: Parts[RankPart]) -> Table:
    alignment = align_parts(once(parts.ranks, parts.results))
    names = UnitNames.of(alignment)
    units = {
        place
        for place, unit in enumerate(alignment.ledger.units)
        if parts.scope.includes(alignment.clocks[unit.clock].rank, unit.device)
    }
    found = grouped_collectives(alignment, arrivals_of(alignment))
    shown = [collective for collective in found if units.intersection(collective.units)]
    rows = rows_of(
        FIELDS,
        shown,
        operation=lambda collective: collective.signature.operation,
        group=lambda collective: names.group(collective.units, collective.size),
        last_rank=lambda c: None if c.last_unit is None else names.names[c.last_unit],
        abnormal=lambda collective: len(collective.abnormal),
    )
    notes = (
        (NO_SIZES, any(collective.signature.bytes < 0 for collective in shown)),
        (TORN, any(collective.size > len(collective.units) for collective in shown)),
        (DOUBTFUL, any(group.doubtful for group in alignment.ledger.communicators)),
    )
    told: list[Said] = [note for note, holds in notes if holds]
    return Table("collectives", FIELDS, rows, notes=(*told, *alignment.notes))


def called(collective: GroupedCollective, names: UnitNames) -> str:
    """A collective as notes call it: operation, size and group."""
    size = "" if collective.bytes is None else f" of {format_bytes(collective.bytes)}"
    group = names.group(collective.units, collective.size)
    return f"{collective.signature.operation}{size} in {group}"


def cause_of(bad: Abnormal, names: UnitNames) -> str:
    """Why an instance was slow, as far as it is known."""
    if bad.late_unit is not None:
        return f"it waited for rank {names.names[bad.late_unit]}"
    if not bad.whole:
        return "whether it waited is not known, since no other rank was captured"
    return "the transfer itself was slow"
