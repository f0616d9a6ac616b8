"""The sections about the files themselves: what they are, and memory snapshots among them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from nsightpy.commands.memory_usage.command import memory_usage
from nsightpy.commands.report.catalogue import MEMORY_USAGE
from nsightpy.commands.report.inputs import Inputs
from nsightpy.commands.report.questions import Context, section_of, shortened, table_of
from nsightpy.errors import ReportError
from nsightpy.query.request import Common
from nsightpy.results import Table
from nsightpy.results.page import Section
from nsightpy.units import counted


def capture_section(about: Table, notes: Sequence[str], context: Context) -> Section:
    """What each report is, and what has to be known to trust the figures."""
    main = ("report", "rank", "host", "gpu", "devices", "tool_version", "duration_ns", "kernels")
    unique = tuple(dict.fromkeys(notes))
    said = f", with {counted(len(unique), 'note')}" if unique else ""
    return Section(
        "capture",
        "About the capture",
        says=f"{counted(len(about), 'report')}{said}.",
        help="Which files the page is about, what made them, and what their figures lack.",
        tables=(table_of("capture", about, main),),
        notes=shortened(unique),
        command=context.command("info"),
    )


def snapshots_section(inputs: Inputs, context: Context) -> Section:
    """The memory that snapshots know of."""
    kept: Any = {name: value for name, value in inputs.common.items() if name != "nvtx"}
    try:
        answer: Table | ReportError = memory_usage(inputs.snapshots, **cast(Common, kept))
    except ReportError as error:
        answer = error
    return section_of(MEMORY_USAGE, answer, context)


def title_of(inputs: Sequence[str]) -> str:
    """The name of the only file; of several their folder, how many, the first and the last."""
    paths = [Path(name) for name in inputs]
    if len(paths) == 1:
        return paths[0].name
    folders = {path.parent for path in paths}
    where = f"{paths[0].parent.name}: " if len(folders) == 1 and paths[0].parent.name else ""
    return f"{where}{len(paths)} reports, {paths[0].name} to {paths[-1].name}"
