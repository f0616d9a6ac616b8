"""Opening one report file: what a file is, is found from what it holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nsightpy.errors import ReportError
from nsightpy.readers.tools.file_check import file_errors, has_suffix, size_of_regular
from nsightpy.readers.torch.pieces import is_torch_trace
from nsightpy.readers.torch.snapshot import is_snapshot_file
from nsightpy.reports.nsys import NSYS_SUFFIXES, NsysReport
from nsightpy.reports.one_file import MemorySnapshot, NcuReport, is_ncu_file
from nsightpy.reports.system import Progress

if TYPE_CHECKING:
    from nsightpy.reports.torch import TorchTrace


def open_report(
    path: Path | str,
    *,
    use_cache: bool = True,
    rank_regex: str | None = None,
    progress: Progress | None = None,
    threads: int | None = None,
) -> NsysReport | TorchTrace | NcuReport | MemorySnapshot:
    """Open one report: of Nsight Systems, Nsight Compute, PyTorch's profiler or its allocator.

    A .nsys-rep or .qdrep is exported with nsys on first use, and the columns of a trace (.json,
    .json.gz) are kept, in the user's cache unless `use_cache` is False. `threads` read one table,
    by default up to 4. Raises ReportError when the file is no report that nsightpy reads.
    """
    path = Path(path)
    with file_errors(path):
        if path.is_dir():
            problem = "is a directory"
            raise ReportError(path, problem, "nsightpy.open_ranks reads all reports in one.")
        size_of_regular(path)
    if is_ncu_file(path):
        return NcuReport(path)
    if is_snapshot_file(path):
        return MemorySnapshot(path)
    if not has_suffix(path, NSYS_SUFFIXES) and is_torch_trace(path):
        from nsightpy.reports.torch import TorchTrace

        return TorchTrace(path, use_cache=use_cache, rank_regex=rank_regex, progress=progress)
    return NsysReport(
        path, use_cache=use_cache, rank_regex=rank_regex, progress=progress, threads=threads
    )
