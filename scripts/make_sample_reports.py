"""Write the simulated sample reports and their truth; the same bytes every time.

python scripts/make_sample_reports.py [--output DIR] [--check]
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simulator import ncu, training_memory
from simulator.allocator import write_snapshot
from simulator.kineto import write_traces
from simulator.presets import SINGLE_PROCESS, TORCH_2RANK, TRAINING_4RANK
from simulator.truth import truth as job_truth

HERE = Path(__file__).resolve().parent.parent / "sample_reports"
LIMIT_BYTES = 4_000_000
TRAINING_MEMORY = training_memory.Training(iterations=8)

README = """\
# Sample reports

**These reports are simulated.** No GPU ran and no profiler recorded anything: a program wrote
SQLite files with the tables that Nsight Systems 2026.3 exports (schema 3.27), about jobs that
never existed on machines that never existed. Use them to try nsightpy and to test against: what
is true about each job is known exactly and lies beside it as JSON, computed from the simulated
events before they were written.

    python scripts/make_sample_reports.py           # writes the reports again, byte for byte
    python scripts/make_sample_reports.py --check   # says whether it would change

## training_4rank/

Four ranks train a small transformer: `train_rank0.sqlite` to `train_rank3.sqlite`, truth in
`truth.json`. What is going on in it:

- Two nodes with two H100 each. Ranks 0, 1 and ranks 2, 3 are tensor pairs inside a node; ranks
  0, 2 and ranks 1, 3 are data pairs across the nodes. All four meet once per iteration.
- **Rank {straggler} is a straggler**: its kernels take 9 % longer. Rank 3 waits for it in every
  tensor sum, ranks 0 and 1 wait where gradients are summed.
- Communication that nothing hides costs {exposed} of the window, depending on the rank.
- {iterations} iterations, of which the first {warmup} are warm-up: slow, because every launch is.
- The data loader keeps the host at every start (longer in iterations 2 and 5), so the GPU runs dry;
  the first input copy of an iteration is not hidden either, the second one is.
- The nodes' clocks disagree by 3.4 ms and drift apart by 6 ppm; every GPU clock is off by less
  than 1 us. Collectives end together, but for 0.5 us of jitter.
- NVTX ranges: `iteration`, `data_loading`, `forward`, `backward`, `optimizer`, and NCCL's own with
  communicator, bytes and reduction as JSON.

| rank | window ms | busy | compute | communication | exposed | copies only | idle | kernels |
|---|---|---|---|---|---|---|---|---|
{table}

## single_process.sqlite

One process on one H100, truth in `single_process.truth.json`: {single_iterations} training
iterations whose pageable input copies stop both host and GPU, device allocations, and then an
`inference` range that replays one CUDA graph {graphs} times. The graph was traced as a whole
(`--cuda-graph-trace=graph`), so {opaque_ms} ms of the window are opaque: no kernel rows exist
for them, only graph launches.

## kernels_h100.ncu.csv

What `ncu --set full --csv --page raw` (Nsight Compute 2025) would print about {kernels} kernels on
one H100 PCIe at its base clock: a copy, GEMMs in bf16, tf32 and fp32, a reduction, a strided and an
L2-resident kernel, and a small one. Simulated, too; work, traffic and durations are in
`kernels_h100.truth.json`. `nsightpy roofline sample_reports/kernels_h100.ncu.csv` reads it.

## torch_2rank/

Traces of PyTorch's profiler of two ranks that train the same kind of model, one trace a rank, as
`export_chrome_trace` writes them (`train_rank0.pt.trace.json.gz`), truth in `truth.json`. Rank 1
is the slower one. NCCL's calls are arguments of its kernels; ranges are `record_function`'s:

    nsightpy summarize sample_reports/torch_2rank
    nsightpy operators sample_reports/torch_2rank

## training_4rank.ncu.csv

What ncu would print about the launches that `nsightpy select sample_reports/training_4rank`
chooses. Its speeds are made up from the kernels' names; `scripts/make_sample_measurements.py`
writes it. To try the loop on:

    nsightpy headroom sample_reports/training_4rank --ncu sample_reports/training_4rank.ncu.csv

## training_memory.pickle

What `torch.cuda.memory._dump_snapshot` would write after {memory_iterations} iterations of a small
training on one GPU, recorded from behind the weights' allocation on; truth in
`training_memory.truth.json`. `trainer/log.py:9` keeps a tensor of 3 MB alive in every iteration.
`nsightpy memory-usage sample_reports/training_memory.pickle` reads it.

