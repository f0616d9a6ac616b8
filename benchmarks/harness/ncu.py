"""The Nsight Compute reports that are measured on: real ones, where they are at hand."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from harness.measure import Command

ROOT = Path(__file__).resolve().parents[2]
OURS, PEER = "ncu metrics", "plain ncu_report loop"
CODE = (
    "import sys; from nsightpy.reports.one_file import NcuReport; "
    "print(sum(NcuReport(path).frame('metrics').rows for path in sys.argv[1:]), 'metrics')"
)


def reports() -> list[str]:
    """All .ncu-rep under NSIGHTPY_REPORTS, else beside the checkout; none without the library."""
    if importlib.util.find_spec("ncu_report") is None:
        return []
    folder = Path(os.environ.get("NSIGHTPY_REPORTS") or ROOT.parent / "shared" / "reports")
    return [str(path) for path in sorted(folder.rglob("*.ncu-rep"))]


def commands() -> list[Command]:
    """All metrics of all these reports in one process, ours and the peer's."""
    paths = reports()
    loop = str(ROOT / "benchmarks" / "peers" / "ncu_loop.py")
    return [
        Command(OURS, (sys.executable, "-c", CODE, *paths)),
        Command(PEER, (sys.executable, loop, *paths)),
    ]
