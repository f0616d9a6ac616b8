"""Reports of one job: which rank each process is, and the frames of all ranks in one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, TypeAlias, TypeVar

from nsightpy.errors import ReportError, UsageError
from nsightpy.frames import Frame
from nsightpy.rank_frames import ProcessClock, clock_aligned, ranked_frame
from nsightpy.readers.nsys.identity import GUESS, decide_ranks, evidence_for, rank_expression
from nsightpy.readers.tools.file_check import resolved
from nsightpy.report_files import (
    first_hand,
    inner_folders,
    is_no_report,
    natural,
    reports_behind,
)
from nsightpy.report_set import FailureHandling, Mapped, Progress, ReportSet
from nsightpy.reports.memory_snapshot import MemorySnapshot
from nsightpy.reports.ncu import NcuReport
from nsightpy.reports.nsys import NSYS_SUFFIXES, NsysReport
from nsightpy.reports.opening import open_report
from nsightpy.reports.system import SystemReport
from nsightpy.reports.system_frames import SystemFrames
from nsightpy.results.abstention import reworded
from nsightpy.units import format_span, listed
from nsightpy.workers.outcomes import Run, here

T = TypeVar("T")
Paths: TypeAlias = "str | Path | SystemReport | RankSet | Iterable[str | Path | SystemReport]"

# So many captures that come twice are named, the others counted.
# Clocks of hosts may be this far apart.
CLOCKS_APART_NS = 60_000_000_000
MOST_REPEATED = 3
MOST_MISSING = 8


class RankSet(ReportSet[SystemReport], SystemFrames):
    """Reports of one job in natural order, each process with its rank and the evidence for it.

    It has the frames of one report (`ranks.kernels`), with the rows of all ranks.
    """

    _ranked = False
    # files that were given beside the reports, as a pattern of the shell does, and are none
    passed_by: tuple[Path, ...] = ()
    # folders that were given
    folders: tuple[Path, ...] = ()

    @property
    def notes(self) -> list[str]:
        """Notes of all reports; with several, those that name the same fact are counted."""
        named = []
        for report in self.readable:
            named.append((report.path.name, report.notes))
            report.close()
        return [*self.failure_notes, *self._rank_notes(), *notes_by_report(named)]

    def map(
        self,
        function: Callable[[SystemReport], T],
        *,
        jobs: int | None = None,
        ranked: bool = False,
        identified: bool = False,
    ) -> Mapped[SystemReport, T]:
        """Run a function on every report, as `ReportSet.map` does.

        `ranked` finds the ranks first, `identified` after, for functions that need none.
        """
        work = partial(_identified, function=function) if identified else function
        with self._engine(function, jobs) as run:
            if ranked:
                self._find_ranks(run)
            values = self._outcomes(run, work, self._progress)
        if identified:
            self._decide_ranks()
        return self._mapped(values)

    def frame(self, name: str, *, clocks: Iterable[ProcessClock] = ()) -> Frame:
        """A frame of all reports: rank (-1 where nothing tells) and report, then its columns.

        Rows are in the order of the reports, those of captures that come twice once. With the
        `clocks` of an alignment, times are ns since the zero of the first of them (see
        `nsightpy.aligned_frame`); rows of processes without a clock are left out.
        """
        unknown = 0 if name == "cuda_events" else None
        results = self.map(partial(ranked_frame, name=name), ranked=True).results
        every, repeated = list(clocks), self.repeated
        parts = [
            clock_aligned(part, report, every, unknown=unknown) if every else part
            for report, part in results
            if report.path not in repeated
        ]
        return Frame.concatenate(parts)

    def derived(self, key: str, make: Callable[[], T]) -> T:
        """What a question made of these reports: made once, and again when one more has failed."""
        known: dict[tuple[str, int], Any] = self.__dict__.setdefault("_derived", {})
        place = (key, len(self.failures))
        if place not in known:
            known[place] = make()
        value: T = known[place]
        return value

    def find_ranks(self) -> None:
        """Give every process of every report its rank, from all the evidence at once."""
        self._find_ranks(here)

    def _find_ranks(self, run: Run[SystemReport]) -> None:
        if not self._ranked:
            self._outcomes(run, _identify)
            self._decide_ranks()

    def _decide_ranks(self) -> None:
        if not self._ranked:
            assign_ranks(self.readable, lambda: self.one_job)
            self._ranked = True

    @property
    def one_job(self) -> bool:
        """Whether the captures may be of one job; their ranks and clocks mean something then."""
        return len(self.reports) < 2 or not self.derived("other times", self._other_times)

    @property
    def repeated(self) -> dict[Path, Path]:
        """Reports that hold the same processes of the same session as an earlier one."""
        first: dict[tuple[object, ...], Path] = {}
        repeated: dict[Path, Path] = {}
        for report in self.readable:
            session = report.session
            if not session.uuid and session.utc_ns is None:
                continue
            moment = (session.host, session.utc_ns, session.system_clock_ns, session.duration_ns)
            key = (session.uuid or moment, tuple(report.pids))
            if first.setdefault(key, report.path) != report.path:
                repeated[report.path] = first[key]
        return repeated

    def _other_times(self) -> list[str]:
        """Two captures that were over before the other one began: they are not one job's."""
        timed = []
        for report in self.readable:
            with suppress(ReportError):
                session = report.session
                if session.utc_ns is not None and session.duration_ns is not None:
                    end = session.utc_ns + session.duration_ns
                    timed.append((session.utc_ns, end, report.path))
            report.close()
        if len(timed) < 2:
            return []
        ended, first = min((end, path) for _, end, path in timed)
        began, last = max((begin, path) for begin, _, path in timed)
        if began <= ended + CLOCKS_APART_NS:
            return []
        apart = format_span(began - ended)
        return [
            f"{first} and {last} cannot be one job: the second began {apart} after the first ended"
        ]

    def _other_programs(self) -> list[str]:
        """Two captures that have no program in common: they are one job only if it ran both."""
        known = [
            (report.session.programs, report.path)
            for report in self.readable
            if report.session.programs
        ]
        for programs, path in known[1:]:
            if not programs & known[0][0]:
                first, other = (", ".join(sorted(names)) for names in (known[0][0], programs))
                note = (
                    f"{known[0][1]} is a capture of {first}, {path} of {other}: figures of both "
                    "together mean something only if one job ran both programs"
                )
                return [note]
        return []

    def _rank_notes(self) -> list[str]:
        """Captures that come twice, ranks that several reports claim, ranks that are missing."""
        notes: list[str] = []
        if self.passed_by:
            others = listed((path.name for path in self.passed_by), MOST_REPEATED)
            notes.append(f"not read, as no report of a kind that nsightpy reads: {others}")
        notes += self.derived("inner folders", partial(inner_folders, self.folders))
        if len(self.reports) < 2:
            return notes
        notes += self.derived("other times", self._other_times) or self._other_programs()
        if not self._ranked:
            return notes
        repeated = self.repeated
        notes += [f"{again} repeats the capture of {first}" for again, first in repeated.items()]
        if (many := len(notes) - MOST_REPEATED) > 1:
            notes[MOST_REPEATED:] = [f"{many} more reports repeat the capture of an earlier one"]
        owners: dict[int, list[str]] = {}
        guessed = False
        for report in self.readable:
            for rank, source in () if report.path in repeated else report.ranks.values():
                if rank is not None:
                    owners.setdefault(rank, []).append(report.path.name)
                    guessed |= source.startswith(GUESS)
        for rank, names in sorted(owners.items()):
            if len(names) > 1:
                shown = listed(dict.fromkeys(names))
                notes.append(f"rank {rank} is claimed {len(names)} times: {shown}")
        if owners and not guessed:
            notes += _missing_note(owners)
        return notes


