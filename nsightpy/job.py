"""A job: its reports and what of them questions are about, said once; commands are its methods."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Self, Unpack

from nsightpy.command_table import COMMANDS
from nsightpy.errors import UsageError
from nsightpy.frames import EVERY_SCHEMA, Frame
from nsightpy.query.engine import Parts, Question, answer
from nsightpy.query.options import Common
from nsightpy.query.request import Request
from nsightpy.query.scope import Scope
from nsightpy.query.steps import iteration_numbers
from nsightpy.report_sets.opening import AnyPaths, split_by_tool
from nsightpy.reports.system import SystemReport
from nsightpy.results.notes import Said, texts

if TYPE_CHECKING:
    import pandas as pd

_COMMANDS = {each.function: each for each in COMMANDS.values() if each.name not in ("cache", "mcp")}


def open(reports: AnyPaths, **common: Unpack[Common]) -> Job:
    """The job of some reports, folders or patterns, with the options that commands share.

    Raises ReportError where nothing there is a report.
    """
    return Job(reports, **common)


class Job:
    """The reports of one job, and the part of them that questions are about.

    Every command is a method that takes the command's own options. `with` closes the reports.
    """

    def __init__(self, reports: AnyPaths, **common: Unpack[Common]) -> None:
        systems, compute, snapshots = split_by_tool(reports)
        self._reports = [*systems, *compute, *snapshots]
        self._common = common
        of_other_tools = self._reports and not systems
        self._opened = None if of_other_tools else Request.of(systems, **common)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _COMMANDS:
            raise AttributeError(f"a job has no {name!r}")
        command = _COMMANDS[name].load()

        def method(*more: Any, **own: Any) -> Any:
            if command.asks:
                return answer(self._request, command.question(*more, **own))
            shared = {key: value for key, value in self._common.items() if key in command.shared}
            return command(self._reports, *more, **shared, **own)

        return update_wrapper(method, command, updated=())

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_COMMANDS})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the reports and of what was read; what is asked next reads it again."""
        for report in self._opened.ranks if self._opened else ():
            report.close()
            if not report.use_cache and report.store.folder is not None:
                shutil.rmtree(report.store.folder, ignore_errors=True)

    def events(self, frame: str) -> pd.DataFrame:
        """A frame of all ranks ("kernels", ...), in the part that was asked for, on one clock.

        rank and report come first, duration_ns and iteration last; -1 where nothing tells. Times
        are ns since the first rank's report began; what limits them is in `.attrs["notes"]`.
        """
        if frame not in EVERY_SCHEMA:
            raise UsageError(f"no frame {frame!r}; there are {', '.join(EVERY_SCHEMA)}")
        together = partial(_together, name=frame)
        work = partial(_events, name=frame)
        return answer(self._request, Question(work, together, identified=True, clock=True))

    @property
    def _request(self) -> Request:
        """Raises ReportError, which names another command, for reports of other tools."""
        return self._opened or Request.of(self._reports, **self._common)


def _events(report: SystemReport, scope: Scope, *, name: str) -> Frame:
    """The rows of a report's frame in scope; events with their duration and their iteration."""
    rows = scope.narrow_any(report, report.frame(name))
    if not {"start_ns", "end_ns", "pid"} <= set(rows):
        return rows
    duration = rows.ints("end_ns") - rows.ints("start_ns")
    return Frame({**rows, "duration_ns": duration, "iteration": iteration_numbers(report, rows)})


def _together(parts: Parts[Frame], name: str) -> pd.DataFrame:
    """The rows of all reports on one clock, captures that come twice once."""
    results, lost = parts.placed()
    clock = parts.clock
    frames = [clock.frame(report, rows, name) for report, rows in results]
    table = Frame.concatenate(frames).to_pandas()
    notes: list[Said] = [*clock.notes, *lost, *parts.request.notes]
    table.attrs["notes"] = texts(notes, parts.request.kind)
    return table
