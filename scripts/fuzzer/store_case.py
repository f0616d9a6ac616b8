"""A report asked twice, something happening to its columns in between: the answer stays."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from fuzzer.child import Ran, run
from fuzzer.judge import complaints, state_of
from fuzzer.store_damage import DAMAGES, damage, whole_files
from fuzzer.surroundings import Around, Place, sent, small_files

NOTE = "its columns were not kept"


def complaints_about(
    words: list[str], place: Place, output: str, rng: random.Random
) -> Iterator[str]:
    """What is wrong with the second answer to a question, each beginning with its kind."""
    expected, bytes_expected = _answer(words, place, output, Around(inside=_keeps(2**62)))
    first = _first(rng)
    _answer(words, place, output, first)
    store = place.cache / "cache" / "exports"
    done = [_damaged(store, rng) for _ in range(rng.choice((0, 1, 2, 10)))]
    how = ", ".join(filter(None, (first.name, *done))) or "nothing"
    before = state_of(place.folder)  # a killed process leaves half of its output
    ran = run(words, place, Around(inside=_keeps(0)))
    yield from complaints(ran, words, place, before, output)
    if (ran.code, ran.out, _taken(place, output)) != (expected.code, expected.out, bytes_expected):
        yield f"store: another answer after {how}"
    elif _without_note(ran.err) != _without_note(expected.err):
        yield f"store: other notes after {how}"


def _first(rng: random.Random) -> Around:
    """Surroundings of the first question: whole, ended at some moment, or with a full disk."""
    chance = rng.random()
    if chance < 0.3:
        after = rng.choice((0.01, 0.03, 0.1, 0.2, 0.4))
        during = sent(signal.SIGKILL)
        return Around("a kill", inside=_keeps(0), during=during, after_s=after)
    if chance < 0.5:
        return Around("a full disk", inside=_keeps(0, small_files))
    return Around(inside=_keeps(0))


def _keeps(
    least: int, also: Callable[[Place], None] = lambda place: None
) -> Callable[[Place], None]:
    """Columns of reports of so many bytes at least are kept."""

    def inside(place: Place) -> None:
        from nsightpy.reports import system

        system.LEAST_BYTES = least
        also(place)

    return inside


def _damaged(store: Path, rng: random.Random) -> str:
    """Damage a file of a store, if there is any; says how."""
    files = [path for folder in sorted(store.glob("*.columns")) for path in whole_files(folder)]
    if not files:
        return ""
    file, what = rng.choice(files), rng.choice(sorted(DAMAGES))
    others = sorted({path.parent for path in files} - {file.parent})
    damage(file, what, rng, rng.choice(others or [file.parent]))
    return f"{file.name} {what}"


def _answer(words: list[str], place: Place, output: str, around: Around) -> tuple[Ran, bytes]:
    ran = run(words, place, around)
    return ran, _taken(place, output)


def _taken(place: Place, output: str) -> bytes:
    """The bytes of a file that was made, which is removed."""
    path = place.folder / output
    if not output or not path.exists():
        return b""
    made = path.read_bytes()
    path.unlink()
    return made


def _without_note(err: str) -> list[str]:
    return [line for line in err.splitlines() if NOTE not in line]
