"""Iterations that NVTX ranges name: repeated ranges at each nesting level, and PyTorch's steps.

Ranges of one name but for numbers in it are the same. Names that say step go before names that
say nothing; layers, operators and warm-up are never iterations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import Groups, group_by
from nsightpy.analysis.iterations.candidates import (
    NVTX,
    PROFILER,
    USER,
    Candidate,
    Other,
    of_spans,
)
from nsightpy.analysis.iterations.repetition import REPEATS
from nsightpy.analysis.iterations.vocabulary import (
    LIBRARY_DOMAINS,
    Role,
    is_engine_step,
    is_profiler_step,
    phases_folded,
    role_of,
)
from nsightpy.analysis.iterations.work import LaunchedWork
from nsightpy.analysis.nvtx.nesting import nest
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.frames import Frame, Ints

COVERED = 0.5
STEP_COVERED = 0.2
DEEPEST = 8
REGULAR = 0.6
STEP_REGULAR = 0.3
OTHERS = 6
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class ProgramRanges:
    """Ranges of a program's own (no library's) with a group for each name, level and thread.

    `start`, `end` in ns; `codes` into `names` and `roles`; `level`: nesting depth of each group.
    """

    start: Ints
    end: Ints
    codes: NDArray[np.int32]
    names: tuple[str, ...]
    roles: tuple[Role, ...]
    level: tuple[int, ...]
    thread: tuple[int, ...]

    @property
    def counts(self) -> Ints:
        return np.bincount(self.codes, minlength=len(self.names))

    def spans(self, code: int) -> tuple[Ints, Ints]:
        """Start and end of the ranges of one group, ascending."""
        rows = np.flatnonzero(self.codes == code)
        rows = rows[np.argsort(self.start[rows], kind="stable")]
        return self.start[rows], self.end[rows]

    def of_roles(self, *roles: Role) -> Sequence[int]:
        return [code for code, role in enumerate(self.roles) if role in roles]


def named_groups(ranges: Frame) -> ProgramRanges:
    """The ranges of one process (RANGE_COLUMNS) by name, level and thread."""
    of_program = ~ranges.labels("domain").equals(sorted(LIBRARY_DOMAINS))
    ranges = ranges.take(of_program & (ranges.ints("tid") == ranges.ints("end_tid")))
    names = folded(ranges.labels("name"))
    plain = names.renamed(lambda name: phases_folded(_NUMBER.sub("#", name)))
    level = nest(ranges).level
    groups: Groups = group_by(
        Frame({**ranges, "name": plain, "level": level}), ("tid", "domain", "level", "name")
    )
    keys = groups.keys
    first = np.zeros(len(keys), dtype=np.int64)
    first[groups.codes[::-1]] = np.arange(ranges.rows)[::-1]
    return ProgramRanges(
        ranges.ints("start_ns"),
        ranges.ints("end_ns"),
        groups.codes,
        tuple(str(key[3]) for key in keys),
        tuple(role_of(str(key[3])) for key in keys),
        tuple(level[first].tolist()),
        tuple(ranges.ints("tid")[first].tolist()),
    )


def from_named_ranges(ranges: Frame, work: LaunchedWork, text: str) -> Candidate | None:
    """The instances of ranges that the user named, those of the busiest thread."""
    if not ranges.rows:
        return None
    threads, counts = np.unique(ranges.ints("tid"), return_counts=True)
    mine = ranges.take(ranges.ints("tid") == threads[np.argmax(counts)])
    order = np.argsort(mine.ints("start_ns"), kind="stable")
    start, end = mine.ints("start_ns")[order], mine.ints("end_ns")[order]
    outer = np.ones(len(start), dtype=np.bool_)
    outer[1:] = end[1:] > np.maximum.accumulate(end)[:-1]
    return of_spans(USER, f"range {text!r}", start[outer], end[outer], work)


def from_nvtx(
    ranges: ProgramRanges, work: LaunchedWork
) -> tuple[list[Candidate], list[Candidate], list[Other]]:
    """Ranges named as steps, other ranges that may be the iterations, likeliest first, and those
    that repeat and are no iterations."""
    measured = _without_warm_up(ranges, work)
    steps = _candidates(ranges, measured, ranges.of_roles(Role.STEP), STEP_COVERED, STEP_REGULAR)
    rest = [Role.PLAIN, Role.PHASE, Role.EPOCH]
    others = _candidates(ranges, measured, ranges.of_roles(*rest), COVERED, REGULAR)
    rejected = [
        Other(NVTX, _source([ranges.names[code]]), len(start), _period(start), why)
        for code in ranges.of_roles(Role.LAYER, Role.WARM_UP)
        if len(start := ranges.spans(code)[0]) >= REPEATS
        for why in [f"named as a {ranges.roles[code].value}"]
    ]
    rejected.sort(key=lambda other: -other.count * other.period_ns)
    return steps, others, rejected[:OTHERS]


def few_engine_steps(ranges: ProgramRanges, work: LaunchedWork) -> Candidate | None:
    """An inference engine's steps that are too few to repeat, but launched most of the work: what
    repeats in it are their layers. None where there are none."""
    for code, name in enumerate(ranges.names):
        start, end = ranges.spans(code)
        if not is_engine_step(name) or len(start) >= REPEATS:
            continue
        low, high = np.searchsorted(work.issued, start), np.searchsorted(work.issued, end)
        if int((high - low).sum()) > COVERED * len(work):
            return of_spans(NVTX, f"range {name!r}", start, end, work)
    return None


def _without_warm_up(ranges: ProgramRanges, work: LaunchedWork) -> LaunchedWork:
    """The work that was not launched inside ranges called warm-up."""
    kept = np.ones(len(work), dtype=np.bool_)
    for code in ranges.of_roles(Role.WARM_UP):
        for start, end in zip(*(times.tolist() for times in ranges.spans(code)), strict=True):
            kept[np.searchsorted(work.issued, start) : np.searchsorted(work.issued, end)] = False
    return work if kept.all() or not kept.any() else work.take(np.flatnonzero(kept))


def _candidates(
    ranges: ProgramRanges, work: LaunchedWork, codes: Sequence[int], covered: float, regular: float
) -> list[Candidate]:
    """Repeated ranges among some groups, outermost first, best covered first on a level."""
    counts = ranges.counts
    sets: dict[tuple[int, int, int], list[int]] = {}
    for code in codes:
        if counts[code] >= REPEATS and ranges.level[code] < DEEPEST:
            key = (ranges.level[code], ranges.thread[code], int(counts[code]))
            sets.setdefault(key, []).append(code)
    good: list[tuple[int, float, Candidate]] = []
    for (level, _, _), members in sorted(sets.items()):
        candidate = _taking_turns(ranges, members, work)
        if candidate is None or candidate.coverage < covered or candidate.regular < regular:
            continue
        named = any(ranges.roles[code] is Role.STEP for code in members)
        if named or float(np.median(candidate.kernels)) > 1:
            outer = any(ranges.roles[code] is Role.EPOCH for code in members)
            good.append((level, -candidate.coverage, replace(candidate, outer=outer)))
    good.sort(key=lambda entry: (entry[0], entry[1], -len(entry[2])))
    return [candidate for _, _, candidate in good]


def _taking_turns(
    ranges: ProgramRanges, members: Sequence[int], work: LaunchedWork
) -> Candidate | None:
    """From the first to the last of groups that take turns; who does not is left out."""
    spans = sorted(
        ((*ranges.spans(code), code) for code in members),
        key=lambda span: (int(span[0][0]), -int(span[1][0])),
    )
    start, end, first = spans[0]
    used = [first]
    for other_start, other_end, code in spans[1:]:
        reach = np.maximum(end, other_end)
        if np.all(other_start >= start) and np.all(reach[:-1] <= start[1:]):
            end = reach
            used.append(code)
    if np.any(end[:-1] > start[1:]):
        return None
    names = [ranges.names[code] for code in used]
    kind = PROFILER if all(map(is_profiler_step, names)) else NVTX
    return of_spans(kind, _source(names), start, end, work)


def _source(names: Sequence[str]) -> str:
    return f"repeated range {', '.join(map(repr, names))}"


def _period(start: Ints) -> float:
    return float(np.median(np.diff(start))) if len(start) > 1 else 0.0
