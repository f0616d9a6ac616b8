"""A report whose columns are kept in files although it is small, and all that it says."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nsightpy.frames import EVERY_SCHEMA, Frame
from nsightpy.reports import system
from nsightpy.reports.profiles import NsysReport, TorchTrace
from nsightpy.reports.system import SystemReport
from nsightpy.store.cache import cache_folder
from tests.support.full_export import full
from tests.support.rewritten import rewritten

# Rows that cannot be counted, that name no process, or whose name is not there.
_ODD = (
    "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = start - 1 WHERE rowid = 2",
    "UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET bytes = -1 WHERE rowid = 1",
    "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET nameId = 999 WHERE rowid = 3",
    "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET globalTid = 0 WHERE rowid = 4",
    "UPDATE NVTX_EVENTS SET text = CAST(x'ff61' AS TEXT) WHERE text = 'step'",
)
# What differs from frame to frame: of notes the order, and of labels the numbers.
Said = dict[str, object]


def odd_export(path: Path, seed: int = 0) -> Path:
    """An export of two processes in an order of chance, some of whose rows are damaged.

    Those of other seeds have other figures.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = path.with_name("plain.sqlite")
    made = full(plain)
    made.mpi_collective(2_000, 2_500, "MPI_Allreduce", 8)
    made.library("OSRT_API", 100, 200, "poll")
    rewritten(made.write(), path, "from 10", seed)
    plain.unlink()
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in _ODD:
            connection.execute(statement)
        for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"):
            connection.execute(f"UPDATE {table} SET end = end + {seed} WHERE end > start")
    return path


def keep_small(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """Keep the columns of small reports, too, in a cache of this test."""
    monkeypatch.setenv("NSIGHTPY_CACHE_DIR", str(cache))
    monkeypatch.delenv("NSIGHTPY_CACHE_SIZE", raising=False)
    monkeypatch.setattr(system, "LEAST_BYTES", 0)


def opened(path: Path, *, use_cache: bool = True) -> SystemReport:
    kind = NsysReport if path.suffix == ".sqlite" else TorchTrace
    return kind(path, use_cache=use_cache)


def everything(path: Path, *, use_cache: bool = True) -> Said:
    """All frames of a report, and what it says of itself."""
    report = opened(path, use_cache=use_cache)
    said: Said = {name: rows(report.frame(name)) for name in EVERY_SCHEMA}
    said |= {"session": report.session, "pids": report.pids, "evidence": report.evidence}
    said |= {"start": report.capture.start, "tool": report.tool_version}
    said["notes"] = sorted(map(str, report.notes))
    return said


def rows(frame: Frame) -> dict[str, list[str]]:
    """A frame as texts, by which missing values are equal."""
    return {name: [str(value) for value in data] for name, data in frame.items()}


def stores() -> list[Path]:
    """The folders of columns in the cache."""
    return sorted(cache_folder().glob("*.columns"))


def files() -> list[Path]:
    """The files of all stores in the cache."""
    return [file for store in stores() for file in sorted(store.rglob("*"))]


def leftovers() -> list[Path]:
    """What only a killed process leaves."""
    found = cache_folder().rglob("*") if cache_folder().exists() else []
    return [path for path in found if path.name.endswith((".part", ".lock"))]
