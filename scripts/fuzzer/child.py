"""One command in a copy of this process, or in a new one, under limits of time and memory."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import os
import resource
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from fuzzer.surroundings import PLAIN, Around, Place, prepare_text

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
        *(
            "adbc_driver_sqlite",
            "adbc_driver_manager",
            "nsightpy.__main__",
            "nsightpy.cli.main",
            "nsightpy.figures",
        ),
    )
    for module in modules:
        importlib.import_module(module)
    from nsightpy.command_table import COMMANDS

    for command in COMMANDS.values():
        importlib.import_module(command.module)
        importlib.import_module(command.cli_module)


def run(words: list[str], place: Place, around: Around = PLAIN, *, new: bool = False) -> Ran:
    """Run a command line in a folder; what it leaves behind is ended with it.

    `new`: in a Python of its own, as a user starts it, and not in a copy of this one.
    """
    out, err = place.cache / "stdout", place.cache / "stderr"
    around.before(place)
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _become(words, place, around, (out, err), new=new)
    timed_out, status, usage = False, 0, None
    during = around.during
    while usage is None:
        done, state, used = os.wait4(pid, os.WNOHANG)
        passed = time.monotonic() - began
        if done:
            status, usage = state, used
        elif passed > SECONDS + 1:
            timed_out = True
            _end_group(pid)
            _, status, usage = os.wait4(pid, 0)
        else:
            if during is not None and passed >= around.after_s:
                during(place, pid)
                during = None
            time.sleep(0.005)
    seconds = time.monotonic() - began
    _end_group(pid)
    code = os.waitstatus_to_exitcode(status)
    # a signal may have come before there were files
    said = [
        path.read_bytes().decode(around.encoding, "replace") if path.exists() else ""
        for path in (out, err)
    ]
    out.unlink(missing_ok=True)
    err.unlink(missing_ok=True)
    return Ran(code, seconds, usage.ru_maxrss * 1024, said[0], said[1], timed_out)


def _end_group(pid: int) -> None:
    """End what a command started and did not end itself."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _stay_nice() -> None:
    """A session of its own is as nice as its process (Linux: autogroups would forget that)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(os.nice(0)))


def _become(
    words: list[str], place: Place, around: Around, said: tuple[Path, Path], *, new: bool
) -> None:
    """Never returns: this copy is the command line now."""
    code = 70
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        os.setsid()
        _stay_nice()
        os.chdir(place.folder)
        for number, path in zip((1, 2), said, strict=True):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.environ.update(NSIGHTPY_CACHE_DIR=str(place.cache / "cache"), COLUMNS="120")
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (int(4 * SECONDS), int(4 * SECONDS)))
        if new:
            os.environ["PYTHONIOENCODING"] = around.encoding
            around.inside(place)
            os.execv(sys.executable, [sys.executable, "-m", "nsightpy", *words])
        faulthandler.dump_traceback_later(SECONDS, file=os.fdopen(os.dup(2), "w"))
        around.inside(place)
        prepare_text(around)
        from nsightpy.__main__ import main

        sys.argv = ["nsightpy", *words]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        main()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException:  # noqa: BLE001 - the judge is to see it
        import traceback

        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                continue
        os._exit(code)
