"""A small export with something in every table that the commands read."""

import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from simulator import Export
from simulator.schema import NEW, OLD

GENERATIONS = ("new", "mid", "old")
ALLREDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)"
KERNELS = 12
PROCESSES = (100, 200)


def full(path: Path, generation: str = NEW, **options: Any) -> Export:
    """Two processes that did the same, with equal correlation ids; add to it before writing."""
    export = Export(path, generation, **options)
    processes = [export.process(pid) for pid in PROCESSES]
    for place, process in enumerate(processes):
        if generation != OLD or place == 0:
            export.gpu(place)
            export.cuda_device(place, 0, process)
        for at in range(1_000, 6_000, 1_000):
            name = f"void k{at // 1_000 % 2}<int>(float *)"
            export.kernel(at, at + 600, name, process=process, launch=(at - 800, at - 700))
        export.kernel(9_000, 9_500, ALLREDUCE, process=process, launch=(8_000, 8_010))
        export.memcpy(9_600, 9_900, 4096, process=process, launch=(9_500, 9_510))
        export.memset(9_900, 9_950, 100, process=process, launch=(9_550, 9_560))
        export.sync(9_950, 9_960, process=process, launch=(9_940, 9_965))
        domain = export.nvtx_domain("NCCL", process=process)
        export.nvtx_push_pop(0, 12_000, "step", process=process)
        export.nvtx_start_end(10, 500, "load", registered=True, domain=domain, process=process)
        export.mark(50, "mark", process=process)
        if generation == NEW:
            export.graph_trace(10_000, 12_000, process=process, launch=(9_990, 9_995))
            export.diagnostic(5, "CUDA buffers were lost", 2, process=process)
            export.mpi_rank(place, process)
    return export


def changed(original: Path, path: Path, statements: Iterable[str]) -> Path:
    """A copy of an export after some SQL."""
    shutil.copy(original, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def untyped(table: str, *statements: str) -> list[str]:
    """SQL: a table without the types that its columns declare, so that they keep whatever comes."""
    return [
        f"CREATE TABLE k AS SELECT * FROM {table}",
        f"DROP TABLE {table}",
        f"ALTER TABLE k RENAME TO {table}",
        *statements,
    ]


def damaged(folder: Path, table: str, *statements: str) -> Path:
    """The small export after SQL on a table of it without types."""
    return changed(
        full(folder / "full.sqlite").write(), folder / "a.sqlite", untyped(table, *statements)
    )


def columns(path: Path) -> dict[str, list[tuple[str, str, bool]]]:
    """The tables of an export: (column, declared type, NOT NULL) in order."""
    found: dict[str, list[tuple[str, str, bool]]] = {}
    with closing(sqlite3.connect(path)) as connection:
        for name, *column, required in connection.execute(
            'SELECT m.name, c.name, c.type, c."notnull" FROM sqlite_master m,'
            " pragma_table_info(m.name) c WHERE m.type = 'table'"
        ):
            found.setdefault(name, []).append((*column, bool(required)))
    return found
