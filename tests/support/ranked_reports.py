"""Tiny reports that tell their ranks in one way or another."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from simulator import Export, Process, schema


def write(
    path: Path,
    *,
    mpi: Mapping[int, int] | None = None,
    named: Mapping[int, int] | None = None,
    nccl: Mapping[int, tuple[int, int]] | None = None,
    environment: Mapping[str, str] | None = None,
    pids: Sequence[int] = (1000,),
    generation: str = schema.NEW,
    took: int = 100,
) -> Path:
    """A report with one kernel a process; by pid: MPI_RANKS, thread names, communicators."""
    export = Export(path, generation, environment=environment)
    for pid in pids:
        process = export.process(pid)
        export.kernel(1000, 1000 + took, "gemm(float *)", process=process, launch=(0, 10))
        if mpi:
            export.mpi_rank(mpi[pid], process)
        if named:
            export.nvtx_thread_name(f"MPI Rank {named[pid]}", process=process)
        if nccl:
            join(export, *nccl[pid], process=process)
    return export.write()


def join(export: Export, rank: int, size: int, process: Process | None = None) -> None:
    """The process creates a communicator of that size."""
    payload = {"No. of ranks": size, "Rank": rank}
    export.nvtx_push_pop(
        1, 2, "ncclCommInitRank", process=process, registered=True, payload=payload
    )
