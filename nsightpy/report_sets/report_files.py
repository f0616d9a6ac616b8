"""Which files are meant: those in a folder, of a glob, or one; in natural order of their names."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote

from nsightpy.errors import ReportError
from nsightpy.readers.ncu.file import NCU_SUFFIXES
from nsightpy.readers.tools.file_check import (
    KINDS,
    NSYS_SUFFIXES,
    file_errors,
    has_suffix,
    is_regular,
)
from nsightpy.readers.torch.pieces import latest_cycles
from nsightpy.reports.opening import is_ncu_file, is_nsys_name, is_snapshot_file, is_system_report


def find_reports(given: str | Path) -> list[Path]:
    """The reports of a whole system behind one path; of a report and its export, the report.

    Of the traces that one process wrote one after the other, the last one.
    """
    return list(reports_behind(given))


def reports_behind(given: str | Path) -> dict[Path, int]:
    """The same reports, and how many earlier traces of its process each leaves out."""
    path = Path(given)
    files = files_of(given)
    if files is None:
        return {path: 0}
    if path.is_dir():
        reports = [p for p in files if is_system_report(p)]
        if not reports:
            problem = "holds no Nsight Systems report and no PyTorch trace"
            raise ReportError(path, problem, _instead(path, files))
        files = reports
    elif not files:
        raise ReportError(path, "matches no file", "check the pattern.")
    return latest_cycles(in_order(first_hand(files, NSYS_SUFFIXES)))


def _instead(folder: Path, files: Sequence[Path]) -> str:
    """What to do with a folder without reports that holds these files."""
    regular = [file for file in files if is_regular(file)]
    for command, fits in (("memory-usage", is_snapshot_file), ("roofline", is_ncu_file)):
        if any(map(fits, regular)):
            return f"`nsightpy {command} {quote(str(folder))}` reads it."
    deeper = _folder_below(folder)
    return f"{deeper} does." if deeper else f"{KINDS}."


def _folder_below(folder: Path) -> Path | None:
    """The first folder below one that holds reports; what cannot be looked into is passed by."""
    try:
        return min((p.parent for p in folder.rglob("*") if is_system_report(p)), default=None)
    except (OSError, RuntimeError):
        return None


def find_ncu_reports(given: str | Path) -> list[Path]:
    """The Nsight Compute files behind one path; of a report and its CSV, the report."""
    path = Path(given)
    files = files_of(given)
    if files is None:
        if is_system_report(path):
            advice = f"`nsightpy summarize {quote(str(path))}` reads it."
            raise ReportError(path, "is no Nsight Compute report", advice)
        return [path]
    others = any(map(is_system_report, files))
    files = [p for p in files if is_regular(p) and is_ncu_file(p)]
    if not files:
        advice = "give a .ncu-rep file, or what `ncu --csv --page raw` printed."
        if others:
            advice = f"`nsightpy summarize {quote(str(given))}` reads it."
        raise ReportError(path, "holds no Nsight Compute report", advice)
    return in_order(first_hand(files, NCU_SUFFIXES))


def find_snapshots(given: str | Path) -> list[Path]:
    """The memory snapshots behind one path; none where reports of nsys lie beside them."""
    path = Path(given)
    files = files_of(given)
    with file_errors(path):
        regular = [p for p in files or [path] if is_regular(p)]
        snapshots = sorted(filter(is_snapshot_file, regular))
    return [] if files and any(map(is_nsys_name, regular)) else snapshots


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
