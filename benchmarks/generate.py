"""Write large simulated Nsight Systems exports, the same ones for the same arguments.

python benchmarks/generate.py --kernels 2000000 OUT.sqlite
python benchmarks/generate.py --kernels 200000 --reports 8 FOLDER   # report_rank0.sqlite ...
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from simulator.large import write_large


def generate(output: Path, reports: int, kernels: int, seed: int) -> list[Path]:
    """The reports, each in its place once all are complete, and nowhere if one fails."""
    folder = output if reports > 1 else output.parent
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as partial:
        paths = write_large(Path(partial), reports, kernels, seed)
        wanted = [folder / path.name for path in paths] if reports > 1 else [output]
        return [path.replace(to) for path, to in zip(paths, wanted, strict=True)]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="the .sqlite file, or a folder with --reports")
    parser.add_argument("--kernels", type=int, default=2_000_000, help="per report")
    parser.add_argument("--reports", type=int, default=1, help="ranks, one report each")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    given = parse_arguments()
    begin = time.perf_counter()
    paths = generate(given.output, given.reports, given.kernels, given.seed)
    size = sum(path.stat().st_size for path in paths) / 1e6
    print(f"{len(paths)} report(s), {size:.0f} MB, {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
