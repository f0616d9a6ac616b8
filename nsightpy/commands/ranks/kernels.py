"""Which kernels take longer on some ranks than on others that do the same work."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.ranking import tally_durations
from nsightpy.analysis.ranks.imbalance import Imbalance, imbalance_of
from nsightpy.query.engine import Parts, Question
from nsightpy.query.options import NAME_COLUMNS
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Note, Said, Table, rows_of
from nsightpy.units import group_text, listed

FIELDS = (
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
# A rank that captured this much less than the usual work is noted.
PARTIAL = 0.98
MOST_NAMED = 6

# (pid, device) -> kernel name -> (instances, total ns)
Profiles: TypeAlias = dict[tuple[int, int], dict[str, tuple[int, int]]]


def question(name: str, communication: tuple[str, ...]) -> Question[Table]:
    """One row per kernel (and kind of work): its total time on a rank, median and largest."""
    work = partial(_profiles, label=NAME_COLUMNS[name], communication=communication)
    return Question(work, _table, identified=True)


def _table(parts: Parts[Profiles]) -> Table:
    profiles = [
        (_called(report, pid, device, part), profile)
        for report, part in parts.results
        for (pid, device), profile in part.items()
    ]
    profiles.sort(key=lambda pair: (isinstance(pair[0], str), pair[0]))
    names = [called for called, _ in profiles]
    result = imbalance_of([profile for _, profile in profiles])
    rows = rows_of(
        FIELDS,
        result.kernels,
        ranks=lambda kernel: len(kernel.ranks),
        total_max_ns=lambda kernel: round(kernel.total_max_ns),
        slowest_rank=lambda kernel: names[kernel.slowest],
        compared=lambda kernel: group_text([names[rank] for rank in kernel.ranks]),
    )
    return Table("ranks", FIELDS, rows, notes=tuple(_notes(result, names)))


def _profiles(
    report: SystemReport, scope: Scope, *, label: str, communication: tuple[str, ...]
) -> Profiles:
    """Instances and total time of every compute kernel on each device of each process."""
    kernels = scope.read(report, "kernels", ("pid", "device", "name", label))
    kernels = kernels.take(~is_communication(kernels.labels("name"), communication))
    statistics = tally_durations(kernels, ("pid", "device", label)).statistics()
    totals: Profiles = {}
    for group, (pid, device, kernel) in enumerate(statistics.keys):
        if isinstance(pid, int) and isinstance(device, int):
            count, total = int(statistics.instances[group]), int(statistics.total[group])
            totals.setdefault((pid, device), {})[str(kernel)] = (count, total)
    return totals


def _called(report: SystemReport, pid: int, device: int, part: Profiles) -> int | str:
    """The rank, or what else distinguishes this device of this process."""
    rank, _ = report.rank_of(pid)
    whose = f"{report.path.stem}:{pid}" if rank is None else str(rank)
    if sum(owner == pid for owner, _ in part) > 1:
        return f"{whose}/{device}"
    return whose if rank is None else rank


def _notes(result: Imbalance, names: Sequence[int | str]) -> list[Said]:
    if len(names) < 2:
        return [ALONE]
    notes: list[Said] = []
    if len(result.kinds) > 1:
        kinds = [group_text([names[place] for place in kind]) for kind in result.kinds]
        shown = listed(kinds, MOST_NAMED, "; ")
        notes.append(f"Ranks do {len(kinds)} kinds of work and are compared within each: {shown}.")
    partly = [
        f"rank {names[place]} {100 * amount:.0f} %"
        for place, amount in sorted(result.amounts.items())
        if amount < PARTIAL or amount > 1 / PARTIAL
    ]
    if partly:
        shown = listed(partly, MOST_NAMED)
        notes.append(f"Captured amounts of work differ ({shown}): totals are scaled to the usual.")
    return notes
