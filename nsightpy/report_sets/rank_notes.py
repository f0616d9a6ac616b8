"""What is said of the reports of one job: captures that come twice, other jobs, missing ranks."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count, islice
from pathlib import Path

from nsightpy.errors import ReportError
from nsightpy.readers.nsys.identity import GUESS
from nsightpy.reports.system import SystemReport
from nsightpy.results import Note, notes as kinds
from nsightpy.units import format_span, listed

# Clocks of hosts may be this far apart.
CLOCKS_APART_NS = 60_000_000_000
# So many captures that come twice, and ranks without a report, are named; the others are counted.
MOST_REPEATED = 3
MOST_MISSING = 8


def repeated_captures(reports: Sequence[SystemReport]) -> dict[Path, Path]:
    """Reports that hold the same processes of the same session as an earlier one, with that one."""
    first: dict[tuple[object, ...], Path] = {}
    repeated: dict[Path, Path] = {}
    for report in reports:
        session = report.session
        if not session.uuid and session.utc_ns is None:
            continue
        moment = (session.host, session.utc_ns, session.system_clock_ns, session.duration_ns)
        key = (session.uuid or moment, tuple(report.pids))
        if first.setdefault(key, report.path) != report.path:
            repeated[report.path] = first[key]
    return repeated


def other_times(reports: Sequence[SystemReport]) -> list[Note]:
    """Two captures that were over before the other one began: they are not one job's."""
    timed = []
    for report in reports:
        with suppress(ReportError):
            session = report.session
            if session.utc_ns is not None and session.duration_ns is not None:
                timed.append((session.utc_ns, session.utc_ns + session.duration_ns, report.path))
        report.close()
    if len(timed) < 2:
        return []
    ended, first = min((end, path) for _, end, path in timed)
    began, last = max((begin, path) for begin, _, path in timed)
    if began <= ended + CLOCKS_APART_NS:
        return []
    apart = format_span(began - ended)
    reason = f"{first} and {last} cannot be one job: the second began {apart} after the first ended"
    return [Note(reason, kind=kinds.OTHER_JOBS)]


def claim_notes(reports: Sequence[SystemReport], repeated: Mapping[Path, Path]) -> list[Note]:
    """Captures that come twice, ranks that several reports claim, and ranks that none has."""
    again = [f"{path} repeats the capture of {first}" for path, first in repeated.items()]
    notes = [Note(listed(again, MOST_REPEATED), kind=kinds.REPEATED)] if again else []
    owners: dict[int, list[str]] = {}
    guessed = False
    for report in reports:
        for rank, source in () if report.path in repeated else report.ranks.values():
            if rank is not None:
                owners.setdefault(rank, []).append(report.path.name)
                guessed |= source.startswith(GUESS)
    notes += [
        Note(
            f"rank {rank} is claimed {len(names)} times: {listed(dict.fromkeys(names))}",
            kind=kinds.CLAIMED,
        )
        for rank, names in sorted(owners.items())
        if len(names) > 1
    ]
    missing = max(owners) + 1 - len(owners) if owners and not guessed else 0
    if missing:
        gaps = (rank for rank in count() if rank not in owners)
        shown = list(islice(gaps, min(missing, MOST_MISSING)))
        more = f" and {missing - len(shown):,} more" if missing > len(shown) else ""
        reason = f"ranks without a report here: {', '.join(map(str, shown))}{more}"
        notes.append(Note(reason, kind=kinds.MISSING_RANKS))
    return notes


def guess_notes(reports: Sequence[SystemReport]) -> list[Note]:
    """That ranks are only an order, where no evidence gives any."""
    sources = (source for report in reports for _, source in report.ranks.values())
    guess = next((source for source in sources if source.startswith(GUESS)), None)
    if guess is None:
        return []
    order = guess.removeprefix(GUESS).strip()
    note = f"ranks are a guess, the order of the {order}: --rank-regex finds them in file names"
    return [Note(note)]


def notes_by_report(named: Sequence[tuple[str, Sequence[Note]]]) -> list[Note]:
    """The notes of reports by name, each once; with several, who said the same is counted."""
    who: dict[Note, list[str]] = {}
    for name, notes in named:
        for note in notes:
            who.setdefault(note, []).append(name)
    if len(named) == 1:
        return list(who)
    return [
        replace(note, whose=names[0])
        if len(names) == 1
        else replace(note, reports=f"{'all ' * (len(names) == len(named))}{len(names)} reports")
        for note, names in who.items()
    ]