def open_ranks(
    paths: Paths,
    *,
    use_cache: bool = True,
    rank_regex: str | None = None,
    jobs: int | None = None,
    dask: object = None,
    on_error: str = FailureHandling.SKIP,
    progress: Progress | None = None,
) -> RankSet:
    """Open reports, folders and globs as one rank set, in natural order of their names.

    Each report counts once: however often it is named, and when its own export lies beside it.
    jobs: worker processes; dask: a scheduler's address or file, or a Client.
    Raises ReportError when nothing there is a report.
    """
    if isinstance(paths, RankSet):
        return paths
    if rank_regex is not None:
        rank_expression(rank_regex)
    given = [paths] if isinstance(paths, str | Path | SystemReport) else list(paths)
    opened = [item for item in given if isinstance(item, SystemReport)]
    files: dict[Path, int] = {}
    for item in given:
        files |= reports_behind(item) if isinstance(item, str | Path) else {}
    chosen = first_hand(files, NSYS_SUFFIXES)
    named = {Path(item) for item in given if isinstance(item, str | Path)}
    others = {path for path in chosen if len(chosen) > 1 and is_no_report(path)}
    if len(others) == len(chosen):  # then each is refused for what it is
        others = set()
    chosen = [path for path in chosen if path not in others]
    for path in chosen:
        settings: dict[str, Any] = {
            "use_cache": use_cache,
            "rank_regex": rank_regex,
            "progress": progress,
            "threads": 1 if jobs == 1 else None,
        }
        try:
            report = open_report(path, **settings)
        except ReportError:
            if len(chosen) == 1 or path in named:
                raise
            # it fails again when it is read, and is left out then as any damaged report
            report = NsysReport(path, **settings)
        if not isinstance(report, SystemReport):
            raise _other_question(report)
        report.earlier_cycles = files[path]
        opened.append(report)
    reports: dict[Path, SystemReport] = {}
    for ranked in opened:
        reports.setdefault(resolved(ranked.path), ranked)
    if not reports:
        raise UsageError("no reports given")
    ordered = sorted(reports.values(), key=lambda report: natural(str(report.path)))
    _refuse_mixture(ordered)
    ranks = RankSet(ordered, jobs=jobs, dask=dask, on_error=on_error, progress=progress)
    ranks.passed_by = tuple(sorted(others))
    ranks.folders = tuple(sorted(path for path in named if path.is_dir()))
    return ranks


