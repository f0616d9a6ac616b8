"""Running `nsys export`: its options by version, its progress bar, what its errors mean."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from nsightpy.errors import ToolFailedError
from nsightpy.readers.tools.nvidia_tools import Tool
from nsightpy.readers.tools.tool_run import ToolRun, run_tool
from nsightpy.store.cache import unwritable

OPTIONS = ("--lazy=true", "--include-json=true")
"""What we ask for beyond the bare export; each is left out where nsys is too old for it."""

_KEPT_LINES = 15
_KEPT_CHARACTERS = 300
_PERCENT = re.compile(rb"(\d{1,3})\s?%")
_BAR = re.compile(r"\[(?=[^\]\r\n]*[=%])[=#>. -]*\d{0,3} ?%?[=#>. -]*(?:\]|(?=[\r\n])|\Z)")
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_REJECTED = re.compile(r"unrecogni[sz]ed option '?(--[\w-]+)")
_NO_LOCKS = "database is locked"
_NEWER = (
    "The report needs nsys {0} or later, and {nsys} is {version}: update Nsight Systems, or "
    "run `nsys export --type sqlite` where the report was captured and give the .sqlite instead."
)
_NO_SPACE = (
    "nsys could not write to {folder}: free some space there, or set NSIGHTPY_CACHE_DIR "
    "(TMPDIR when the cache is off) to another folder."
)
_DAMAGED = (
    "The report is truncated or damaged: copy it again, and let the profiler finish writing it."
)
_NO_HOST = (
    "This nsys lacks its host libraries: install the complete Nsight Systems, or set "
    "NSIGHTPY_NSYS to the nsys of one."
)
_NO_LOCKS_THERE = (
    "The file system of {folder} has no file locks: set NSIGHTPY_CACHE_DIR to a local folder."
)
_CAUSES = (
    (r"in Nsight Systems version \(?([^),]+)\)?,\s+newer than", _NEWER),
    (r"Version number is invalid: ([\d@.]+)", _NEWER),
    (r"magic number mismatch|Cannot read from stream", _DAMAGED),
    (_NO_LOCKS, _NO_LOCKS_THERE),
    (r"unable to open database file|is full|No space left|disk I/O error", _NO_SPACE),
    (r"[Ii]mporter\b.*not found", _NO_HOST),
    (r"", "Try `nsys export --type sqlite` on it by hand; {nsys} was used."),
)


def run_export(
    nsys: Tool,
    report: Path,
    exported: Path,
    fault: Callable[[Path], str | None],
    progress: Callable[[float], None],
) -> None:
    """Make an SQLite export with nsys; `fault` judges it, `done` gets the fraction.

    Raises ToolFailedError with the last words of nsys, and ReportError when there is no space.
    """
    run = _attempts(nsys, report, exported, progress)
    if run.returncode and _NO_LOCKS in run.output:
        with tempfile.TemporaryDirectory(prefix="nsightpy-") as local:
            elsewhere = Path(local) / exported.name
            run = _attempts(nsys, report, elsewhere, progress)
            if run.returncode == 0 and elsewhere.exists():
                try:
                    shutil.copyfile(elsewhere, exported)
                except OSError as error:
                    raise unwritable(exported.parent, error) from error
    if run.returncode:
        raise _failure(nsys, report, exported, run, _ending(run.returncode))
    flaw = fault(exported)
    if flaw is not None:
        raise _failure(nsys, report, exported, run, f"ended well, but of its export: {flaw}")


def _attempts(
    nsys: Tool, report: Path, exported: Path, progress: Callable[[float], None]
) -> ToolRun:
    """Run nsys, again without each of our options that it is too old for."""
    options = list(OPTIONS)
    while True:
        command: list[str | Path] = [nsys.path, "export", "--type=sqlite"]
        command += ["--force-overwrite=true", f"--output={exported}", *options, report]
        try:
            run = run_tool(command, on_output=percentages(progress))
        except (FileNotFoundError, PermissionError) as error:
            problem = f"cannot be exported: {nsys.path} cannot be run ({error.strerror})"
            advice = "Set NSIGHTPY_NSYS to the nsys of an Nsight Systems installation."
            raise ToolFailedError(report, problem, advice) from error
        match = _REJECTED.search(run.output) if run.returncode else None
        kept = [each for each in options if match is None or each.split("=")[0] != match[1]]
        if len(kept) == len(options):
            return run
        options = kept


def percentages(progress: Callable[[float], None]) -> Callable[[bytes], None]:
    """A listener that finds the percentages of a progress bar and hands on each new fraction."""
    rest, last = b"", -1

    def on_output(chunk: bytes) -> None:
        nonlocal rest, last
        text = rest + chunk
        matches = list(_PERCENT.finditer(text))
        rest = text[matches[-1].end() if matches else 0 :][-8:]
        for percent in (int(match[1]) for match in matches):
            if last < percent <= 100:
                last = percent
                progress(percent / 100)

    return on_output


def last_words(output: str) -> list[str]:
    """The last lines that a tool said, without its progress bar and control characters."""
    lines: list[str] = []
    for raw in re.split(r"[\r\n]+", _BAR.sub("\n", _ESCAPE.sub("", output))):
        text = "".join(c if c.isprintable() else " " for c in raw).strip()
        if text and text != (lines[-1] if lines else ""):
            lines.append(text[:_KEPT_CHARACTERS])
    return lines[-_KEPT_LINES:]


def _ending(returncode: int) -> str:
    if returncode < 0:
        return f"was killed by signal {-returncode}"
    return f"failed (exit code {returncode})"


def _failure(
    nsys: Tool, report: Path, exported: Path, run: ToolRun, ending: str
) -> ToolFailedError:
    words = "".join(f"\n  | {line}" for line in last_words(run.output))
    advice = next(
        text.format(
            *(part.replace("@", ".").strip(".") for part in match.groups()),
            nsys=nsys.path,
            version=nsys.version_text,
            folder=exported.parent.parent,
        )
        for pattern, text in _CAUSES
        if (match := re.search(pattern, run.output))
    )
    problem = f"cannot be exported: nsys {nsys.version_text} {ending}{words}"
    return ToolFailedError(report, problem, advice)
