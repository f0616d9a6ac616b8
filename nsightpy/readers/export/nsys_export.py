"""From a .nsys-rep to its SQLite export: beside it, in the cache, or made by `nsys export`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from nsightpy.errors import ReportError, ToolNotFoundError
from nsightpy.readers.export.environment import remove_environment
from nsightpy.readers.export.nsys_run import OPTIONS, run_export
from nsightpy.readers.tools.file_check import MAGIC, file_errors, has_suffix, size_of_regular
from nsightpy.readers.tools.nvidia_tools import Tool, find_tool
from nsightpy.readers.tools.signals import signals_raise
from nsightpy.store import cache

REPORT_SUFFIXES = (".nsys-rep", ".qdrep")

Progress = Callable[[float | None, str], None]


@dataclass(frozen=True)
class ExportedReport:
    """An SQLite export that can be read, and what the user should know about it."""

    path: Path
    notes: tuple[str, ...] = ()


def sqlite_of(
    report: Path, *, use_cache: bool = True, progress: Progress | None = None
) -> ExportedReport:
    """The SQLite export of a report; a file that is SQLite already is returned as it is.

    Nothing is written beside the report. Without `use_cache` the export lasts as long as the
    process. `progress` gets the done fraction (None: unknown) and what is being done.
    Raises ReportError, ToolNotFoundError, ToolFailedError, and UsageError for a bad variable.
    """
    report = report.absolute()
    if _is_sqlite(report):
        return ExportedReport(report)
    beside = report.with_suffix(".sqlite")
    fault = _fault_beside(report, beside)
    if fault is None:
        return ExportedReport(beside, (f"read from the export beside the report, {beside.name}",))
    notes = (f"{beside.name} beside the report was not used: {fault}",) if fault else ()
    name = _entry_name(report)
    entry = (cache.cache_folder() if use_cache else cache.session_folder()) / name
    if export_fault(entry) is not None:
        if use_cache:
            cache.cache_limit()
        _export(report, entry, _nsys(report, beside if fault else None), progress)
        if use_cache:
            cache.trim_cache(keep=entry)
    return ExportedReport(cache.mark_used(entry), notes)


def export_fault(path: Path) -> str | None:
    """What keeps a file from being a usable export; None if nothing does."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
        journal = path.with_name(f"{path.name}-journal")
        if journal.exists() and journal.stat().st_size:
            return f"it was not written to its end ({journal.name} is left)"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if magic != MAGIC:
        return "it is no SQLite file" if magic else "it is empty"
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.execute("SELECT count(*) FROM (SELECT 1 FROM StringIds LIMIT 1)").fetchone()
    except sqlite3.Error as error:
        return f"it is no complete export ({error})"
    return None


def _is_sqlite(report: Path) -> bool:
    """Whether the file is SQLite. Raises ReportError for what is neither SQLite nor a report."""
    with file_errors(report):
        if report.is_dir():
            raise ReportError(report, "is a folder, not a report", "Name the report in it.")
        size_of_regular(report)
        with report.open("rb") as file:
            magic = file.read(len(MAGIC))
    if magic == MAGIC:
        return True
    if report.suffix.lower() == ".qdstrm":
        problem = "holds raw events that were not imported yet"
        advice = "Import it with the QdstrmImporter of Nsight Systems, then read the .nsys-rep."
        raise ReportError(report, problem, advice)
    if not has_suffix(report, REPORT_SUFFIXES):
        wanted = f"Give a {' or '.join(REPORT_SUFFIXES)} file, or its SQLite export."
        raise ReportError(report, "is no Nsight Systems report", wanted)
    if not magic:
        advice = "Copy it again; the profiler writes it only when the profiled program has ended."
        raise ReportError(report, "is empty", advice)
    return False


def _fault_beside(report: Path, beside: Path) -> str | None:
    """Why the export beside a report is not used; None if it is, "" if there is none."""
    try:
        stale = beside.stat().st_mtime_ns < report.stat().st_mtime_ns
    except OSError:
        return ""
    return "it is older than the report" if stale else export_fault(beside)


def _entry_name(report: Path) -> str:
    with file_errors(report):
        return cache.entry_name(report, " ".join(OPTIONS))


def _nsys(report: Path, unused: Path | None) -> Tool:
    """The nsys to export with; the error without one says all that can be done."""
    try:
        return find_tool("nsys")
    except ToolNotFoundError as missing:
        advice = (
            f"{missing.advice} Or run `nsys export --type sqlite {report.name}` where nsys is, "
            "and give the .sqlite instead."
        )
        if unused is not None:
            advice += f" To use {unused} nonetheless, give that file itself."
        raise ToolNotFoundError(report, missing.problem, advice) from None


def _export(report: Path, entry: Path, nsys: Tool, progress: Progress | None) -> None:
    """Make the export unless another process does so meanwhile."""
    tell = progress or (lambda fraction, text: None)
    doing = f"exporting {report.name} with nsys {nsys.version_text}"

    def waiting() -> None:
        tell(None, f"waiting for another process that is exporting {report.name}")

    with signals_raise(), cache.building(entry, waiting) as part:
        if export_fault(entry) is None:
            return
        tell(None, doing)
        exported = part / "export.sqlite"
        run_export(nsys, report, exported, export_fault, lambda fraction: tell(fraction, doing))
        if _entry_name(report) != entry.name:
            advice = "Wait until the profiler has finished writing it, then try again."
            raise ReportError(report, "changed while it was being exported", advice)
        remove_environment(exported)
        cache.publish(exported, entry)
    tell(1.0, doing)
