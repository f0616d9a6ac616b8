"""Write large simulated Nsight Systems exports, the same ones for the same arguments.

python benchmarks/generate.py --kernels 2000000 OUT.sqlite
python benchmarks/generate.py --kernels 200000 --reports 8 FOLDER   # report_rank0.sqlite ...
"""

from __future__ import annotations

import argparse
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from simulator.large.rows import RowWriter
from simulator.large.surroundings import Identity
from simulator.large.world import FIRST_LAUNCH_NS, World

FIRST_PID = 13_096
START_SKEW_NS = 137_123_456
PRAGMAS = ("journal_mode=OFF", "synchronous=OFF", "locking_mode=EXCLUSIVE", "page_size=4096")


@contextmanager
def new_export(path: Path) -> Iterator[sqlite3.Connection]:
    """An empty export, at `path` once it is complete and nowhere if it fails."""
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    connection = sqlite3.connect(partial)
    try:
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        yield connection
        connection.commit()
        connection.close()
        partial.replace(path)
    finally:
        connection.close()
        partial.unlink(missing_ok=True)


def generate(paths: list[Path], kernels: int, devices: int, seed: int) -> None:
    """One export per path, each a rank of the same job with `kernels` kernels."""
    if kernels % devices:
        raise SystemExit(f"--kernels {kernels} is not divisible by --devices {devices}")
    world = World(len(paths) * devices, kernels // devices, seed)
    with ExitStack() as files:
        writers = []
        for rank, path in enumerate(paths):
            offset = rank * START_SKEW_NS % FIRST_LAUNCH_NS
            identity = Identity(rank, len(paths), FIRST_PID + 100 * rank, offset)
            connection = files.enter_context(new_export(path))
            writers.append(RowWriter(connection, identity, devices, seed))
        for steps in world.steps():
            for rank, writer in enumerate(writers):
                writer.write(steps[rank * devices : (rank + 1) * devices])
        for writer in writers:
            writer.finish()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="the .sqlite file, or a folder with --reports")
    parser.add_argument("--kernels", type=int, default=2_000_000, help="per report")
    parser.add_argument("--devices", type=int, default=1, help="GPUs of one process")
    parser.add_argument("--reports", type=int, default=1, help="ranks, one report each")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    paths = [arguments.output]
    if arguments.reports > 1:
        arguments.output.mkdir(parents=True, exist_ok=True)
        paths = [
            arguments.output / f"report_rank{rank}.sqlite" for rank in range(arguments.reports)
        ]
    else:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    generate(paths, arguments.kernels, arguments.devices, arguments.seed)
    size = sum(path.stat().st_size for path in paths) / 1e6
    print(f"{len(paths)} report(s), {size:.0f} MB, {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
