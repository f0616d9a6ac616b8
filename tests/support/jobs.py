"""Simulated jobs in one folder each, made once, with what happens to their reports afterwards."""

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
from tests.support.reports import select, tables

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
            found.append(fit.to_aligned(since + drift + clock["gpu_error_ns"]) - (start + since))
        errors = np.asarray(found)
        worst: np.ndarray = np.abs(errors - np.median(errors[0])).max(axis=1)
        return worst

    def groups(self, alignment: Alignment) -> tuple[set[tuple[int, ...]], set[tuple[int, ...]]]:
        """The groups of ranks that were found, and the true ones."""
        ledger = alignment.ledger
        ranks = np.asarray([alignment.clocks[unit.clock].rank for unit in ledger.units])
        numbers = np.unique(ledger.communicator)
        members = (np.unique(ranks[ledger.unit[ledger.communicator == one]]) for one in numbers)
        truth = {tuple(group["ranks"]) for group in self.truth["groups"]}
        return {tuple(found.tolist()) for found in members}, truth

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
    pids = select(path, f"SELECT DISTINCT globalPid FROM {EVENTS[0]} ORDER BY 1")
    owners = {
        table: owner
        for table in tables(path) - {"PROCESSES", "DIAGNOSTIC_EVENT"}
        for owner in ("globalTid", "globalPid")
        if select(path, f"SELECT 1 FROM pragma_table_info('{table}') WHERE name = '{owner}'")
    }
    copies = []
    for (process,) in pids:
        copy = folder / f"process_{process >> 24 & 0xFFFFFF}.sqlite"
        shutil.copyfile(path, copy)
        for table, owner in owners.items():
            change(copy, f"DELETE FROM {table} WHERE ({owner} & -16777216) <> {process}")
        copies.append(copy)
    return copies
