"""One command in a copy of this process, or in a new one, under limits of time and memory."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import io
import os
import pkgutil
import re
import resource
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from fuzzer.surroundings import PLAIN, Around, Place, prepare_text

# Of processor time; and until something that only waits is ended.
SECONDS = 30.0
LONGEST = 120.0
MOST_BYTES = 1_500_000_000
ADDRESSES = 6_000_000_000
# Modules that commands import when they need them.
_USED = (
    *("pandas", "pyarrow.parquet", "pyarrow.csv", "pyarrow.pandas_compat", "rich.console"),
    *("sqlalchemy.dialects.sqlite", "adbc_driver_sqlite", "adbc_driver_manager", "ncu_report"),
    *("matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "jinja2"),
    *("encodings.unicode_escape", "encodings.utf_8_sig", "xml.etree.ElementTree"),
)


@dataclass(frozen=True)
class Ran:
    """How a command ended: exit code (negative: a signal), seconds of processor time, peak bytes,
    what it said."""

    code: int
    seconds: float
    peak_bytes: int
    out: str
    err: str
    timed_out: bool


def warm_up() -> None:
    """Import what commands import, and draw once, so that copies need not."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "ARROW_NUM_THREADS"):
        os.environ[name] = "1"
    import nsightpy

    own = (module.name for module in pkgutil.walk_packages(nsightpy.__path__, "nsightpy."))
    for module in (*own, *_USED):
        # what is not installed is not used either
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    figure = importlib.import_module("matplotlib.figure").Figure()
    figure.add_subplot().set_title("text")
    for form in ("svg", "png"):
        figure.savefig(io.BytesIO(), format=form)
    # copies then share the pages of what is there: a collection would write on each object
    gc.collect()
    gc.freeze()


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
        elif passed > LONGEST + 1:
            timed_out = True
            _end_group(pid)
            _, status, usage = os.wait4(pid, 0)
        else:
            if during is not None and passed >= around.after_s:
                during(place, pid)
                during = None
            time.sleep(0.005)
    seconds = usage.ru_utime + usage.ru_stime
    _end_group(pid)
    code = os.waitstatus_to_exitcode(status)
    timed_out = timed_out or code == -signal.SIGXCPU
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


def _lead_a_session() -> None:
    """Begin one, as nice as the one before (Linux: an autogroup of its own would forget that)."""
    group = Path("/proc/self/autogroup")
    said = None
    # not every kernel has the file, and some leave it empty
    with contextlib.suppress(OSError):
        said = re.search(r"-?\d+$", group.read_text("ascii", "replace").rstrip())
    os.setsid()
    if said:
        with contextlib.suppress(OSError):
            group.write_text(str(max(int(said[0]), os.nice(0))))


def _become(
    words: list[str], place: Place, around: Around, said: tuple[Path, Path], *, new: bool
) -> None:
    """Never returns: this copy is the command line now."""
    code = 70
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        _lead_a_session()
        os.chdir(place.folder)
        for number, path in zip((1, 2), said, strict=True):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.environ.update(NSIGHTPY_CACHE_DIR=str(place.cache / "cache"), COLUMNS="120")
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (int(SECONDS), int(SECONDS) + 2))
        if new:
            os.environ["PYTHONIOENCODING"] = around.encoding
            around.inside(place)
            os.execv(sys.executable, [sys.executable, "-m", "nsightpy", *words])
        where = os.fdopen(os.dup(2), "w")
        faulthandler.register(signal.SIGXCPU, file=where, chain=True)
        faulthandler.dump_traceback_later(LONGEST, file=where)
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
