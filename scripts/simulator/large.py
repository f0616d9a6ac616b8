"""One long training job, as large as wanted: an iteration that is simulated, then again and again.

Two API calls a kernel, an NVTX range for every second one, events, waits, copies and collectives.
"""

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from sqlite3 import Connection, connect

from simulator.catalogue import KERNELS, KernelSpec
from simulator.collective import Communicator
from simulator.emit import write_reports
from simulator.program import WORLD_STREAM, Program
from simulator.rank import COMPUTE_STREAM, Post, Record
from simulator.run import simulate
from simulator.settings import Settings

KERNELS_PER_ITERATION = 2_000
KERNEL_NAMES = 400
LAYER, BLOCK, OPERATOR = 40, 20, 3
AUXILIARY_STREAM = 14
COLLECTIVES = ("AllReduce", "ReduceScatter", "AllGather")
STEP = "train_step"
OPERATORS = ("aten::linear", "aten::layer_norm", "aten::addmm", "aten::gelu", "aten::mul")
# Slots in so many of a row in which the host is slow, and by how much.
PHASE, SLOW_NS = 200, 70_000
BETWEEN_NS = 1_000_000
TIMED = ("start", "end")
# Ids, and the table that has all of them.
CALLS, EVENTS = "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
COUNTED = {
    "correlationId": ("correlationId", CALLS),
    "gridId": ("correlationId", CALLS),
    "eventSyncId": ("eventSyncId", EVENTS),
}
REPEATED = (
    *("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"),
    *(CALLS, EVENTS, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "NVTX_EVENTS"),
)


@dataclass(frozen=True)
class LargeJob(Settings):
    """A job whose iterations are `kernels` kernels of each rank."""

    kernels: int = KERNELS_PER_ITERATION

    def groups(self) -> Iterator[Communicator]:
        """The world, also of one rank."""
        yield self._group("world", tuple(range(self.world)), Random(self.seed))


def kernel_specs() -> list[KernelSpec]:
    """Kernels of the catalogue, each in many instances of its template."""
    every, found = list(KERNELS.values()), []
    for number in range(KERNEL_NAMES):
        spec = every[number % len(every)]
        name = re.sub("<(?!unnamed)", f"<(int){number}, ", spec.name, count=1)
        found.append(replace(spec, name=name if name != spec.name else f"{name}_{number}"))
    return found


class Iteration(Program):
    """One iteration; a slot is two calls, the second of which launches a kernel."""

    job: LargeJob

    def everything(self) -> Post:
        self.initialize()
        self.specs, self.choose = kernel_specs(), Random(self.job.seed)
        self.event: Record | None = None
        end = self.job.kernels
        with self.rank.range(STEP):
            for layer in range(0, end, LAYER):
                with self.rank.range(f"layer_{layer // LAYER:02d}"):
                    for block in range(layer, min(layer + LAYER, end), BLOCK):
                        with self.rank.range("mlp" if block % LAYER else "attention"):
                            yield from self._block(block, min(block + BLOCK, end))
            self.rank.synchronize(COMPUTE_STREAM)

    def _block(self, first: int, end: int) -> Post:
        for operator in range(first, end, OPERATOR):
            with self.rank.range(OPERATORS[operator % len(OPERATORS)]):
                for slot in range(operator, min(operator + OPERATOR, end)):
                    yield from self._slot(slot)

    def _slot(self, slot: int) -> Post:
        rank, world = self.rank, self.groups.get("world")
        if slot // PHASE % 3 == 0:
            rank.clock += SLOW_NS
        self._other_call(slot)
        if slot % BLOCK == BLOCK - 1 and world is not None:
            size, operation = 1 << (16 + slot // BLOCK % 10), COLLECTIVES[slot // BLOCK % 3]
            yield from rank.communicate(world, operation, size, WORLD_STREAM, "bf16")
            return
        # every kernel once, then some more often than others
        place = slot if slot < KERNEL_NAMES else int(KERNEL_NAMES * self.choose.random() ** 3)
        stream = COMPUTE_STREAM if slot % 13 else AUXILIARY_STREAM
        rank.launch(self.specs[place], stream, scale=0.4)

    def _other_call(self, slot: int) -> None:
        rank = self.rank
        if slot % 7 == 3:
            self.event = rank.record(COMPUTE_STREAM)
        elif slot % 7 == 5 and self.event is not None:
            rank.wait(AUXILIARY_STREAM if slot % 2 else WORLD_STREAM, self.event)
        elif slot % BLOCK == 8:
            rank.copy(1 << 20)
        elif slot % BLOCK == 12:
            rank.memset(1 << 16)
        else:
            rank.call("cudaStreamIsCapturing_v10000", 900)


def write_large(folder: Path, reports: int, kernels: int, seed: int) -> list[Path]:
    """A report for each rank of a job, all with so many kernels; the same for the same seed."""
    iterations = max(1, round(kernels / KERNELS_PER_ITERATION))
    job = LargeJob("report", seed, data=reports, ranks_per_node=4, kernels=kernels // iterations)
    if job.kernels * iterations != kernels:
        raise SystemExit(f"{kernels} kernels do not divide into {iterations} iterations")
    run = simulate(job, Iteration)
    begins = [next(each.start for each in rank.ranges if each.text == STEP) for rank in run.ranks]
    ends = [operation.end for rank in run.ranks for operation in rank.operations]
    length = max(ends) - min(begins) + BETWEEN_NS
    paths = write_reports(run, folder)
    for path, rank, begin in zip(paths, run.ranks, begins, strict=True):
        with closing(connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN")
            _repeat(connection, iterations, length, job.clock(rank.index).host(begin))
            connection.execute("COMMIT")
    return paths


def _repeat(connection: Connection, iterations: int, length: int, first: int) -> None:
    """Let what happened from `first` on happen again, so much later, under ids of its own."""
    steps = {
        name: connection.execute(f"SELECT max({column}) FROM {table}").fetchone()[0]
        for name, (column, table) in COUNTED.items()
    }
    for table in REPEATED:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        changed = {name: f'"{name}" + i * {length}' for name in TIMED if name in columns}
        for name in [name for name in COUNTED if name in columns]:
            changed[name] = f"{name} + i * {steps[name]} * ({name} > 0)"
        begun = f"WHERE start >= {first}" if "start" in columns else ""
        connection.execute(f"CREATE TEMP TABLE one AS SELECT * FROM {table} {begun} ORDER BY rowid")
        values = ", ".join(changed.get(name, f'"{name}"') for name in columns)
        connection.execute(
            "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
            f"INSERT INTO {table} SELECT {values} FROM n CROSS JOIN one WHERE i < ?",
            (iterations, iterations),
        )
        connection.execute("DROP TABLE one")
    more = (iterations - 1) * length
    connection.execute(
        "UPDATE ANALYSIS_DETAILS SET duration = duration + ?, stopTime = stopTime + ?", (more, more)
    )
    connection.execute(
        "UPDATE DIAGNOSTIC_EVENT SET timestamp = timestamp + ? WHERE timestamp > 0", (more,)
    )
