"""Which candidate the iterations of a process are, and what else repeats in it.

Ranges that PyTorch's profiler or the program itself calls steps go first. Then ranges whose names
say nothing, where the order of the launches does not contradict them; then that order alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.iterations.candidates import PROFILER, Candidate, Other, owner_of
from nsightpy.analysis.iterations.ranges import ProgramRanges, few_engine_steps, from_nvtx
from nsightpy.analysis.iterations.repetition import LOOKED_AT, REPEATS
from nsightpy.analysis.iterations.sequences import LevelsFound, from_sequences
from nsightpy.analysis.iterations.work import LaunchedWork
from nsightpy.units import format_time

AGREES = 0.1
FULLER = 0.1
NESTED = 0.8
OTHERS = 6
SEARCHED = " (looked for in the middle {:,} of {:,} launches)"


@dataclass(frozen=True)
class IterationChoice:
    """The candidate that was chosen, None with the reason in `why`; `others` repeat, too."""

    chosen: Candidate | None
    others: tuple[Other, ...] = ()
    notes: tuple[str, ...] = ()
    why: str = ""


def choose_iterations(
    work: LaunchedWork,
    alone: LaunchedWork,
    found: LevelsFound,
    ranges: ProgramRanges,
    first_ns: int | None = None,
) -> IterationChoice:
    """The iterations of one process among all candidates.

    `alone`: the work of its busiest device, the order of whose launches is judged; `found` are the
    levels of that. `first_ns`: when its first operation on a GPU began, copies among them.
    """
    sequence, levels = from_sequences(alone, found, ranges, first_ns)
    steps, named, rejected = from_nvtx(ranges, work)
    if steps:
        chosen = next((step for step in steps if step.kind == PROFILER), steps[0])
        return _chosen(chosen, [*steps, *named], sequence, [*rejected, *levels])
    if few := few_engine_steps(ranges, work):
        rest = [*([_as_other(sequence)] if sequence else []), *rejected, *levels]
        return IterationChoice(few, tuple(rest[:OTHERS]))
    if sequence is not None and all(_holds_steps(candidate, sequence) for candidate in named):
        return _chosen(sequence, named, None, [*rejected, *levels])
    if named:
        related = [
            candidate
            for candidate in named
            if sequence is None
            or (_related(candidate, sequence) and not _holds_steps(candidate, sequence))
        ]
        if related and sequence is not None and _fuller(sequence, related[0]):
            return _chosen(sequence, named, None, [*rejected, *levels])
        if related:
            return _chosen(related[0], named, sequence, [*rejected, *levels])
        text = ", ".join(
            _described(candidate) for candidate in [named[0], *([sequence] if sequence else [])]
        )
        others = (*(_as_other(candidate) for candidate in named), *rejected, *levels)
        why = f"the sources disagree: {text}; --nvtx RANGE decides"
        return IterationChoice(None, others[:OTHERS], why=why)
    others = tuple([*rejected, *levels][:OTHERS])
    searched = SEARCHED.format(LOOKED_AT, len(alone)) if len(alone) > LOOKED_AT else ""
    return IterationChoice(None, others, why=f"{_reason(others)}{searched}")


def _chosen(
    chosen: Candidate,
    named: Sequence[Candidate],
    sequence: Candidate | None,
    rest: Sequence[Other],
) -> IterationChoice:
    """A choice with all other candidates, and how the launches' order relates to it."""
    beside = [candidate for candidate in named if candidate is not chosen]
    notes = []
    if sequence is not None:
        beside.append(sequence)
        if _related(chosen, sequence) and (times := _times(chosen, sequence)) != 1:
            notes.append(f"{_described(sequence)}: {_ratio_text(times)} the {chosen.source}")
        elif not _related(chosen, sequence):
            notes.append(f"{_described(sequence)} does not fit the {chosen.source}")
    others = tuple([*(_as_other(candidate) for candidate in beside), *rest][:OTHERS])
    return IterationChoice(chosen, others, tuple(notes))


def _reason(others: Sequence[Other]) -> str:
    """Why nothing was chosen."""
    explained = [other for other in others if other.why]
    if not explained:
        return (
            "no range, collective or kernel sequence repeats through most of the run; "
            "--nvtx RANGE names one"
        )
    first = explained[0]
    return (
        f"what repeats is no step of the program: {first.count} x {format_time(first.period_ns)} "
        f"{first.source} ({first.why}); --nvtx RANGE names the steps"
    )


def _holds_steps(candidate: Candidate, sequence: Candidate) -> bool:
    """Whether ranges that are named as epochs hold several of what the order of launches shows."""
    return candidate.outer and candidate.period_ns >= REPEATS * sequence.period_ns


def _fuller(sequence: Candidate, named: Candidate) -> bool:
    """Whether the order of launches shows the same iterations with more of the work in them."""
    alike = abs(len(sequence) - len(named)) <= 1
    return alike and sequence.coverage > named.coverage + FULLER


def _as_other(candidate: Candidate) -> Other:
    return Other(candidate.kind, candidate.source, len(candidate), candidate.period_ns, "")


def _related(candidate: Candidate, other: Candidate) -> bool:
    """Whether the periods agree, one is a whole multiple of the other, or each holds as many."""
    inner, outer = sorted((candidate, other), key=lambda each: each.period_ns)
    if inner.period_ns <= 0:
        return False
    times = outer.period_ns / inner.period_ns
    if abs(times - round(times)) <= AGREES * min(round(times), 2):
        return True
    # programs may pause between the longer ones
    owner = owner_of(outer.start, outer.end, (inner.start + inner.end) // 2)
    held = np.bincount(owner[owner >= 0], minlength=len(outer))
    whole = np.abs(held - np.median(held)) <= AGREES * np.median(held)
    return bool((owner >= 0).mean() >= NESTED and whole.mean() >= NESTED)


def _times(candidate: Candidate, other: Candidate) -> float:
    """How many iterations of `other` make one of `candidate`; 1/n the other way round."""
    ratio = len(other) / len(candidate)
    return round(ratio) if ratio >= 1 else 1 / max(round(1 / ratio), 1)


def _ratio_text(times: float) -> str:
    return f"{times:g} in each of" if times > 1 else f"one for {1 / times:g} of"


def _described(candidate: Candidate) -> str:
    return f"{candidate.source} ({len(candidate)} x {format_time(candidate.period_ns)})"
