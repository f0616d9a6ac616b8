"""From a .nsys-rep to its SQLite export: beside it, in the cache, or made by `nsys export`.

Those that we make hold nothing of the profiled job's environment but the keys of ranks.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from nsightpy.errors import ReportError, ToolFailedError, ToolNotFoundError
from nsightpy.readers.nsys.identity import RANK_KEYS, rank_variables
from nsightpy.readers.tools.file_check import (
    MAGIC,
    check_file,
    file_errors,
    file_size,
    size_of_regular,
)
from nsightpy.readers.tools.nvidia_tools import Tool, find_tool, run_tool
from nsightpy.readers.tools.signals import signals_raise
from nsightpy.store import cache

Progress = Callable[[float | None, str], None]

# What we ask for beyond the bare export; each is left out where nsys is too old for it.
OPTIONS = ("--lazy=true", "--include-json=true")
_KEPT_LINES = 15
_KEPT_CHARACTERS = 300
_STYLE = re.compile(r"\x1b\[[\d;]*m")
_REJECTED = re.compile(r"unrecogni[sz]ed option '?(--[\w-]+)")
_NEWER = (
    "The report needs nsys {0} or later, and {nsys} is {version}: update Nsight Systems, or "
    "run `nsys export --type sqlite` where the report was captured and give the .sqlite instead."
)
_NO_SPACE = (
    "nsys could not write to {folder}: free some space there, or set NSIGHTPY_CACHE_DIR "
    "(TMPDIR when the cache is off) to another folder."
)
_DAMAGED = (
    "The report is truncated or damaged: copy it again, and let the profiler finish writing it."
)
_NO_HOST = (
    "This nsys lacks its host libraries: install the complete Nsight Systems, or set "
    "NSIGHTPY_NSYS to the nsys of one."
)
_NO_LOCKS = (
    "The file system of {folder} has no file locks: set NSIGHTPY_CACHE_DIR to a local folder."
)
_CAUSES = (
    (r"in Nsight Systems version \(?([^),]+)\)?,\s+newer than", _NEWER),
    (r"Version number is invalid: ([\d@.]+)", _NEWER),
    (r"magic number mismatch|Cannot read from stream", _DAMAGED),
    ("database is locked", _NO_LOCKS),
    (r"unable to open database file|is full|No space left|disk I/O error", _NO_SPACE),
    (r"[Ii]mporter\b.*not found", _NO_HOST),
    (r"", "Try `nsys export --type sqlite` on it by hand; {nsys} was used."),
)
# Where exports hold the environment of the profiled job.
_CAPTURE = ("META_DATA_CAPTURE", "name LIKE '%ENVIRONMENT_VARIABLE'")
_SYSTEM = ("TARGET_INFO_SYSTEM_ENV", "name = 'DeviceEnvironment'")


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
        return ExportedReport(beside)
    notes = (f"{beside.name} beside the report was not used: it {fault}.",) if fault else ()
    name = _entry_name(report)
    entry = (cache.cache_folder() if use_cache else cache.session_folder()) / name
    if export_fault(entry) is not None:
        if use_cache:
            cache.cache_limit()
        _export(report, entry, _nsys(report), progress)
        if use_cache:
            cache.trim_cache(keep=entry)
    return ExportedReport(cache.mark_used(entry), notes)


def export_fault(path: Path) -> str | None:
    """What keeps a file from being a usable export; None if nothing does."""
    journal = path.with_name(f"{path.name}-journal")
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        check_file(path)
        if file_size(journal):
            return f"was not written to its end ({journal.name} is left)"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.execute("SELECT count(*) FROM (SELECT 1 FROM StringIds LIMIT 1)").fetchone()
    except ReportError as error:
        return error.problem
    except sqlite3.Error as error:
        return f"is no complete export ({error})"
    return None


def _is_sqlite(report: Path) -> bool:
    """Whether a file is SQLite, whatever its name says. Raises ReportError where it is empty."""
    with file_errors(report):
        size_of_regular(report)
        with report.open("rb") as file:
            magic = file.read(len(MAGIC))
    if not magic:
        advice = "Copy it again; the profiler writes it only when the profiled program has ended."
        raise ReportError(report, "is empty", advice)
    return magic == MAGIC


def _fault_beside(report: Path, beside: Path) -> str | None:
    """Why the export beside a report is not used; None if it is, "" if there is none."""
    try:
        stale = beside.stat().st_mtime_ns < report.stat().st_mtime_ns
    except OSError:
        return ""
    return "is older than the report" if stale else export_fault(beside)


def _entry_name(report: Path) -> str:
    with file_errors(report):
        return cache.entry_name(report, " ".join(OPTIONS))


def _nsys(report: Path) -> Tool:
    """The nsys to export with; the error without one says all that can be done."""
    try:
        return find_tool("nsys")
    except ToolNotFoundError as missing:
        advice = (
            f"{missing.advice} Or run `nsys export --type sqlite {report.name}` where nsys is, "
            "and give the .sqlite instead."
        )
        raise ToolNotFoundError(report, missing.problem, advice) from None


def _export(report: Path, entry: Path, nsys: Tool, progress: Progress | None) -> None:
    """Make the export unless another process does so meanwhile."""
    tell = progress or (lambda fraction, text: None)
    doing = f"exporting {report.name} with nsys {nsys.version_text}"

    def waiting() -> None:
        tell(None, f"waiting for another process that is exporting {report.name}")

    with signals_raise(), cache.alone(entry, waiting), cache.made_folder(entry) as part:
        if export_fault(entry) is None:
            return
        tell(None, doing)
        exported = part / "export.sqlite"
        _run(nsys, report, exported)
        if _entry_name(report) != entry.name:
            advice = "Wait until the profiler has finished writing it, then try again."
            raise ReportError(report, "changed while it was being exported", advice)
        remove_environment(exported)
        cache.publish(exported, entry)
    tell(1.0, doing)


def _run(nsys: Tool, report: Path, exported: Path) -> None:
    """Make an SQLite export with nsys, again without each option that it is too old for."""
    options = [*OPTIONS, "--quiet=true"]
    while True:
        command: list[str | Path] = [nsys.path, "export", "--type=sqlite"]
        command += ["--force-overwrite=true", f"--output={exported}", *options, report]
        code, output = run_tool(command)
        match = _REJECTED.search(output) if code else None
        kept = [each for each in options if match is None or each.split("=")[0] != match[1]]
        if len(kept) == len(options):
            break
        options = kept
    if code:
        ending = f"failed (exit code {code})" if code > 0 else f"was killed by signal {-code}"
        raise _failure(nsys, report, exported, output, ending)
    if flaw := export_fault(exported):
        raise _failure(nsys, report, exported, output, f"ended well, but of its export: {flaw}")


def last_words(output: str) -> list[str]:
    """The last lines that a tool said, without control characters."""
    lines: list[str] = []
    for raw in _STYLE.sub("", output).splitlines():
        text = "".join(c if c.isprintable() else " " for c in raw).strip()
        if text and text != (lines[-1] if lines else ""):
            lines.append(text[:_KEPT_CHARACTERS])
    return lines[-_KEPT_LINES:]


def _failure(nsys: Tool, report: Path, exported: Path, output: str, ending: str) -> ToolFailedError:
    words = "".join(f"\n  | {line}" for line in last_words(output))
    advice = next(
        text.format(
            *(part.replace("@", ".").strip(".") for part in match.groups()),
            nsys=nsys.path,
            version=nsys.version_text,
            folder=exported.parent.parent,
        )
        for pattern, text in _CAUSES
        if (match := re.search(pattern, output))
    )
    problem = f"cannot be exported: nsys {nsys.version_text} {ending}{words}"
    return ToolFailedError(report, problem, advice)


def remove_environment(export: Path) -> None:
    """Remove the environment from an export that is our own, not just from its tables.

    Passwords and tokens are found there. What is deleted is overwritten in the file. Raises
    ReportError when that fails: such an export must not be kept.
    """
    try:
        with closing(sqlite3.connect(export, isolation_level=None)) as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA journal_mode = MEMORY").fetchall()
            connection.execute("BEGIN")
            for table, condition in (_CAPTURE, _SYSTEM):
                columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
                if {"name", "value"} <= {column for _, column, *_ in columns}:
                    _clean(connection, table, condition)
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        problem = f"holds the job's environment, which cannot be taken out: {error}"
        raise ReportError(export, problem, "export it again.") from error


def _clean(connection: sqlite3.Connection, table: str, condition: str) -> None:
    """Keep the rank keys of each row; rows without any go."""
    rows = connection.execute(f"SELECT rowid, value FROM {table} WHERE {condition}").fetchall()
    for row, value in rows:
        kept = rank_variables(str(value or ""))
        text = ";".join(f"{key}={kept[key]}" for key in RANK_KEYS if key in kept)
        if text:
            connection.execute(f"UPDATE {table} SET value = ? WHERE rowid = ?", (text, row))
        else:
            connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
