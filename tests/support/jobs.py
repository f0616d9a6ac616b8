"""Simulated jobs in one folder each, made once, with what happens to their reports afterwards."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from simulator import TrainingJob

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.clock_alignment.clocks import ClockFit
from nsightpy.query.rank_alignment import alignment_of
from nsightpy.report_sets.opening import open_ranks

EVENTS = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS")
Edit = Callable[[Sequence[Path]], None]


@dataclass(frozen=True)
class Simulated:
    """The reports of a job, and what is true about it."""

    folder: Path
    paths: list[Path]
    truth: dict[str, Any]

    def alignment(self) -> Alignment:
        return alignment_of(open_ranks(self.folder))

    def errors_ns(self, fits: Sequence[ClockFit]) -> np.ndarray:
        """How wrong aligned times are, by clock: the worst over the capture, but for a shift."""
        clocks = {(one["report"], one["pid"]): one["clock"] for one in self.truth["ranks"]}
        first = min(clock["session_start_true_ns"] for clock in clocks.values())
        found = []
        for fit in fits:
            clock = clocks[Path(fit.report).name, fit.pid]
            start = clock["session_start_true_ns"]
            since = np.linspace(500e6, 560e6, 13).astype(np.int64) - (start - first)
            drift = np.rint(since * clock["drift_ppm"] * 1e-6).astype(np.int64)
            shown = since + drift + clock["gpu_error_ns"]
            found.append(fit.to_aligned(shown) - (start + since))
        errors = np.asarray(found)
        worst: np.ndarray = np.abs(errors - np.median(errors[0])).max(axis=1)
        return worst

    def groups(self, alignment: Alignment) -> tuple[set[tuple[int, ...]], set[tuple[int, ...]]]:
        """The groups of ranks that were found, and the true ones."""
        ranks = [alignment.clocks[unit.clock].rank for unit in alignment.ledger.units]
        found: dict[int, set[int]] = {}
        ledger = alignment.ledger
        for communicator, unit in zip(
            ledger.communicator.tolist(), ledger.unit.tolist(), strict=True
        ):
            found.setdefault(communicator, set()).add(ranks[unit])
        truth = {tuple(group["ranks"]) for group in self.truth["groups"]}
        return {tuple(sorted(members)) for members in found.values()}, truth

    def rank_truth(self, name: str) -> list[Any]:
        """One fact of every rank, by rank."""
        return [one[name] for one in sorted(self.truth["ranks"], key=lambda one: one["rank"])]


def on_two_nodes(tensor: int, data: int, pipeline: int, **settings: Any) -> TrainingJob:
    """A small job whose two nodes' clocks disagree by 3.7 ms."""
    return TrainingJob(
        tensor=tensor,
        data=data,
        pipeline=pipeline,
        ranks_per_node=tensor * data * pipeline // 2,
        warmup=1,
        layers=2,
        buckets=2,
        utc_error_ns=(0, 3_700_000),
        **settings,
    )


def simulate(job: TrainingJob, folder: Path, edit: Edit | None = None) -> Simulated:
    """Write a job's reports and change them."""
    paths, truth = job.write(folder)
    if edit is not None:
        edit(paths)
    return Simulated(folder, paths, truth)


def change(path: Path, *statements: str) -> None:
    """Run SQL on a report of our own making."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def begin_late(paths: Sequence[Path], ranks: Collection[int], after_ns: int) -> None:
    """Let captures begin later: what started before is not in them."""
    for place in ranks:
        with closing(sqlite3.connect(paths[place])) as connection:
            (first,) = connection.execute(f"SELECT min(start) FROM {EVENTS[0]}").fetchone()
        early = f"start < {first + after_ns}"
        ranges = f"DELETE FROM {EVENTS[2]} WHERE eventType = 59 AND start > 400000000 AND {early}"
        change(paths[place], *(f"DELETE FROM {name} WHERE {early}" for name in EVENTS[:2]), ranges)


def lose_collectives(paths: Sequence[Path], every: int) -> None:
    """Let every rank lose other collectives, as when a buffer overflows."""
    ids = "SELECT id FROM StringIds WHERE value LIKE 'nccl%'"
    for place, path in enumerate(paths):
        gone = f"rowid % {every} = {place % every} AND shortName IN ({ids})"
        change(path, f"DELETE FROM {EVENTS[0]} WHERE {gone}")


def split_by_process(path: Path, folder: Path) -> list[Path]:
    """Copies of a report, each with the rows of one of its processes."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)) as source:
        found = source.execute(f"SELECT DISTINCT globalPid FROM {EVENTS[0]} ORDER BY 1").fetchall()
        names = [row[0] for row in source.execute("SELECT name FROM sqlite_master")]
        columns = {
            name: {row[1] for row in source.execute(f"PRAGMA table_info({name})")} for name in names
        }
    copies = []
    for (process,) in found:
        copy = folder / f"process_{process >> 24 & 0xFFFFFF}.sqlite"
        shutil.copyfile(path, copy)
        for name in names:
            owner = next((c for c in ("globalPid", "globalTid") if c in columns[name]), None)
            if owner and name not in ("PROCESSES", "DIAGNOSTIC_EVENT"):
                change(copy, f"DELETE FROM {name} WHERE ({owner} & -16777216) <> {process}")
        copies.append(copy)
    return copies
