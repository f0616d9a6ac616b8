"""Read a .ncu-rep with an installed ncu: import it, and parse the CSV that ncu prints."""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path

from nsightpy.errors import ToolFailedError, ToolNotFoundError
from nsightpy.readers.ncu import ncu_csv
from nsightpy.readers.ncu.file import FileFacts
from nsightpy.readers.ncu.tables import NcuTables
from nsightpy.readers.tools.nvidia_tools import Tool, find_tool
from nsightpy.readers.tools.tool_run import run_tool

# Base units would be rounded to two decimals; these keep six, and are scaled back here.
OPTIONS = ("--csv", "--page", "raw", "--print-units", "auto")
_KEPT_LINES = 6
THREE_WAYS = (
    "three ways out: `pip install 'nsightpy[ncu]'` (NVIDIA's reader; no GPU needed); or install "
    "Nsight Compute, or set NSIGHTPY_NCU to its ncu; or run `ncu --import {name} --csv --page raw "
    "> {stem}.csv` where ncu is, and give the CSV file."
)


def read_with_ncu(path: Path, facts: FileFacts) -> NcuTables:
    """The frames of a report as ncu prints it; rule messages are not part of that page.

    Raises ToolNotFoundError with all ways out, and ToolFailedError with the last words of ncu.
    """
    try:
        ncu = find_tool("ncu")
    except ToolNotFoundError:
        raise _no_reader(path) from None
    tables = ncu_csv.parse(path, _printed(ncu, path))
    note = (
        f"read with {ncu.path}, to six digits and without ncu's rule messages; "
        "`pip install 'nsightpy[ncu]'` reads everything."
    )
    version = facts.tool_version
    return dataclasses.replace(tables, tool_version=version, notes=(*tables.notes, note))


def _no_reader(path: Path) -> ToolNotFoundError:
    """What is said where neither the library nor ncu is at hand."""
    return ToolNotFoundError(
        path,
        "needs NVIDIA's ncu_report or ncu to be read, and neither was found",
        THREE_WAYS.format(name=path.name, stem=path.stem),
    )


def _printed(ncu: Tool, path: Path) -> str:
    chunks: list[bytes] = []
    command: list[str | Path] = [ncu.path, "--import", path, *OPTIONS]
    if os.name != "nt" and (env := shutil.which("env")):
        command = [env, "LC_ALL=C", *command]
    try:
        run = run_tool(command, on_output=chunks.append)
    except OSError as error:
        problem = f"cannot be read: {ncu.path} cannot be run ({error.strerror})"
        raise ToolFailedError(path, problem, "set NSIGHTPY_NCU to another ncu.") from error
    text = b"".join(chunks).decode("utf-8", "replace")
    if run.returncode or "==ERROR==" in text:
        words = [line for line in run.output.splitlines() if line.strip()][-_KEPT_LINES:]
        said = "".join(f"\n  | {line[:300]}" for line in words)
        raise ToolFailedError(
            path,
            f"cannot be imported: ncu {ncu.version_text} failed{said}",
            "an ncu cannot read reports of a later one: update Nsight Compute, or "
            "`pip install 'nsightpy[ncu]'`.",
        )
    return text
