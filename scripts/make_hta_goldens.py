"""Write what Meta's HolisticTraceAnalysis says about real PyTorch traces, as goldens of the tests.

HTA is no dependency of nsightpy: run this in an environment of its own,

    python -m venv hta && hta/bin/pip install HolisticTraceAnalysis==0.5.0
    hta/bin/python scripts/make_hta_goldens.py REPORTS/kineto

It writes tests/goldens/hta/NAME.json for every NAME.json.gz there that HTA can read: the temporal
breakdown, the overlap of communication and computation, the idle time of each stream by class, and
of the kernel breakdown the time of each type and the sums of its ten largest kernels (no names).
Times are us, as HTA gives them; percentages are rounded as HTA rounds them. The last profiler step
is included. HTA 0.5.0 needs pandas below 3.
"""

import argparse
import json
import math
from importlib.metadata import version
from pathlib import Path

from hta.trace_analysis import TraceAnalysis

GOLDENS = Path(__file__).resolve().parent.parent / "tests" / "goldens" / "hta"
# HTA's documented default for the largest gap between kernels that counts as kernel wait.
KERNEL_DELAY = 30
LARGEST = 10


def figures(path: Path) -> dict[str, object]:
    """HTA's figures of one trace, which it knows as rank 0."""
    analysis = TraceAnalysis(
        trace_files={0: str(path)}, trace_dir=str(path.parent), include_last_profiler_step=True
    )
    temporal = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    overlap = analysis.get_comm_comp_overlap(visualize=False).iloc[0]
    idle, _ = analysis.get_idle_time_breakdown(
        ranks=[0], consecutive_kernel_delay=KERNEL_DELAY, visualize=False
    )
    streams: dict[str, dict[str, float]] = {}
    for row in idle.itertuples():
        streams.setdefault(str(int(row.stream)), {})[row.idle_category] = float(row.idle_time)
    types, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=LARGEST)
    percentage = float(overlap["comp_comm_overlap_pctg"])
    return {
        "hta": version("HolisticTraceAnalysis"),
        "temporal": {name: float(temporal[name]) for name in temporal.index if name != "rank"},
        "overlap_pctg": None if math.isnan(percentage) else percentage,
        "idle_us": dict(sorted(streams.items(), key=lambda item: int(item[0]))),
        "type_us": {row.kernel_type: float(row.sum) for row in types.itertuples()},
        "kernel_us": {
            kind: sorted(float(each) for each in rows["sum (us)"] if each)[::-1]
            for kind, rows in kernels[kernels["name"] != "others"].groupby("kernel_type")
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", type=Path)
    parser.add_argument("--output", type=Path, default=GOLDENS)
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    for path in sorted(chosen.traces.glob("*.json.gz")):
        target = chosen.output / path.name.replace(".json.gz", ".json")
        try:
            found = figures(path)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            print(f"{path.name}: HTA cannot read it: {type(error).__name__}: {error}")
            continue
        target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
