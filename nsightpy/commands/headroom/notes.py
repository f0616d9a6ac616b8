"""What a reader of the headroom must know: denominators, the ceiling of all, doubts, leftovers."""

from __future__ import annotations

from collections.abc import Iterator

from nsightpy.analysis.selection.headroom import APART
from nsightpy.analysis.selection.headroom_join import LOOSE
from nsightpy.commands.headroom.gains import Headroom
from nsightpy.names import brief
from nsightpy.units import counted, format_time

_NAME_WIDTH = 60


def headroom_notes(made: Headroom) -> list[str]:
    """The notes of a table of headroom, most important first."""
    return [
        *_matched(made),
        *_largest(made),
        *_meaning(made),
        *_doubts(made),
        *_alone(made),
    ]


def _matched(made: Headroom) -> Iterator[str]:
    if made.kernels and all(kernel.match is None for kernel in made.kernels):
        yield (
            "Nothing that ncu measured is a kernel of these reports, by name: it is of another "
            "program, or of another build of it."
        )


def _largest(made: Headroom) -> Iterator[str]:
    """The loop in one sentence: the measured kernel with the highest ceiling."""
    top = next(iter(made.measured), None)
    if top is None or top.roof is None or top.gain_ns is None or not made.step_ns:
        return
    name = brief(top.variant.name or top.variant.base or top.variant.mangled, _NAME_WIDTH)
    replayed = "" if top.gain_share is None else f", {100 * top.gain_share:.1f} % by replay"
    yield (
        f"{name} is {100 * top.covered_ns / made.step_ns:.1f} % of the {made.unit} and runs at "
        f"{100 * top.roof.fraction:.0f} % of its roof ({top.roof.name}): at most "
        f"{100 * top.gain_ns / made.step_ns:.1f} % to gain{replayed}."
    )


def _meaning(made: Headroom) -> Iterator[str]:
    """What the shares are of, and the ceiling of all."""
    step, together = made.step_ns, made.ceiling_share
    if not step:
        return
    yield f"share is of the {made.unit}: {format_time(step)} over the windows of all devices."
    if together is not None and len(made.measured) > 1:
        covered = sum(kernel.disjoint_ns for kernel in made.measured) / step
        replayed = "" if made.gain_share is None else f"; a replay gains {made.gain_share:.1%}"
        yield (
            f"Together {len(made.measured)} measured kernels take {100 * covered:.1f} % of the "
            f"{made.unit}, and at most {100 * together:.1f} % of it are to be gained (time in "
            f"which several ran counts once{replayed})."
        )


def _doubts(made: Headroom) -> Iterator[str]:
    roofless = [k for k in made.kernels if k.match is not None and k.roof is None]
    if roofless:
        why = dict.fromkeys(
            str(text) for k in roofless if k.match for text in k.match.measured.typical.missing
        )
        have = "has" if len(roofless) == 1 else "have"
        yield (
            f"{counted(len(roofless), 'measured kernel')} {have} no roof, and so no ceiling: "
            f"{' '.join(text[:1].upper() + text[1:] for text in why)}"
        )
    apart = [k for k in made.kernels if k.reason]
    if apart:
        reasons = _first(list(dict.fromkeys(kernel.reason for kernel in apart)), 3)
        yield (
            f"{counted(len(apart), 'kernel')} took more than {APART} x as long in one tool as in "
            f"the other (column reason): {reasons}. "
            "`--clock-control none --cache-control none` brings ncu nearer to nsys."
        )
    loose = [k for k in made.kernels if k.match is not None and k.match.way == LOOSE]
    if loose:
        is_matched = "is matched loosely" if len(loose) == 1 else "are matched loosely"
        yield (
            f"{counted(len(loose), 'kernel')} {is_matched} (same function, other geometry): such "
            "ceilings are guesses, and no part of the sum."
        )


def _alone(made: Headroom) -> Iterator[str]:
    """What matched nothing, on either side."""
    alone = [k for k in made.kernels if k.match is None]
    if alone:
        lost = 100 * sum(kernel.covered_ns for kernel in alone) / max(made.step_ns, 1)
        named = list(dict.fromkeys(_brief(k.variant.base or k.variant.name) for k in alone))
        yield (
            f"Not measured: {counted(len(alone), 'kernel')} of nsys with {lost:.1f} % of the "
            f"{made.unit} ({_first(named, 3)}); `nsightpy select` prints the commands for them."
        )
    if made.unmatched:
        launches = [kernel.first for kernel in made.unmatched]
        seen = [f"{_brief(k.base_name or k.name)} {k.grid} {k.block}" for k in launches]
        yield (
            f"Measured, but not seen by nsys: {counted(len(made.unmatched), 'kernel')} "
            f"({_first(list(dict.fromkeys(seen)), 3)})."
        )


def _brief(name: str) -> str:
    return brief(name, _NAME_WIDTH)


def _first(names: list[str], most: int) -> str:
    return "; ".join(names[:most]) + ("; ..." if len(names) > most else "")
