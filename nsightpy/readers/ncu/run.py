"""Running ncu on an application: what it says as it goes, and what its errors mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from nsightpy.errors import ToolFailedError
from nsightpy.readers.tools.nvidia_tools import Tool
from nsightpy.readers.tools.tool_run import run_tool

_KEPT_LINES = 12
_KEPT_CHARACTERS = 300
_PROFILED = re.compile(r'==PROF== Profiling "(.*?)"(?: - \d+)?(?: \(\d+/\d+\))?:')
_PASSES = re.compile(r"100% - (\d+) pass")
_REPORT = re.compile(r"==PROF== Report: (.+)")
_ERROR = re.compile(r"==ERROR== (.+)")
NOTHING = "No kernels were profiled"
_AVAILABLE = re.compile(r"Available Kernels:((?:\s*\n\s*\d+\. .*)+)")
_REMEDIES = (
    (
        r"ERR_NVGPUCTRPERM",
        (
            "The driver keeps the counters for administrators. Run as root (sudo, or a container "
            "with --cap-add=SYS_ADMIN), or let an administrator load the nvidia module with "
            "NVreg_RestrictProfilingToAdminUsers=0 (a file in /etc/modprobe.d, then reload)."
        ),
    ),
    (
        r"driver resource was unavailable",
        (
            "Another tool holds the counters, mostly DCGM: `dcgmi profq --pause` or stop its "
            "nv-hostengine, close other profilers, and try again."
        ),
    ),
    (
        r"[Dd]river is not compatible|requires? (?:a )?newer driver",
        (
            "This ncu does not fit the driver: update the driver, or set NSIGHTPY_NCU to the ncu "
            "of the driver's own CUDA release."
        ),
    ),
    (
        r"unrecogni[sz]ed option '(--[\w-]+)",
        "ncu {version} is too old for {0}: set NSIGHTPY_NCU to a newer one (2023.2 or later).",
    ),
    (
        r"section set with identifier '?(\w+)|[Ss]et '?(\w+)'? (?:was )?not found",
        "ncu {version} has no set {0}: see `ncu --list-sets`, and choose one with --set.",
    ),
    (
        r"for option '(--[\w-]+)' is invalid",
        "ncu {version} does not know this value of {0}: set NSIGHTPY_NCU to a newer one.",
    ),
    (
        r"already exists",
        "Let ncu write over it with --ncu-force, or choose another --ncu-output.",
    ),
    (
        r"not supported on (?:this )?device|[Uu]nsupported GPU|GPU .*is not supported",
        (
            "This ncu does not know this GPU: set NSIGHTPY_NCU to one that does (older GPUs need "
            "an older ncu, newer ones a newer)."
        ),
    ),
    (
        r"nsight-compute-lock|InterprocessLock|[Ff]ailed to (?:open|acquire).*lock",
        "Another user's lock file is in the way: set TMPDIR to a folder of your own.",
    ),
    (
        r"(?:find|open|launch) (?:the )?(?:target )?(?:executable|application)|No such file",
        "The application cannot be started: check the command after --.",
    ),
    (
        r"application returned an error code \((\d+)\)",
        "The application itself failed with code {0}: run it without ncu first.",
    ),
    (
        NOTHING,
        (
            "No launch matched. The names or their order differ from the nsys capture: try --form "
            "function, and check that the application runs as it did."
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class NcuOutcome:
    """What a run of ncu did: kernels with their passes (0: unknown), and the report it wrote."""

    returncode: int
    profiled: tuple[tuple[str, int], ...]
    report: Path | None
    output: str

    @property
    def matched(self) -> bool:
        return bool(self.profiled)


def run_ncu(
    ncu: Tool,
    words: Sequence[str],
    *,
    on_output: Callable[[str], None] | None = None,
    keep: Path | None = None,
) -> NcuOutcome:
    """Run ncu (its arguments and the application's) and report its ==PROF== lines as they come.

    `keep` gets everything that was said: CSV pages come among it. A run that matched nothing is an
    outcome; raises ToolFailedError, with the remedy where it is known, for all else that fails.
    """
    reader = OutputReader(on_output)
    try:
        with keep.open("wb") if keep else nullcontext() as file:

            def heard(chunk: bytes) -> None:
                if file is not None:
                    file.write(chunk)
                reader(chunk)

            run = run_tool([ncu.path, *words], on_output=heard)
    except OSError as error:
        problem = f"cannot be run: {error.strerror}"
        raise ToolFailedError(ncu.path, problem, "Set NSIGHTPY_NCU to a working ncu.") from error
    reader.finish()
    outcome = NcuOutcome(run.returncode, tuple(reader.profiled), reader.report, run.output)
    errors = [text for text in reader.errors if "application returned" not in text]
    if errors or (run.returncode and not outcome.matched and NOTHING not in run.output):
        raise failure(ncu, run.returncode, "\n".join([*reader.errors, run.output]))
    return outcome


class OutputReader:
    """Finds in what ncu says the kernels it profiles, its errors and its report."""

    def __init__(self, on_output: Callable[[str], None] | None) -> None:
        self.profiled: list[tuple[str, int]] = []
        self.errors: list[str] = []
        self.report: Path | None = None
        self._on_output = on_output
        self._rest = b""

    def __call__(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._line(line.decode("utf-8", "replace").rstrip("\r"))

    def finish(self) -> None:
        """The last line may have no end."""
        if self._rest:
            self._line(self._rest.decode("utf-8", "replace"))
            self._rest = b""

    def _line(self, line: str) -> None:
        if match := _PROFILED.search(line):
            passes = _PASSES.search(line)
            self.profiled.append((match[1], int(passes[1]) if passes else 0))
        if match := _ERROR.search(line):
            self.errors.append(match[1])
        if match := _REPORT.search(line):
            self.report = Path(match[1].strip())
        if self._on_output is not None and line.startswith("=="):
            self._on_output(line)


def available(output: str) -> list[str]:
    """The kernels that ncu says there were, when none of them matched."""
    match = _AVAILABLE.search(output)
    if match is None:
        return []
    return [line.strip().partition(". ")[2] for line in match[1].strip().splitlines()]


def failure(ncu: Tool, returncode: int, output: str) -> ToolFailedError:
    """What went wrong in ncu's own words, and what to do about it."""
    lines = [line.strip()[:_KEPT_CHARACTERS] for line in output.splitlines() if line.strip()]
    words = [line for line in lines if line.startswith("==")] or lines
    ending = f"ended with code {returncode}" if returncode >= 0 else f"was killed ({-returncode})"
    shown = "".join(f"\n  | {line}" for line in list(dict.fromkeys(words))[-_KEPT_LINES:])
    return ToolFailedError(
        ncu.path, f"ncu {ncu.version_text} {ending}{shown}", remedy(output, ncu.version_text)
    )


def remedy(output: str, version: str = "(unknown version)") -> str:
    """What to do about what ncu said; empty where nothing is known."""
    for pattern, text in _REMEDIES:
        if match := re.search(pattern, output):
            detail = next((group for group in match.groups() if group), "")
            return text.format(detail, version=version)
    return ""
