"""Run nsightpy, then say on stderr how much memory this process took at most, children apart.

python benchmarks/harness/own_peak.py ARGUMENTS-OF-NSIGHTPY
"""

from __future__ import annotations

import atexit
import os
import resource
import runpy
import sys
from pathlib import Path

PEAK = "own peak: "
STDERR = os.dup(2)  # nsightpy closes its own at its end


def tell() -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    os.write(STDERR, f"{PEAK}{peak}\n".encode())


if __name__ == "__main__":
    sys.path[0] = str(Path.cwd())  # as `python -m nsightpy` has it
    atexit.register(tell)
    runpy.run_module("nsightpy", run_name="__main__", alter_sys=True)
