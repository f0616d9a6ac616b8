"""trace: every operation in time order, in the columns of nsys stats' traces."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Unpack

from nsightpy.commands.trace import (
    calls,
    congestion,
    executions,
    host_ranges,
    messages,
    operations,
    projections,
)
from nsightpy.commands.trace.cells import Place, in_time_order
from nsightpy.errors import UsageError, require_choice
from nsightpy.query.capture_advice import CUDA, CUDA_NVTX, not_recorded
from nsightpy.query.common_clock import CommonClock, common_clock
from nsightpy.query.parameters import NAME_COLUMNS
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport, Wanted
from nsightpy.results import Abstention, Field, LazyRows, Row, Table
from nsightpy.results.keys import API, KERNEL, RowKey

if TYPE_CHECKING:
    from nsightpy.frames import Ints


@dataclass(frozen=True)
class _Kind:
    """A listing: its columns, its rows, the column that they are in the order of, what is read of
    the frames whose rows are counted (None: rows are made to count them), the keys of rows."""

    fields: tuple[Field, ...]
    listing: Callable[[Place, Scope, str], Iterator[Row]]
    order: int
    read: Callable[[str], Wanted] | None = None
    recorded_by: str = CUDA
    identity: tuple[RowKey, ...] = ()


# What rows are about; a range's domain is in no column, so that its key is not known.
_KERNEL, _CALL = RowKey(KERNEL, ("Name",)), RowKey(API, ("Name",))
_LAUNCHED = RowKey(KERNEL, ("Kernel Name",))
LISTINGS = {
    "cuda_gpu_trace": _Kind(
        operations.FIELDS,
        operations.listing,
        0,
        operations.columns,
        identity=(_KERNEL,),
    ),
    "cuda_api_trace": _Kind(calls.FIELDS, calls.listing, 0, calls.columns, identity=(_CALL,)),
    "nvtx_gpu_proj_trace": _Kind(projections.FIELDS, projections.listing, 1, None, CUDA_NVTX),
    "nvtx_pushpop_trace": _Kind(host_ranges.FIELDS, host_ranges.listing, 0, None, CUDA_NVTX),
    "cuda_kern_exec_trace": _Kind(executions.FIELDS, executions.listing, 0, identity=(_LAUNCHED,)),
    "mpi_event_trace": _Kind(messages.FIELDS, messages.listing, 0, None, "-t mpi"),
    "network_congestion": _Kind(congestion.FIELDS, congestion.listing, 0, None, "--nic-metrics=lf"),
}
LAYOUTS = tuple(kind.fields for kind in LISTINGS.values())
MORE_FIELDS = (Field("rank", "id"), Field("report", "text"))


@command_function
def trace(
    reports: Paths,
    *,
    report: str | None = None,
    api: bool = False,
    nvtx_ranges: bool = False,
    launches: bool = False,
    mpi: bool = False,
    name: str = "demangled",
    top: int | None = None,
    **common: Unpack[Common],
) -> Table:
    """Kernels, copies and memory sets in time order: columns of `nsys stats -r cuda_gpu_trace`.

    `report`: another listing by its name: nvtx_pushpop_trace, network_congestion (intervals with
    more than 10,000 send waits a ms), cuda_api_trace (or `api`: API calls), nvtx_gpu_proj_trace (or
    `nvtx_ranges`: ranges projected onto the GPU), cuda_kern_exec_trace (or `launches`: API call,
    queue, kernel), mpi_event_trace (or `mpi`). Times in ns, MB = 10^6 bytes. Of several reports,
    times are on the clock of all ranks, and rank and report come behind the columns of nsys. Rows
    are read when they are looked at. Raises UsageError.
    """
    require_choice("name", name, NAME_COLUMNS)
    flags = {
        "cuda_api_trace": api,
        "nvtx_gpu_proj_trace": nvtx_ranges,
        "cuda_kern_exec_trace": launches,
        "mpi_event_trace": mpi,
    }
    kind = LISTINGS[_asked(report, [listing for listing, wanted in flags.items() if wanted])]
    request = Request.of(reports, **common)
    label, scope = NAME_COLUMNS[name], request.scope
    counts = request.map(partial(_count, kind=kind, scope=scope, name=label), ranked=True).results
    clock = common_clock(request.ranks)
    several = len(counts) > 1
    repeated = request.ranks.repeated if several else {}
    kept = [(report, count) for report, count in counts if report.path not in repeated]
    make = partial(_rows, [report for report, _ in kept], kind, scope, label, clock, several)
    rows = LazyRows(make, sum(count for _, count in kept))
    fields = (*kind.fields, *MORE_FIELDS) if several else kind.fields
    table = Table("trace", fields, rows, identity=kind.identity).first(top)
    notes = _notes([report for report, _ in kept], kind, scope, len(rows))
    return request.finish(table, *notes, *(clock.notes if several else ()))


def _asked(report: str | None, flags: list[str]) -> str:
    asked = [*flags, *([] if report is None else [report])]
    if len(asked) > 1:
        raise UsageError(
            "--report, --api, --nvtx-ranges, --launches, --mpi are listings: ask for one"
        )
    (name,) = asked or ["cuda_gpu_trace"]
    require_choice("report", name, LISTINGS)
    return name


def _count(report: SystemReport, *, kind: _Kind, scope: Scope, name: str) -> int:
    """The number of rows of a report."""
    if kind.read is not None:
        report.frame("devices")  # what these lack is a note, and rows are made after the notes
        stretches = in_time_order(report, kind.read(name), scope)
        return sum(frame.rows for stretch in stretches for frame in stretch.values())
    return sum(1 for _ in kind.listing(Place(report, _own_time), scope, name))


def _own_time(_: int, times: Ints) -> Ints:
    return times


def _rows(
    reports: list[SystemReport],
    kind: _Kind,
    scope: Scope,
    name: str,
    clock: CommonClock,
    several: bool,
) -> Iterator[Row]:
    """The rows of all reports in time order."""
    if not several:
        for report in reports:
            yield from kind.listing(Place(report, _own_time), scope, name)
        return
    streams = [_of_report(report, kind, scope, name, clock) for report in reports]
    yield from heapq.merge(*streams, key=lambda row: int(row[kind.order] or 0))


def _of_report(
    report: SystemReport, kind: _Kind, scope: Scope, name: str, clock: CommonClock
) -> Iterator[Row]:
    """The rows of one of several reports, with its rank and path."""
    place = Place(report, partial(clock.aligned, str(report.path)))
    ranks = {report.rank_of(pid)[0] for pid in report.pids}
    about = (ranks.pop() if len(ranks) == 1 else None, str(report.path))
    for row in kind.listing(place, scope, name):
        yield (*row, *about)


def _notes(reports: list[SystemReport], kind: _Kind, scope: Scope, rows: int) -> list[str]:
    if not rows:
        if kind.listing is executions.listing and (lost := executions.unlaunched(reports, scope)):
            return lost
        reason = "The capture holds none in scope."
        return [not_recorded(reason, kind.recorded_by, "records what is listed here")]
    if kind.listing is not operations.listing:
        return []
    graphs = sum(report.frame("graph_launches", ("start_ns",)).rows for report in reports)
    note = Abstention(
        f"{graphs:,} launches of CUDA graphs were traced as a whole: like nsys, this lists none of "
        "them.",
        "`nsys profile --cuda-graph-trace=node` records their kernels.",
    )
    return [note] if graphs else []