def _other_question(report: NcuReport | MemorySnapshot) -> ReportError:
    """What to say of a report that other commands read."""
    if isinstance(report, NcuReport):
        problem = "is an Nsight Compute report, and this needs Nsight Systems reports"
        command = "roofline"
    else:
        problem = "is a memory snapshot of PyTorch, and this needs reports or traces"
        command = "memory-usage"
    advice = f"`nsightpy {command} {quote(str(report.path))}` reads it."
    return ReportError(report.path, problem, advice)


def _refuse_mixture(reports: Sequence[SystemReport]) -> None:
    """Raise ReportError for a rank set of both tools: their clocks and names have little in
    common."""
    traces = [report for report in reports if report.kind != NsysReport.kind]
    others = [report for report in reports if report.kind == NsysReport.kind]
    if traces and others:
        problem = f"is a PyTorch trace, and {others[0].path} is a report of Nsight Systems"
        advice = "one rank set holds reports of one tool: give the files of one of them."
        raise ReportError(traces[0].path, problem, advice)


def _missing_note(ranks: Collection[int]) -> list[str]:
    """The note of ranks below the greatest that no report has: some named, the others counted."""
    missing = max(ranks) + 1 - len(ranks)
    if not missing:
        return []
    # the first gaps are among so many numbers
    first = range(min(max(ranks), len(ranks) + MOST_MISSING) + 1)
    shown = [rank for rank in first if rank not in ranks][:MOST_MISSING]
    more = f" and {missing - len(shown):,} more" if missing > len(shown) else ""
    return [f"ranks without a report here: {', '.join(map(str, shown))}{more}"]


def map_runs(
    runs: Sequence[RankSet], function: Callable[[SystemReport], T], *, ranked: bool = False
) -> list[list[tuple[SystemReport, T]]]:
    """Run a function on every report of several rank sets at once, each with ranks of its own.

    Settings are those of the first set; `ranked` finds the ranks first, else they are found on the
    way. A report that several sets share is read once; what fails is tallied by its sets. Raises
    ReportError where all reports fail.
    """
    first = runs[0]
    every = {report.path: report for run in runs for report in run.reports}
    together = ReportSet(
        list(every.values()),
        jobs=first.jobs,
        dask=first.dask,
        on_error=first.on_error,
        progress=first._progress,
    )
    if ranked:
        for run in runs:
            run.find_ranks()
    values = {
        report.path: value
        for report, value in together.map(partial(_identified, function=function)).results
    }
    failures = {failure.path: failure for failure in together.failures}
    for run in runs:
        for report in run.reports:
            if str(report.path) in failures:
                run._failures[report.path] = failures[str(report.path)]
            elif every[report.path] is not report:
                report.adopt(every[report.path].facts)
        run._decide_ranks()
    return [
        [(report, values[report.path]) for report in run.reports if report.path in values]
        for run in runs
    ]


def assign_ranks(
    reports: Sequence[SystemReport], one_job: Callable[[], bool] = lambda: True
) -> None:
    """Give every process of these reports a rank, from all their evidence at once.

    Captures of several jobs are told apart by their order where some have no evidence.
    """
    by_path = {str(report.path): report for report in reports}
    evidence = {
        (path, pid): evidence_for(report.evidence, pid)
        for path, report in by_path.items()
        for pid in report.pids
    }
    decided = decide_ranks(evidence)
    if any(rank is None for rank, _ in decided.values()) and not one_job():
        decided = decide_ranks(dict.fromkeys(evidence, ()))
    for (path, pid), decision in decided.items():
        by_path[path].ranks[pid] = decision


def _identify(report: SystemReport) -> None:
    _ = report.evidence


def _identified(report: SystemReport, *, function: Callable[[SystemReport], T]) -> T:
    """The function's result, with the evidence for ranks found on the way."""
    _identify(report)
    return function(report)


def notes_by_report(named: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """The notes of reports by name, each once; with several, who said the same is counted."""
    who: dict[str, list[str]] = {}
    for name, notes in named:
        for note in notes:
            who.setdefault(note, []).append(name)
    return [_attributed(note, names, len(named)) for note, names in who.items()]


def _attributed(note: str, names: list[str], reports: int) -> str:
    if reports == 1:
        return note
    if len(names) == 1:
        return reworded(note, lambda text: f"{names[0]}: {text}")
    which = f"all {reports}" if len(names) == reports else f"{len(names)}"
    return reworded(note, lambda text: f"{text} ({which} reports)")
