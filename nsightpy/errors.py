"""Errors: one base, few leaves. Each message says which file, what is wrong, and what to do."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from errno import EMFILE, ENFILE
from pathlib import Path

# Where limits leave less, whatever goes wrong does for want of memory: libraries, calls.
_LITTLE = 32 * 2**20
# "raise": what no check foresaw is raised as it is, so that no run of the tests gets past it.
FAULTS = "NSIGHTPY_FAULTS"


class NsightpyError(Exception):
    """What nsightpy cannot do, for a reason the user can act on; the command line exits with 1.

    As data: the file it is about, what is wrong, and what to do; empty where the text is all.
    """

    path = ""
    advice = ""

    @property
    def problem(self) -> str:
        """What is wrong."""
        return str(self)


class UsageError(NsightpyError):
    """The request itself is wrong (an unknown split, a bad time, a bad rank); exits with 2."""


def require_choice(parameter: str, value: str, choices: Collection[str]) -> None:
    """Raise UsageError where a parameter is none of its choices."""
    if value not in choices:
        raise UsageError(f"{parameter} must be one of {', '.join(choices)}, not {value!r}")


class _FileError(NsightpyError):
    """What is wrong with one file."""

    problem = ""
    before_advice = "\n  "

    def __init__(self, path: object, problem: str, advice: str = "") -> None:
        self.path = str(path)
        self.problem = problem
        self.advice = advice
        # lines are the message's own: each is escaped where it is shown
        name = self.path.replace("\n", "\\n")
        super().__init__(f"{name}: {problem}" + (f"{self.before_advice}{advice}" if advice else ""))

    def __reduce__(self) -> tuple[type[_FileError], tuple[str, str, str]]:
        return type(self), (self.path, self.problem, self.advice)


class ReportError(_FileError):
    """A file cannot be read as the report it claims to be."""

    @property
    def left_out(self) -> str:
        """The note of a report that was left out because of this."""
        return f"left out: {self.path}: {self.problem}"


class FaultError(ReportError):
    """A fault of nsightpy: what no check foresaw, met with a report where `path` names one."""

    def __init__(self, path: object, what: str) -> None:
        on = f" on {path}" if path else ""
        advice = "this is a fault of nsightpy, please report it; -v shows where"
        super().__init__(path, f"nsightpy failed{on} ({what})", advice)
        self.what = what
        self.args = (f"{self.problem}; {advice}",)

    def __reduce__(self) -> tuple[type[FaultError], tuple[str, str]]:  # type: ignore[override]
        return type(self), (self.path, self.what)

    @property
    def left_out(self) -> str:
        return f"left out: {self.problem}"


def memory_left() -> int | None:
    """Bytes that limits of this process (`ulimit -v`, `-d`) leave; None where there is no limit."""
    try:
        import resource

        used = Path("/proc/self/statm").read_bytes().split()
        page, left = resource.getpagesize(), []
        for limit, pages in ((resource.RLIMIT_AS, used[0]), (resource.RLIMIT_DATA, used[5])):
            if (most := resource.getrlimit(limit)[0]) != resource.RLIM_INFINITY:
                left.append(most - int(pages) * page)
    except (ImportError, OSError, ValueError, IndexError):
        return None
    return min(left, default=None)


class TooMuchError(Exception):
    """More than there may be, seen where no file is known: `unforeseen` makes it a ReportError."""


def unforeseen(path: object, error: Exception, since: float | None = None) -> ReportError:
    """The error for an exception that no check foresaw: mostly a FaultError.

    `since`: when reading began (Unix time, s); a file that changed after that is said to have.
    Raises the exception itself where NSIGHTPY_FAULTS=raise and it is a fault of nsightpy.
    """
    left = memory_left()
    if isinstance(error, MemoryError) or (left is not None and left < _LITTLE):
        problem = "needs more memory than there is"
        return ReportError(path, problem, "ask for less: --from and --to, or use fewer --jobs.")
    if isinstance(error, OSError) and error.errno in (EMFILE, ENFILE):
        advice = "raise the limit (`ulimit -n`), or use fewer --jobs."
        return ReportError(path, "needs more open files than the system allows", advice)
    text = " ".join(str(error).split())[:200]
    if isinstance(error, TooMuchError):
        return ReportError(path, text, "`nsightpy nvtx` counts ranges by name.")
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    with suppress(OSError, ValueError):
        if since is not None and Path(str(path)).stat().st_ctime > since:  # written or replaced
            problem = f"was changed while it was read ({what})"
            return ReportError(path, problem, "wait until nothing writes it, then ask again.")
    if os.environ.get(FAULTS) == "raise":
        raise error
    return FaultError(path, what)


class ToolNotFoundError(ReportError):
    """A report needs an NVIDIA tool that is not on this machine."""


class ToolFailedError(ReportError):
    """An NVIDIA tool was run and failed; its own words are part of the message."""


class MissingDataError(ReportError):
    """The capture did not record what the question needs."""


class OutputError(_FileError):
    """A result cannot be written where the user wants it."""

    before_advice = "; "
