"""What files, folders and patterns stand for, in natural order of their names: reports of one job
as a rank set, those of Nsight Compute and memory snapshots (only their names give ranks), or what
there is of each."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Any, TypeAlias, TypeVar

from nsightpy.errors import ReportError, UsageError
from nsightpy.readers.ncu.file import NCU_SUFFIXES
from nsightpy.readers.nsys.identity import rank_expression
from nsightpy.readers.tools.file_check import (
    KINDS,
    NSYS_SUFFIXES,
    file_errors,
    is_regular,
    resolved,
)
from nsightpy.readers.torch.pieces import latest_cycles
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.report_sets.report_set import SKIP, Progress, ReportSet
from nsightpy.reports.one_file import MemorySnapshot, NcuReport, WholeFile, name_ranks
from nsightpy.reports.opening import (
    files_of,
    first_hand,
    in_order,
    is_ncu_file,
    is_nsys_name,
    is_snapshot_file,
    is_system_report,
    natural,
    open_report,
)
from nsightpy.reports.profiles import NsysReport, TorchTrace
from nsightpy.reports.system import SystemReport


def find_reports(given: str | Path) -> list[Path]:
    """The reports of a whole system behind one path; of a report and its export, the report.

    Of the traces that one process wrote one after the other, the last one.
    """
    return latest_cycles(_reports_behind(given))


def _reports_behind(given: str | Path) -> list[Path]:
    """The same with earlier traces of a process."""
    path = Path(given)
    files = files_of(given)
    if files is None:
        return [path]
    if path.is_dir():
        reports = [p for p in files if is_system_report(p)]
        if not reports:
            problem = "holds no Nsight Systems report and no PyTorch trace"
            raise ReportError(path, problem, _instead(given, files))
        files = reports
    elif not files:
        raise ReportError(path, "matches no file", "check the pattern.")
    return in_order(first_hand(files, NSYS_SUFFIXES))


def _instead(given: str | Path, files: Sequence[Path]) -> str:
    """What to do with a path that stands for these files, none of which is of the wanted kind."""
    kinds = (is_system_report, is_ncu_file, is_snapshot_file)
    for command, fits in zip(("summarize", "roofline", "memory-usage"), kinds, strict=True):
        if any(map(fits, filter(is_regular, files))):
            return f"`nsightpy {command} {quote(str(given))}` reads it."
    return f"{KINDS}."


def find_ncu_reports(given: str | Path) -> list[Path]:
    """The Nsight Compute files behind one path; of a report and its CSV, the report."""
    path, files = Path(given), files_of(given)
    found = [p for p in files or () if is_regular(p) and is_ncu_file(p)]
    if not found and (files is not None or is_system_report(path)):
        advice = _instead(given, files or [path])
        raise ReportError(path, "holds no Nsight Compute report", advice)
    return in_order(first_hand(found or [path], NCU_SUFFIXES))


def find_snapshots(given: str | Path) -> list[Path]:
    """The memory snapshots behind one path; none where reports of nsys lie beside them."""
    path = Path(given)
    files = files_of(given)
    with file_errors(path):
        regular = [p for p in files or [path] if is_regular(p)]
        snapshots = sorted(filter(is_snapshot_file, regular))
    return [] if files and any(map(is_nsys_name, regular)) else snapshots


Paths: TypeAlias = str | Path | SystemReport | RankSet | Iterable[str | Path | SystemReport]


def open_ranks(
    paths: Paths,
    *,
    use_cache: bool = True,
    rank_regex: str | None = None,
    jobs: int | None = None,
    dask: object = None,
    on_error: str = SKIP,
    progress: Progress | None = None,
) -> RankSet:
    """Open reports, folders and globs as one rank set, in natural order of their names.

    Each report counts once: however often it is named, and when its own export lies beside it.
    jobs: worker processes; dask: a scheduler's address or file, or a Client.
    Raises ReportError when nothing there is a report.
    """
    if isinstance(paths, RankSet):
        return paths
    if rank_regex is not None:
        rank_expression(rank_regex)
    given = [paths] if isinstance(paths, str | Path | SystemReport) else list(paths)
    paths_given = [item for item in given if isinstance(item, str | Path)]
    named = set(map(Path, paths_given))
    chosen, others = _files_of(paths_given)
    settings: dict[str, Any] = {
        "use_cache": use_cache,
        "rank_regex": rank_regex,
        "progress": progress,
    }
    opened = [item for item in given if isinstance(item, SystemReport)]
    opened += [_opened(path, len(chosen) == 1 or path in named, settings) for path in chosen]
    reports: dict[Path, SystemReport] = {}
    for ranked in opened:
        ranked.threads = 1 if jobs == 1 else None
        reports.setdefault(resolved(ranked.path), ranked)
    if not reports:
        raise UsageError("no reports given")
    ordered = sorted(reports.values(), key=lambda report: natural(str(report.path)))
    _refuse_mixture(ordered)
    ranks = RankSet(ordered, jobs=jobs, dask=dask, on_error=on_error, progress=progress)
    ranks.passed_by = tuple(sorted(others))
    return ranks


def _refuse_mixture(reports: Sequence[SystemReport]) -> None:
    """Raise ReportError for reports of both tools: their clocks and names have little in common."""
    first = {report.kind: report.path for report in reversed(reports)}
    if len(first) > 1:
        problem = f"is a PyTorch trace, and {first[NsysReport.kind]} is a report of Nsight Systems"
        advice = "one rank set holds reports of one tool: give the files of one of them."
        raise ReportError(first[TorchTrace.kind], problem, advice)


def _files_of(given: Iterable[str | Path]) -> tuple[list[Path], set[Path]]:
    """The reports that are meant, and earlier traces of their processes, which are not read."""
    behind = [_reports_behind(item) for item in given]
    latest = dict.fromkeys(path for files in behind for path in latest_cycles(files))
    return first_hand(latest, NSYS_SUFFIXES), set(chain.from_iterable(behind)) - latest.keys()


def _opened(path: Path, is_wanted: bool, settings: dict[str, Any]) -> SystemReport:
    """One report. Raises ReportError where it is of another kind, or wanted and damaged."""
    try:
        report = open_report(path, **settings)
    except ReportError:
        if is_wanted:
            raise
        # it fails again when it is read, and is left out then as any damaged report
        return NsysReport(path, **settings)
    if not isinstance(report, SystemReport):
        kind, command = "a memory snapshot of PyTorch", "memory-usage"
        if isinstance(report, NcuReport):
            kind, command = "an Nsight Compute report", "roofline"
        problem = f"is {kind}, and this needs reports of Nsight Systems or traces"
        advice = f"`nsightpy {command} {quote(str(report.path))}` reads it."
        raise ReportError(report.path, problem, advice)
    return report


NcuPaths: TypeAlias = str | Path | NcuReport | Iterable[str | Path | NcuReport]
F = TypeVar("F", bound=WholeFile)


def open_ncu_reports(
    paths: NcuPaths,
    *,
    rank_regex: str | None = None,
    jobs: int | None = None,
    dask: object = None,
    on_error: str = SKIP,
    progress: Progress | None = None,
) -> ReportSet[NcuReport]:
    """Open Nsight Compute reports, folders and globs, in natural order, with their ranks.

    Raises ReportError when nothing there is a report.
    """
    given = [paths] if isinstance(paths, str | Path | NcuReport) else list(paths)
    reports = _each_once(NcuReport, given, find_ncu_reports, rank_regex)
    if not reports:
        raise UsageError("no reports given")
    reports.sort(key=lambda report: natural(str(report.path)))
    return ReportSet(reports, jobs=jobs, dask=dask, on_error=on_error, progress=progress)


def open_snapshots(
    paths: Iterable[str | Path | MemorySnapshot], *, rank_regex: str | None = None
) -> list[MemorySnapshot]:
    """Open memory snapshots, folders and globs, in the order given, with their ranks."""
    return _each_once(MemorySnapshot, paths, find_snapshots, rank_regex)


def _each_once(
    kind: type[F],
    paths: Iterable[str | Path | F],
    find: Callable[[str | Path], list[Path]],
    rank_regex: str | None,
) -> list[F]:
    """The reports given or found behind paths, each once, with the ranks in their names."""
    reports: dict[Path, F] = {}
    for given in paths:
        for report in map(kind, find(given)) if isinstance(given, str | Path) else [given]:
            reports.setdefault(resolved(report.path), report)
    name_ranks(reports.values(), rank_regex)
    return list(reports.values())


Item: TypeAlias = str | Path | SystemReport | NcuReport | MemorySnapshot
AnyPaths: TypeAlias = Item | RankSet | Iterable[Item]


def split_by_tool(
    reports: AnyPaths,
) -> tuple[
    RankSet | list[str | Path | SystemReport], list[str | Path | NcuReport], list[MemorySnapshot]
]:
    """What is given for Nsight Systems, for Nsight Compute, and memory snapshots.

    A folder may hold all of them.
    """
    if isinstance(reports, RankSet):
        return reports, [], []
    single = isinstance(reports, str | Path | SystemReport | NcuReport | MemorySnapshot)
    given: list[Item] = [reports] if single else list(reports)  # type: ignore[arg-type, list-item]
    systems, compute, snapshots = list[Any](), list[Any](), list[Any]()
    for item in given:
        of_each: Iterable[Sequence[object]] = ([item] * isinstance(item, kind) for kind in _KINDS)
        if isinstance(item, str | Path):
            of_each = _behind(item)
        for every, found in zip((systems, compute, snapshots), of_each, strict=True):
            every.extend(found)
    return systems, compute, open_snapshots(snapshots)


_KINDS = (SystemReport, NcuReport, MemorySnapshot)


def _behind(path: str | Path) -> Iterable[Sequence[str | Path]]:
    """What a path stands for of each kind: of systems where it is of neither other one."""
    files = files_of(path)
    regular = [file for file in files or [Path(path)] if is_regular(file)]
    compute = [file for file in regular if is_ncu_file(file)]
    snapshots = [file for file in regular if is_snapshot_file(file) and file not in compute]
    if not (compute or snapshots):
        return [path], [], []
    others: list[str | Path] = [file for file in regular if file not in (*compute, *snapshots)]
    if Path(path).is_dir():
        others = [path] if any(is_system_report(Path(file)) for file in others) else []
    return others, find_ncu_reports(path) if compute else [], sorted(snapshots)
