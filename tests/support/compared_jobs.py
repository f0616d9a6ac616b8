"""Simulated jobs of several runs whose difference is known, each made once."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from simulator import TrainingJob
from simulator.catalogue import KERNELS
from simulator.settings import Change

RUNS = 5
QKV, GELU = KERNELS["qkv"], KERNELS["gelu"]
FLASH_DOT, FLASH_BACKWARD = KERNELS["flash_dot"], KERNELS["flash_backward"]
RENAMED = GELU.name.replace("<(int)8", "<(int)16")
TILE = "nvjet_tst_128x128_64x6_1x2_h_bz_coopA_TNT"
FUSED = "triton_fused_flash_backward_dot_0"
CHANGES: dict[str, tuple[Change, ...]] = {
    "before": (),
    "again": (),
    "slower 10 %": (Change.slower(FLASH_BACKWARD, 1.10),),
    "twice": (Change((GELU.name,), (GELU, GELU)),),
    "renamed": (Change((GELU.name,), (replace(GELU, name=RENAMED),)),),
    "tile": (Change((QKV.name,), (replace(QKV, name=TILE, duration_ns=80_000),)),),
    "fused": (
        Change(
            (FLASH_DOT.name, FLASH_BACKWARD.name),
            (replace(FLASH_BACKWARD, name=FUSED),),
        ),
    ),
}


def job(seed: int, changes: Sequence[Change] = (), **settings: Any) -> TrainingJob:
    """A small job whose GPU is a little faster or slower from run to run."""
    usual: dict[str, Any] = {
        "name": "job",
        "iterations": 8,
        "warmup": 1,
        "layers": 2,
        "buckets": 2,
        "run_noise": 0.002,
        "data_gap_ns": 300_000,
        "long_gap_every": 0,
    }
    return TrainingJob(seed=seed, changes=tuple(changes), **(usual | settings))


class Jobs:
    """Runs by what changed in them: folders with one report a rank."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: dict[str, list[Path]] = {}

    def runs(self, what: str, count: int = RUNS, **settings: Any) -> list[Path]:
        """The runs of a job with that change; seeds differ between all runs."""
        kind = "".join(map(str, [what, count, *settings.values()]))
        if kind not in self._made:
            first = 1_000 * list(CHANGES).index(what) + 100 * len(settings)
            found = [self.folder / f"{len(self._made)}" / f"run{one}" for one in range(count)]
            for one, folder in enumerate(found):
                folder.mkdir(parents=True)
                job(first + one, CHANGES[what], **settings).write(folder)
            self._made[kind] = found
        return self._made[kind]