## Private matters

The environment in each report is made up. It holds one fake secret, so that tests can prove that
nothing of the environment but the rank ever leaves a report.
"""


def main() -> int:
    """Write the samples, or compare them with what lies there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=HERE)
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args()
    if not chosen.check:
        return _write(chosen.output)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        if _write(made):
            return 1
        names = [path.relative_to(made) for path in sorted(made.rglob("*")) if path.is_file()]
        stale = [name for name in names if not _same(made / name, chosen.output / name)]
    for name in stale:
        print(f"{chosen.output / name} is not what this script makes: run it", file=sys.stderr)
    return 1 if stale else 0


def _same(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()


def _write(output: Path) -> int:
    training = output / "training_4rank"
    paths, truth = TRAINING_4RANK.write(training)
    _write_json(training / "truth.json", truth)
    (single,), single_truth = SINGLE_PROCESS.write(output)
    report = single.rename(output / "single_process.sqlite")
    single_truth = json.loads(json.dumps(single_truth).replace(single.name, report.name))
    _write_json(output / "single_process.truth.json", single_truth)
    (output / "README.md").write_text(_readme(truth, single_truth), encoding="utf-8")
    written = [*paths, training / "truth.json", report, output / "single_process.truth.json"]
    written += _write_kernels(output)
    written += _write_memory(output)
    written += _write_traces(output)
    size = sum(path.stat().st_size for path in written)
    if size > LIMIT_BYTES:
        print(f"samples take {size} bytes, over the limit of {LIMIT_BYTES}", file=sys.stderr)
        return 1
    return 0


def _write_kernels(output: Path) -> list[Path]:
    """What ncu would print about single kernels."""
    page, truth = output / "kernels_h100.ncu.csv", output / "kernels_h100.truth.json"
    page.write_text(ncu.raw_page(ncu.KERNELS, "train"), encoding="utf-8")
    _write_json(truth, {"launches": [kernel.truth() for kernel in ncu.KERNELS]})
    return [page, truth]


def _write_memory(output: Path) -> list[Path]:
    """The memory of a training run, as PyTorch's allocator records it."""
    memory = TRAINING_MEMORY.run()
    snapshot = write_snapshot(output / "training_memory.pickle", [memory])
    truth = output / "training_memory.truth.json"
    _write_json(truth, training_memory.truth(memory))
    return [snapshot, truth]


def _write_traces(output: Path) -> list[Path]:
    """The same kind of job as PyTorch's profiler records it."""
    run = TORCH_2RANK.run()
    folder = output / "torch_2rank"
    traces = write_traces(run, folder)
    _write_json(folder / "truth.json", job_truth(run))
    return [*traces, folder / "truth.json"]


def _write_json(path: Path, truth: Mapping[str, object]) -> None:
    """One line per member, and per element where a member is a list."""
    members = []
    for name, value in truth.items():
        text = json.dumps(value)
        if isinstance(value, list):
            text = "[\n" + ",\n".join(json.dumps(element) for element in value) + "\n]"
        members.append(f"{json.dumps(name)}: {text}")
    path.write_text("{\n" + ",\n".join(members) + "\n}\n", encoding="utf-8")


def _readme(truth: Mapping[str, Any], single: Mapping[str, Any]) -> str:
    rows, shares = [], []
    for rank in truth["ranks"]:
        budget = rank["budget"]
        window = budget["window_ns"]
        words = ("busy", "compute", "communication", "exposed_communication", "copy_only", "idle")
        cells = [f"{100 * budget[word + '_ns'] / window:.1f} %" for word in words]
        shares.append(100 * budget["exposed_communication_ns"] / window)
        count = sum(kernel["instances"] for kernel in rank["kernels"])
        rows.append(
            f"| {rank['rank']} | {window / 1e6:.1f} | " + " | ".join(cells) + f" | {count} |"
        )
    only = single["ranks"][0]
    return README.format(
        straggler=truth["straggler"],
        exposed=f"{min(shares):.0f} to {max(shares):.0f} %",
        iterations=truth["job"]["iterations"],
        warmup=truth["job"]["warmup"],
        table="\n".join(rows),
        single_iterations=len(only["iterations"]),
        graphs=only["graphs"]["count"],
        kernels=len(ncu.KERNELS),
        memory_iterations=TRAINING_MEMORY.iterations,
        opaque_ms=f"{only['budget']['opaque_graph_ns'] / 1e6:.1f}",
    )


if __name__ == "__main__":
    sys.exit(main())
