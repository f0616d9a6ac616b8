"""imbalance: which kernels take longer on some ranks than on others that do the same work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TypeAlias, Unpack

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.ranking import tally_durations
from nsightpy.analysis.ranks.imbalance import Imbalance, KernelImbalance, imbalance_of
from nsightpy.errors import require_choice
from nsightpy.query.parameters import NAME_COLUMNS
from nsightpy.query.rank_alignment import group_text
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Abstention, Field, Table, Value

FIELDS = (
    Field("name", "text"),
    Field("ranks"),
    Field("total_med_ns", "ns", 1),
    Field("total_max_ns", "ns"),
    Field("slowest_rank", "id"),
    Field("max_over_mean", "ratio", 4),
    Field("instances_min"),
    Field("instances_max"),
    Field("compared", "text"),
)
ALONE = Abstention("Imbalance needs at least two ranks.", "Give their reports, or their folder.")
# A rank that captured this much less than the usual work is noted.
PARTIAL = 0.98

# (pid, device) -> kernel name -> (instances, total ns)
Part: TypeAlias = dict[tuple[int, int], dict[str, tuple[int, int]]]


@command_function
def imbalance(
    reports: Paths,
    *,
    name: str = "demangled",
    communication: Iterable[str] = (),
    top: int | None = None,
    **common: Unpack[Common],
) -> Table:
    """One row per kernel (and kind of work): its total time on a rank, median and largest, in ns.

    Only ranks that run the same kernels in the same proportions are compared; where they captured
    different amounts of it, totals are scaled to the usual amount. Communication kernels are left
    out. Most time lost beyond the mean first.
    """
    require_choice("name", name, NAME_COLUMNS)
    request = Request.of(reports, **common)
    work = partial(
        _profiles, label=NAME_COLUMNS[name], scope=request.scope, communication=tuple(communication)
    )
    mapped = request.map(work, ranked=True)
    profiles = [
        (_called(report, pid, device, part), profile)
        for report, part in mapped.results
        for (pid, device), profile in part.items()
    ]
    profiles.sort(key=lambda pair: (isinstance(pair[0], str), pair[0]))
    names = [called for called, _ in profiles]
    result = imbalance_of([profile for _, profile in profiles])
    rows = tuple(_row(row, names) for row in result.kernels)
    return request.finish(Table("imbalance", FIELDS, rows).first(top), *_notes(result, names))


def _profiles(
    report: SystemReport, *, label: str, scope: Scope, communication: tuple[str, ...]
) -> Part:
    """Instances and total time of every compute kernel on each device of each process."""
    names = ("name", label) if label != "name" else ("name",)
    columns = dict.fromkeys(("start_ns", "end_ns", "pid", "device", *names, *scope.columns))
    kernels = scope.narrow(report, report.frame("kernels", tuple(columns)))
    kernels = kernels.take(~is_communication(kernels.labels("name"), communication))
    tally = tally_durations(kernels, ("pid", "device", label))
    statistics = tally.statistics()
    totals: Part = {}
    for group, (pid, device, kernel) in enumerate(statistics.keys):
        if isinstance(pid, int) and isinstance(device, int):
            count, total = int(statistics.instances[group]), int(statistics.total[group])
            totals.setdefault((pid, device), {})[str(kernel)] = (count, total)
    return totals


def _called(report: SystemReport, pid: int, device: int, part: Part) -> int | str:
    """The rank, or what else distinguishes this device of this process."""
    rank, _ = report.rank_of(pid)
    whose = f"{report.path.stem}:{pid}" if rank is None else str(rank)
    if sum(owner == pid for owner, _ in part) > 1:
        return f"{whose}/{device}"
    return whose if rank is None else rank


def _row(row: KernelImbalance, names: Sequence[int | str]) -> tuple[Value, ...]:
    return (
        row.name,
        len(row.ranks),
        row.total_med_ns,
        round(row.total_max_ns),
        names[row.slowest],
        row.max_over_mean,
        row.instances_min,
        row.instances_max,
        group_text([names[place] for place in row.ranks]),
    )


def _notes(result: Imbalance, names: Sequence[int | str]) -> list[str]:
    if len(names) < 2:
        return [ALONE]
    notes = ["Communication kernels are left out: their time holds waiting (`nsightpy ranks`)."]
    if len(result.kinds) > 1:
        kinds = [group_text([names[place] for place in kind]) for kind in result.kinds]
        shown = "; ".join(kinds[:6]) + ("; ..." if len(kinds) > 6 else "")
        notes.append(f"Ranks do {len(kinds)} kinds of work and are compared within each: {shown}.")
    partly = [
        f"rank {names[place]} {100 * amount:.0f} %"
        for place, amount in sorted(result.amounts.items())
        if amount < PARTIAL or amount > 1 / PARTIAL
    ]
    if partly:
        shown = ", ".join(partly[:6]) + (", ..." if len(partly) > 6 else "")
        notes.append(f"Captured amounts of work differ ({shown}): totals are scaled to the usual.")
    return notes
