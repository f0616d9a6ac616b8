"""Write large simulated reports, the same ones for the same arguments.

python benchmarks/generate.py --kernels 2000000 OUT.sqlite
python benchmarks/generate.py --kernels 200000 --reports 8 FOLDER   # report_rank0.sqlite ...
python benchmarks/generate.py --ranks 1024 --payload FOLDER         # small ones of many ranks
python benchmarks/generate.py --events 2000000 FOLDER               # a trace, and its job's export
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

from simulator.emit import write_reports
from simulator.kineto import write_traces
from simulator.large import write_large
from simulator.presets import PRESETS, TORCH_2RANK


def trace(folder: Path, events: int) -> None:
    """A PyTorch trace of about so many events, and the same job as an export."""
    job = replace(TORCH_2RANK, name="trace", tensor=1, layers=12, straggler=None)
    (probe,) = write_traces(replace(job, iterations=20).run(), folder, packed=False)
    per_iteration = probe.read_bytes().count(b'"ph"') / 20
    run = replace(job, iterations=max(4, round(events / per_iteration))).run()
    write_traces(run, folder, packed=False)
    write_reports(run, folder)


def main() -> None:
    """Write what is asked for, complete or not at all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="the .sqlite file, or a folder for several")
    parser.add_argument("--kernels", type=int, default=2_000_000, help="per report")
    parser.add_argument("--reports", type=int, default=1, help="ranks, one report each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", type=int, help="small reports of so many ranks")
    parser.add_argument("--payload", action="store_true", help="of NCCL's calls, in these")
    parser.add_argument("--events", type=int, help="a PyTorch trace of so many events")
    given = parser.parse_args()
    given.output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=given.output.parent) as partial:
        made = Path(partial) / "made"
        if given.ranks:
            # tensor groups of 8 inside nodes, data groups across
            payload = "json" if given.payload else None
            replace(PRESETS["ranks_64"], data=given.ranks // 8, payload=payload).write(made)
        elif given.events:
            trace(made, given.events)
        else:
            paths = write_large(made, given.reports, given.kernels, given.seed)
            made = made if given.reports > 1 else paths[0]
        made.rename(given.output)


if __name__ == "__main__":
    main()
