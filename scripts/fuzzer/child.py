"""One command in a copy of this process, under limits of time and memory."""

import contextlib
import faulthandler
import gc
import importlib
import io
import os
import pkgutil
import resource
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

# Of processor time; and until something that only waits is ended.
SECONDS = 30.0
LONGEST = 120.0
MOST_BYTES = 1_500_000_000
LIMITS = {
    resource.RLIMIT_AS: (6_000_000_000, 6_000_000_000),
    resource.RLIMIT_CORE: (0, 0),
    resource.RLIMIT_CPU: (int(SECONDS), int(SECONDS) + 2),
}
# Modules that commands import when they need them.
_USED = (
    *("pandas", "pyarrow.parquet", "pyarrow.csv", "pyarrow.pandas_compat", "rich.console"),
    *("sqlalchemy.dialects.sqlite", "adbc_driver_sqlite", "adbc_driver_manager", "ncu_report"),
    *("matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "jinja2"),
    *("encodings.unicode_escape", "encodings.utf_8_sig", "xml.etree.ElementTree"),
)


@dataclass(frozen=True)
class Place:
    """Where a command runs: its folder, the file or folder it is asked about, its own cache."""

    folder: Path
    target: Path
    cache: Path


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


def run(words: list[str], place: Place) -> Ran:
    """Run a command line in a folder; what it leaves behind is ended with it."""
    streams = [place.cache / "stdout", place.cache / "stderr"]
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _become(words, place, streams)
    timed_out, usage = False, None
    while usage is None:
        ended, status, used = os.wait4(pid, os.WNOHANG)
        if ended:
            usage = used
        elif time.monotonic() - began > LONGEST + 1:
            timed_out = True
            _end_group(pid)
        time.sleep(0 if ended else 0.005)
    _end_group(pid)
    code = os.waitstatus_to_exitcode(status)
    texts = []
    for path in streams:
        texts.append(path.read_bytes().decode("utf-8", "replace"))
        path.unlink()
    seconds, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
    return Ran(code, seconds, peak, texts[0], texts[1], timed_out or code == -signal.SIGXCPU)


def _end_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _become(words: list[str], place: Place, streams: list[Path]) -> NoReturn:
    """This copy is the command line now."""
    code = 70
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        os.setsid()
        os.chdir(place.folder)
        for number, path in enumerate(streams, 1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.environ.update(NSIGHTPY_CACHE_DIR=str(place.cache / "cache"), COLUMNS="120")
        for limit, values in LIMITS.items():
            resource.setrlimit(limit, values)
        log = os.fdopen(os.dup(2), "w")
        faulthandler.register(signal.SIGXCPU, file=log, chain=True)
        faulthandler.dump_traceback_later(LONGEST, file=log)
        for name, descriptor in (("stdout", 1), ("stderr", 2)):
            buffering = 1 if name == "stderr" else -1
            setattr(sys, name, open(descriptor, "w", buffering, "utf-8", closefd=False))  # noqa: SIM115
        from nsightpy.__main__ import main

        sys.argv = ["nsightpy", *words]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        main()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException:  # noqa: BLE001 - the judge is to see it
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(code)
