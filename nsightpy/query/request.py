"""What every command is called with: the reports, and the options that all of them share."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, Unpack, cast, get_type_hints

from nsightpy.errors import NsightpyError
from nsightpy.query.capture_advice import ROWS_OF, bearing_on, not_recorded
from nsightpy.query.options import Common, Reading, Running, Scoping
from nsightpy.query.scope import Scope
from nsightpy.report_sets.opening import Paths, open_ranks
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.report_sets.report_set import Mapped
from nsightpy.reports.system import SystemReport
from nsightpy.results import AnyTable, Note, Said, with_notes
from nsightpy.results.notes import as_note
from nsightpy.units import listed

T = TypeVar("T")
# The options that say which part of the reports a question is about, as they are typed.
_TYPED = {
    **{name: f"--{name.removesuffix('_time')}" for name in get_type_hints(Scoping)},
    "rank_regex": "--rank-regex",
}


@dataclass
class Request:
    """The reports and the part of them that a command is about."""

    ranks: RankSet
    scope: Scope
    options: str = ""

    @classmethod
    def of(cls, reports: Paths, **common: Unpack[Common]) -> Request:
        """Open the reports; raises UsageError and ReportError, TypeError for what is unknown.

        The stretch of time of several reports is found in each one's own time.
        """
        given: Any = common
        scope = Scope.of(**{key: given[key] for key in Scoping.__annotations__ if key in given})
        use_cache = common.get("use_cache", True)
        ranks = open_ranks(reports, use_cache=use_cache, **reading_options(common))
        if (scope.from_ns, scope.to_ns) != (None, None):
            scope = _in_own_times(scope, ranks)
        return cls(ranks, replace(scope, alone=len(ranks) == 1), typed_options(common))

    def map(
        self, work: Callable[[SystemReport], T], *, ranked: bool = False, identified: bool = False
    ) -> Mapped[SystemReport, T]:
        """The work on every report; ranks are found first, or after where the work needs none."""
        first = not identified and (ranked or self.scope.ranks is not None)
        if self.scope.ranks is not None:
            self.ranks.find_ranks()
            ranks = {rank for report in self.ranks for rank, _ in report.ranks.values()}
            _require("rank", self.scope.ranks, ranks, "no process has it", "none is known")
        if self.scope.devices is not None:
            devices = set[int]().union(*self.ranks.map(_devices, jobs=1).values)
            missing, none = "no GPU work on it", "the reports hold none"
            _require("device", self.scope.devices, devices, missing, none)
        return self.ranks.map(work, ranked=first, identified=identified)

    @property
    def notes(self) -> list[Note]:
        """Everything that has to be said about the inputs."""
        return [*self.ranks.notes, *map(Note, self.scope.notes)]

    def finish(self, table: AnyTable, *notes: Said) -> AnyTable:
        """The table with the inputs and everything that has to be said about them."""
        of_ranges = self.scope.nvtx is not None
        about = bearing_on(self.notes, table.command, table.columns, ranges=of_ranges)
        own = [as_note(note) for note in (*table.notes, *notes)]
        if not table.rows and not any(note.what_would_help for note in own):
            if self.scope.is_part:
                own = [Note("The part of the time that is asked for holds nothing to list."), *own]
            elif table.command in ROWS_OF and not self.scope.is_narrowed:
                own = [ROWS_OF[table.command], *own]
        return with_notes(table, self.ranks.inputs, [*own, *about], self.kind)

    @property
    def kind(self) -> str:
        """The tool that made the reports: nsys or torch."""
        return self.ranks.reports[0].kind


def _in_own_times(scope: Scope, ranks: RankSet) -> Scope:
    """The scope with its stretch of time in the own time of each of several reports."""
    from nsightpy.query.rank_alignment import common_clock

    clock = common_clock(ranks)
    low, high = (0 if ns is None else ns for ns in (scope.from_ns, scope.to_ns))
    paths = dict.fromkeys(path for path, _ in clock.fits)
    bounds = {path: (clock.own(path, low), clock.own(path, high)) for path in paths}
    return replace(scope, own_bounds=bounds)


def running_options(common: Common) -> Running:
    """Those of the options that say how a function is run over reports."""
    given: Any = common
    return cast(Running, {key: given[key] for key in Running.__annotations__ if key in given})


def reading_options(common: Common) -> Reading:
    """The same with how their ranks are found."""
    return {"rank_regex": common.get("rank_regex"), **running_options(common)}


def captures(count: int, of: int) -> str:
    """Which captures a note is about: the only one, or so many of all."""
    return "The capture" if of == 1 else f"{count} of {of} captures"


def without_calls(figures: str, count: int, of: int) -> Note:
    """The note of captures without API calls, and what is not known of them."""
    reason = f"{captures(count, of)} recorded no CUDA API calls: {figures} are not known."
    return not_recorded(reason)


def without_launch_call(what: str, so: str) -> str:
    """The note on work whose launch call is not in the capture, and what becomes of it."""
    return f"{what} have no recorded launch call: they are {so}."


def typed_options(common: Mapping[str, object]) -> str:
    """The options of a scope as they can be typed again, quoted for a shell."""
    given = ((option, common.get(name)) for name, option in _TYPED.items())
    return " ".join(f"{option}={shlex.quote(str(v))}" for option, v in given if v is not None)


def _require(
    what: str, wanted: frozenset[int], there: Iterable[int | None], missing: str, none: str
) -> None:
    """Raise NsightpyError, with what there is instead, when none of the wanted numbers is there."""
    numbers = sorted(number for number in there if number is not None)
    if wanted & set(numbers):
        return
    instead = f"there are: {listed(map(str, numbers))}" if numbers else none
    typed = listed(map(str, sorted(wanted)))
    raise NsightpyError(f"--{what} {typed}: {missing}; {instead}. See nsightpy info.")


def _devices(report: SystemReport) -> set[int]:
    """The CUDA devices that did anything."""
    return {device for _, device in report.extent.places}
