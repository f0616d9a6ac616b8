"""Run nsightpy, then say on stderr how much memory this process took at most, children apart.

python benchmarks/harness/own_peak.py ARGUMENTS-OF-NSIGHTPY
"""

from __future__ import annotations

import atexit
import resource
import runpy
import sys
from pathlib import Path

PEAK = "own peak: "


def tell() -> None:
    print(f"{PEAK}{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}", file=sys.stderr)


if __name__ == "__main__":
    sys.path[0] = str(Path.cwd())  # as `python -m nsightpy` has it
    atexit.register(tell)
    runpy.run_module("nsightpy", run_name="__main__", alter_sys=True)
