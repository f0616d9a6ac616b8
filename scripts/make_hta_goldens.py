"""Write what Meta's HolisticTraceAnalysis says about real PyTorch traces, as goldens of the tests.

HTA is no dependency of nsightpy: run this in an environment of its own,

    python -m venv hta && hta/bin/pip install HolisticTraceAnalysis==0.5.0
    hta/bin/python scripts/make_hta_goldens.py REPORTS/kineto

It writes tests/goldens/hta/NAME.json for every NAME.json.gz there: the temporal breakdown, the
overlap of communication and computation, and the idle time of each stream by class. Times are us,
as HTA gives them; percentages are rounded as HTA rounds them. The last profiler step is included.
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


def figures(path: Path) -> dict[str, object]:
    """HTA's figures of one trace, which it knows as rank 0."""
    analysis = TraceAnalysis(
        trace_files={0: str(path)},
        trace_dir=str(path.parent),
        include_last_profiler_step=True,
    )
    temporal = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    overlap = analysis.get_comm_comp_overlap(visualize=False).iloc[0]
    idle, _ = analysis.get_idle_time_breakdown(
        ranks=[0], consecutive_kernel_delay=KERNEL_DELAY, visualize=False
    )
    streams: dict[str, dict[str, float]] = {}
    for row in idle.itertuples():
        streams.setdefault(str(int(row.stream)), {})[row.idle_category] = float(row.idle_time)
    percentage = float(overlap["comp_comm_overlap_pctg"])
    return {
        "hta": version("HolisticTraceAnalysis"),
        "temporal": {name: float(temporal[name]) for name in temporal.index if name != "rank"},
        "overlap_pctg": None if math.isnan(percentage) else percentage,
        "idle_us": dict(sorted(streams.items(), key=lambda item: int(item[0]))),
    }


def main() -> None:
    """Write one golden per trace."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", type=Path)
    parser.add_argument("--output", type=Path, default=GOLDENS)
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    for path in sorted(chosen.traces.glob("*.json.gz")):
        target = chosen.output / path.name.replace(".json.gz", ".json")
        target.write_text(json.dumps(figures(path), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
