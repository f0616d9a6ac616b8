"""Training jobs, and those with names: what tests, benchmarks and samples are made from."""

from dataclasses import dataclass, replace
from pathlib import Path

from simulator.emit import write_reports
from simulator.run import Run, simulate
from simulator.settings import MIB, Settings
from simulator.truth import truth


@dataclass(frozen=True)
class TrainingJob(Settings):
    """Settings that can be run."""

    def run(self) -> Run:
        """Simulate the job on the true clock."""
        return simulate(self)

    def write(self, directory: str | Path) -> tuple[list[Path], dict[str, object]]:
        """Simulate, write one report per rank or node, and return their paths and the truth."""
        run = self.run()
        return write_reports(run, Path(directory)), truth(run)


TRAINING_4RANK = TrainingJob(
    name="train",
    seed=20,
    tensor=2,
    data=2,
    ranks_per_node=2,
    iterations=8,
    layers=4,
    straggler=2,
    straggler_slowdown=1.09,
    tensor_bytes=10 * MIB,
    long_gap_ns=3_400_000,
    utc_error_ns=(0, 3_400_000),
    drift_ppb=(0, 6_000),
    gpu_error_ns=(300, -400, 250, -150),
)
SINGLE_PROCESS = TrainingJob(
    name="single_process",
    seed=7,
    iterations=6,
    layers=3,
    pageable=True,
    input_bytes=12 * MIB,
    graph_mode="graph",
    graph_replays=20,
    memory_usage=True,
    evidence=("plain",),
)
SMALL = TrainingJob(name="small", seed=3, tensor=2, iterations=3, warmup=1, layers=1, buckets=1)
TORCH_2RANK = TrainingJob(
    name="train",
    seed=11,
    tensor=2,
    iterations=6,
    layers=2,
    buckets=2,
    straggler=1,
    straggler_slowdown=1.09,
    utc_error_ns=(0, 1_700_000),
    gpu_error_ns=(200, -300),
)

PRESETS: dict[str, TrainingJob] = {
    "torch_2rank": TORCH_2RANK,
    "training_4rank": TRAINING_4RANK,
    "single_process": SINGLE_PROCESS,
    "small": SMALL,
    "ranks_2": replace(SMALL, name="ranks_2", iterations=4, layers=2),
    "ranks_8": TrainingJob(
        name="ranks_8",
        seed=8,
        tensor=2,
        data=4,
        ranks_per_node=4,
        iterations=5,
        layers=2,
        buckets=2,
        straggler=5,
        utc_error_ns=(0, -7_800_000),
        drift_ppb=(0, 4_000),
        gpu_error_ns=(0, 900, -600, 300, 0, -800, 500, 200),
    ),
    "pipeline_4": TrainingJob(
        name="pipeline_4",
        seed=4,
        data=2,
        pipeline=2,
        ranks_per_node=4,
        iterations=4,
        warmup=1,
        layers=2,
        buckets=2,
        microbatches=2,
        sharded=True,
    ),
    "ranks_64": TrainingJob(
        name="ranks_64",
        seed=64,
        tensor=8,
        data=8,
        ranks_per_node=8,
        iterations=4,
        warmup=1,
        layers=2,
        buckets=2,
        straggler=37,
        straggler_slowdown=1.15,
        utc_error_ns=(0, 2_100_000, -900_000, 5_600_000, -3_300_000, 400_000, -7_000_000, 1_000),
        drift_ppb=(0, 5_000, -3_000, 8_000, -6_000, 1_000, 2_000, -9_000),
        gpu_error_ns=(0, 700, -500, 200, -900),
    ),
    # One report with both processes of a node: correlation ids collide between them.
    "one_report_2rank": replace(
        SMALL, name="one_report", report_per="node", evidence=("launcher",)
    ),
    "graph_nodes": replace(SINGLE_PROCESS, name="graph_nodes", iterations=2, graph_mode="node"),
    "slurm_zero": replace(SMALL, name="slurm_zero", evidence=("slurm_zero", "openmpi")),
    "stripped": replace(SMALL, name="stripped", evidence=(), hostnames=False, payload=None),
    "mpi": replace(SMALL, name="mpi", evidence=("mpi_table", "mpi_thread")),
    "edges": replace(SMALL, name="edges", orphan_kernels=12),
    "autograd": replace(SMALL, name="autograd", autograd_thread=True),
    "blob": replace(SMALL, name="blob", payload="blob"),
    "one_device": replace(SMALL, name="one_device", one_device_per_process=True),
    "no_nvtx": replace(SMALL, name="no_nvtx", nvtx=False, nccl_nvtx=False),
    "old": replace(SMALL, name="old", generation="old", tensor=1, payload=None),
    "mid": replace(SMALL, name="mid", generation="mid", payload=None),
}
