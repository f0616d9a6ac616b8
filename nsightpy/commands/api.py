"""api: where the host's time in CUDA calls went, as nsys stats cuda_api_sum counts it; also in
MPI, cuBLAS, cuDNN and the operating system's calls (osrt_sum)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Unpack

from nsightpy.analysis import ranking
from nsightpy.analysis.tally import Tally, merge
from nsightpy.errors import require_choice
from nsightpy.frames import Frame
from nsightpy.query.capture_advice import not_recorded
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.query.splits import distinct_parts, parse_splits, shown, split_field
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Table

_COLUMNS = ("start_ns", "end_ns", "name", "event_class")
_CALLS = ("start_ns", "end_ns", "pid", "tid", "name")
# Library -> its frame, and the value of the frame's `library` column.
LIBRARIES = {
    "cuda": ("api_calls", ""),
    "mpi": ("mpi_calls", ""),
    "cublas": ("library_calls", "cuBLAS"),
    "cudnn": ("library_calls", "cuDNN"),
    "osrt": ("os_calls", ""),
}
SPLITS = ("rank", "process")
FIELDS = ranking.time_fields("Num Calls")
MORE_FIELDS = tuple(map(split_field, SPLITS))


@command_function
def api(
    reports: Paths,
    *,
    library: str = "cuda",
    by: str | Iterable[str] = (),
    top: int | None = None,
    **common: Unpack[Common],
) -> Table:
    """API functions by total host time; columns of `nsys stats --report cuda_api_sum`, ns.

    `library`: cuda, mpi, cublas, cudnn or osrt (as osrt_sum). `by`: rank, process. A call belongs
    to a process, not to a device: `device` does not narrow it. Raises UsageError.
    """
    require_choice("library", library, LIBRARIES)
    splits = parse_splits(by, SPLITS)
    request = Request.of(reports, **common)
    path_parts = distinct_parts(request.ranks.inputs)
    work = partial(
        _tally, library=library, splits=splits, scope=request.scope, path_parts=path_parts
    )
    parts = request.map(work, ranked="rank" in splits).values
    statistics = merge([part for part, _ in parts]).statistics()
    fields = list(map(split_field, splits))
    table = ranking.rank_by_time("api", statistics, fields, count="Num Calls")
    dropped = sum(count for _, count in parts)
    return request.finish(
        table.first(top, of_each="rank"), *_notes(request.scope, dropped, library, table)
    )


def _tally(
    report: SystemReport, *, library: str, splits: Sequence[str], scope: Scope, path_parts: int
) -> tuple[Tally, int]:
    """Durations per (splits..., function), and how many rows are no calls of their own."""
    rows = _cuda(report, scope, splits) if library == "cuda" else _other(report, scope, library)
    calls = ranking.calls(rows) if library == "cuda" else rows
    tally = ranking.tally_durations(calls, [*("pid" for _ in splits), "name"])
    return shown(tally, report, splits, path_parts), rows.rows - calls.rows


def _cuda(report: SystemReport, scope: Scope, splits: Sequence[str]) -> Frame:
    columns = [c for c in scope.columns if c != "device"]
    columns += ["pid"] if splits and "pid" not in columns else []
    return scope.narrow(report, report.frame("api_calls", (*_COLUMNS, *columns)))


def _other(report: SystemReport, scope: Scope, library: str) -> Frame:
    name, kind = LIBRARIES[library]
    columns = (*_CALLS, "library") if kind else _CALLS
    frame = scope.narrow(report, report.frame(name, columns))
    return frame.take(frame.labels("library").equals([kind])) if kind else frame


def _notes(scope: Scope, dropped: int, library: str, table: Table) -> list[str]:
    notes: list[str] = []
    if dropped:
        notes.append(f"{dropped:,} rows only repeat a call to carry its backtrace: not counted.")
    if scope.devices is not None:
        notes.append("API calls belong to no device: --device does not narrow them.")
    if library != "cuda" and not table.rows:
        reason = "The capture holds no calls of this library."
        notes.append(not_recorded(reason, f"-t {library}"))
    return notes
