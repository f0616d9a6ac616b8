"""One command in a copy of this process, under limits of time and memory."""

from __future__ import annotations

import faulthandler
import importlib
import os
import resource
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

SECONDS = 30.0
MOST_BYTES = 1_500_000_000
ADDRESSES = 6_000_000_000


@dataclass(frozen=True)
class Ran:
    """How a command ended: exit code (negative: a signal), seconds, peak bytes, what it said."""

    code: int
    seconds: float
    peak_bytes: int
    out: str
    err: str
    timed_out: bool


def warm_up() -> None:
    """Import what commands import, so that copies need not."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "ARROW_NUM_THREADS"):
        os.environ[name] = "1"
    modules = (
        *("pandas", "pyarrow", "pyarrow.parquet", "pyarrow.csv", "sqlalchemy", "rich.console"),
        *(
            "matplotlib.figure",
            "matplotlib.backends.backend_agg",
            "matplotlib.backends.backend_svg",
        ),
        *("adbc_driver_sqlite", "adbc_driver_manager", "nsightpy.cli.main", "nsightpy.figures"),
    )
    for module in modules:
        importlib.import_module(module)
    from nsightpy.command_table import COMMANDS

    for command in COMMANDS.values():
        importlib.import_module(command.module)
        importlib.import_module(command.cli_module)


def run(words: list[str], folder: Path, cache: Path) -> Ran:
    """Run a command line in a folder; what it leaves behind is ended with it."""
    out, err = cache / "stdout", cache / "stderr"
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _become(words, folder, cache, out, err)
    timed_out, status, usage = False, 0, None
    while usage is None:
        done, state, used = os.wait4(pid, os.WNOHANG)
        if done:
            status, usage = state, used
        elif time.monotonic() - began > SECONDS + 1:
            timed_out = True
            os.killpg(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
        else:
            time.sleep(0.005)
    seconds = time.monotonic() - began
    code = os.waitstatus_to_exitcode(status)
    said = [path.read_bytes().decode("utf-8", "replace") for path in (out, err)]
    return Ran(code, seconds, usage.ru_maxrss * 1024, said[0], said[1], timed_out)


def _become(words: list[str], folder: Path, cache: Path, out: Path, err: Path) -> None:
    """Never returns: this copy is the command line now."""
    code = 70
    try:
        os.setsid()
        os.chdir(folder)
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        os.environ.update(NSIGHTPY_CACHE_DIR=str(cache / "cache"), COLUMNS="120")
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        faulthandler.dump_traceback_later(SECONDS, file=sys.stderr)
        from nsightpy.cli.main import main

        main(words)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException:  # noqa: BLE001 - the judge is to see it
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
