"""Training jobs, and those with names: what tests, benchmarks and samples are made from."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simulator.emit import write_reports
from simulator.run import Run, simulate
from simulator.settings import MIB, Settings
from simulator.truth import truth


@dataclass(frozen=True)
class TrainingJob(Settings):
    """Settings that can be run."""

    def run(self) -> Run:
        return simulate(self)

    def write(self, directory: str | Path) -> tuple[list[Path], dict[str, object]]:
        """Simulate, write one report per rank or node, and return their paths and the truth."""
        run = self.run()
        return write_reports(run, Path(directory)), truth(run)


def _job(name: str, *layout: int, **settings: Any) -> TrainingJob:
    """A job; its layout are tensor, data and pipeline groups and the ranks of a node."""
    names = ("tensor", "data", "pipeline", "ranks_per_node")
    return TrainingJob(name, **settings | dict(zip(names, layout, strict=False)))


TRAINING_4RANK = replace(
    _job("train", 2, 2, 1, 2, seed=20, iterations=8, layers=4, straggler=2),
    straggler_slowdown=1.09,
    tensor_bytes=10 * MIB,
    long_gap_ns=3_400_000,
    utc_error_ns=(0, 3_400_000),
    drift_ppb=(0, 6_000),
    gpu_error_ns=(300, -400, 250, -150),
)
SINGLE_PROCESS = replace(
    _job("single_process", seed=7, iterations=6, layers=3, pageable=True, memory_usage=True),
    input_bytes=12 * MIB,
    graph_mode="graph",
    graph_replays=20,
    evidence=("plain",),
)
SMALL = _job("small", 2, seed=3, iterations=3, warmup=1, layers=1, buckets=1)
TORCH_2RANK = replace(
    _job("train", 2, seed=11, iterations=6, layers=2, buckets=2, straggler=1),
    straggler_slowdown=1.09,
    utc_error_ns=(0, 1_700_000),
    gpu_error_ns=(200, -300),
)
_RANKS_64 = replace(
    _job("ranks_64", 8, 8, seed=64, iterations=4, warmup=1, layers=2, buckets=2, straggler=37),
    straggler_slowdown=1.15,
    utc_error_ns=(0, 2_100_000, -900_000, 5_600_000, -3_300_000, 400_000, -7_000_000, 1_000),
    drift_ppb=(0, 5_000, -3_000, 8_000, -6_000, 1_000, 2_000, -9_000),
    gpu_error_ns=(0, 700, -500, 200, -900),
)
_RANKS_8 = replace(
    _job("ranks_8", 2, 4, 1, 4, seed=8, iterations=5, layers=2, buckets=2, straggler=5),
    utc_error_ns=(0, -7_800_000),
    drift_ppb=(0, 4_000),
    gpu_error_ns=(0, 900, -600, 300, 0, -800, 500, 200),
)
_PIPELINE_4 = replace(
    _job("pipeline_4", 1, 2, 2, 4, seed=4, iterations=4, warmup=1, layers=2, buckets=2),
    microbatches=2,
    sharded=True,
)
# What differs from the small job, and of the job that does from that with graphs.
_VARIANTS: dict[str, dict[str, Any]] = {
    "ranks_2": {"iterations": 4, "layers": 2},
    "slurm_zero": {"evidence": ("slurm_zero", "openmpi")},
    "stripped": {"evidence": (), "hostnames": False, "payload": None},
    "mpi": {"evidence": ("mpi_table", "mpi_thread")},
    "edges": {"orphan_kernels": 12},
    "autograd": {"autograd_thread": True},
    "one_device": {"one_device_per_process": True},
    "no_nvtx": {"nvtx": False},
    "old": {"generation": "old", "tensor": 1, "payload": None},
    "mid": {"generation": "mid", "payload": None},
}
PRESETS: dict[str, TrainingJob] = {
    "torch_2rank": TORCH_2RANK,
    "training_4rank": TRAINING_4RANK,
    **{job.name: job for job in (SINGLE_PROCESS, SMALL, _RANKS_8, _PIPELINE_4, _RANKS_64)},
    # One report with both processes of a node: correlation ids collide between them.
    "one_report_2rank": replace(
        SMALL, name="one_report", report_per="node", evidence=("launcher",)
    ),
    "graph_nodes": replace(SINGLE_PROCESS, name="graph_nodes", iterations=2, graph_mode="node"),
    **{name: replace(SMALL, name=name, **changes) for name, changes in _VARIANTS.items()},
}
