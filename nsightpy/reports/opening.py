"""What one report file is, found from what it holds, and opening it; which files a path means."""

import glob
import re
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

from nsightpy.errors import ReportError
from nsightpy.readers.export.nsys_export import Progress
from nsightpy.readers.ncu.file import is_ncu_rep
from nsightpy.readers.tools.file_check import (
    NSYS_SUFFIXES,
    SQLITE_SUFFIXES,
    beginning,
    file_errors,
    has_suffix,
    is_regular,
    size_of_regular,
)
from nsightpy.readers.torch.pieces import is_trace, texts
from nsightpy.readers.torch.snapshot import is_snapshot
from nsightpy.reports.one_file import MemorySnapshot, NcuReport
from nsightpy.reports.profiles import NsysReport, TorchTrace

TRACE_SUFFIXES = (".json", ".json.gz")
SNAPSHOT_SUFFIXES = (".pickle", ".pkl")
CSV_SUFFIXES = (".csv", ".txt", ".log")
_TRACE_BYTES, _PAGE_BYTES = 256 * 1024, 1 << 20


def is_ncu_file(path: Path) -> bool:
    """Whether a file is Nsight Compute's: by its suffix, its magic or the header of a CSV page."""
    if is_ncu_rep(path) or not has_suffix(path, CSV_SUFFIXES):
        return is_ncu_rep(path)
    from nsightpy.readers.ncu.ncu_csv import looks_like_csv

    return looks_like_csv(beginning(path, _PAGE_BYTES))


def is_snapshot_file(path: Path) -> bool:
    """Whether a file is a pickle that names what snapshots hold, or says so by its suffix."""
    return is_regular(path) and (
        path.suffix.lower() in SNAPSHOT_SUFFIXES or is_snapshot(beginning(path, 4096))
    )


def is_torch_trace(path: Path) -> bool:
    """Whether a file is a JSON text, plain or gzip, that begins like a trace."""
    try:
        start = BytesIO(beginning(path, _TRACE_BYTES))
        return is_trace(next(texts(start, _TRACE_BYTES), b"")[:_TRACE_BYTES])
    except EOFError:
        return False


def is_nsys_name(path: Path) -> bool:
    """Whether a file is called like a report of Nsight Systems, or the export of one."""
    return has_suffix(path, NSYS_SUFFIXES + SQLITE_SUFFIXES)


def is_system_report(path: Path) -> bool:
    """Whether a file of a folder is such a report: by its name, or as a trace by its content."""
    return is_nsys_name(path) or (has_suffix(path, TRACE_SUFFIXES) and is_torch_trace(path))


def files_of(given: str | Path) -> list[Path] | None:
    """What a folder holds, or the files that a glob matches; None for the path of one file."""
    path = Path(given)
    with file_errors(path):
        if path.is_dir():
            return list(path.iterdir())
        if glob.has_magic(str(given)) and not path.exists():
            names = glob.glob(str(given), recursive=True)  # noqa: PTH207
            return [Path(name) for name in names if is_regular(Path(name))]
    return None


def first_hand(paths: Iterable[Path], suffixes: tuple[str, ...]) -> list[Path]:
    """The files without what was made of those among them that have one of these suffixes."""
    files = list(paths)
    stems = {p.with_suffix("") for p in files if has_suffix(p, suffixes)}
    return [p for p in files if has_suffix(p, suffixes) or p.with_suffix("") not in stems]


def in_order(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: natural(str(path)))


def natural(text: str) -> tuple[tuple[int, int | str], ...]:
    """A sort key by which rank2 comes before rank10; total, so that rank1 and rank01 have one."""
    parts = re.split(r"(\d+)", text)
    numbered = ((0, int(part)) if part.isdecimal() else (1, part) for part in parts)
    return (*numbered, (-1, text))


def open_report(
    path: Path | str,
    *,
    use_cache: bool = True,
    rank_regex: str | None = None,
    progress: Progress | None = None,
) -> NsysReport | TorchTrace | NcuReport | MemorySnapshot:
    """Open one report: of Nsight Systems, Nsight Compute, PyTorch's profiler or its allocator.

    A .nsys-rep or .qdrep is exported with nsys on first use, and the columns of a trace (.json,
    .json.gz) are kept, in the user's cache unless `use_cache` is False. Raises ReportError when the
    file is no report that nsightpy reads.
    """
    path = Path(path)
    with file_errors(path):
        if path.is_dir():
            problem = "is a directory"
            raise ReportError(path, problem, "nsightpy.open reads all reports in one.")
        size_of_regular(path)
    if is_ncu_file(path):
        return NcuReport(path)
    if is_snapshot_file(path):
        return MemorySnapshot(path)
    if not has_suffix(path, NSYS_SUFFIXES) and is_torch_trace(path):
        return TorchTrace(path, use_cache=use_cache, rank_regex=rank_regex, progress=progress)
    return NsysReport(path, use_cache=use_cache, rank_regex=rank_regex, progress=progress)
