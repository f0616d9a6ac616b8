"""A report asked twice, something happening to its columns in between: the answer stays."""

import os
import random
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from fuzzer.child import run
from fuzzer.judge import complaints, state_of
from fuzzer.surroundings import Around, Place, nothing, send, small_files

NOTE = "its columns were not kept"


def whole_files(store: Path) -> list[Path]:
    """The files of a store that hold anything."""
    return sorted(path for path in store.glob("*") if path.is_file() and path.stat().st_size)


def _flipped(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def _zeros(data: bytes, chance: random.Random) -> bytes:
    """A block that never reached the disk."""
    start = chance.randrange(len(data))
    return data[:start] + bytes(len(data[start : start + 512])) + data[start + 512 :]


def _folder(file: Path, _other: Path) -> None:
    file.mkdir()
    (file / "file").touch()


# Of the file's bytes, and of what comes in its place.
CHANGED: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "flipped": _flipped,
    "truncated": lambda data, chance: data[: chance.randrange(len(data))],
    "empty": lambda _data, _chance: b"",
    "zeros": _zeros,
}
REPLACED: dict[str, Callable[[Path, Path], object]] = {
    "removed": lambda _file, _other: None,
    "folder": _folder,
    "link": lambda file, other: file.symlink_to(other),
    "endless": lambda file, _other: file.symlink_to("/dev/zero"),
    "pipe": lambda file, _other: os.mkfifo(file),
}
DAMAGES = (*CHANGED, *REPLACED, "of another report", "unreadable")


def damage(file: Path, what: str, chance: random.Random, foreign: Path) -> None:
    """Damage one file of a store; `foreign` is the store of another report, which is whole."""
    if what == "unreadable":
        file.chmod(0)
        return
    others, data = whole_files(foreign), b""
    if what == "of another report":
        same = [path for path in others if path.name == file.name] or others
        data = chance.choice([*same, *whole_files(file.parent)]).read_bytes()
    elif what in CHANGED:
        data = CHANGED[what](file.read_bytes(), chance)
    # as another program would: processes that map the file keep what they have
    file.unlink()
    if what in REPLACED:
        REPLACED[what](file, others[0])
    else:
        file.write_bytes(data)


def ask_twice(words: list[str], place: Place, output: str, rng: random.Random) -> Iterator[str]:
    """What is wrong with the second answer to a question, each beginning with its kind."""
    expected = run(words, place, Around(inside=_keeps(2**62)))
    bytes_expected, first = _taken(place, output), _first(rng)
    run(words, place, first)
    _taken(place, output)
    store = place.cache / "cache" / "exports"
    damages = [_damaged(store, rng) for _ in range(rng.choice((0, 1, 2, 10)))]
    how = ", ".join(filter(None, (first.name, *damages))) or "nothing"
    before = state_of(place.folder)  # a killed process leaves half of its output
    ran = run(words, place, Around(inside=_keeps(0)))
    yield from complaints(ran, words, place, before, output)
    if (ran.code, ran.out, _taken(place, output)) != (expected.code, expected.out, bytes_expected):
        yield f"store: another answer after {how}"
    elif _without_note(ran.err) != _without_note(expected.err):
        yield f"store: other notes after {how}"


def _first(rng: random.Random) -> Around:
    chance = rng.random()
    if chance < 0.3:
        after = rng.choice((0.01, 0.03, 0.1, 0.2, 0.4))
        kill = partial(send, signal.SIGKILL)
        return Around("a kill", inside=_keeps(0), during=kill, after_s=after)
    if chance < 0.5:
        return Around("a full disk", inside=_keeps(0, small_files))
    return Around(inside=_keeps(0))


def _keeps(least: int, also: Callable[[Place], object] = nothing) -> Callable[[Place], None]:
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
    file, what = rng.choice(files), rng.choice(DAMAGES)
    others = sorted({path.parent for path in files} - {file.parent})
    damage(file, what, rng, rng.choice(others or [file.parent]))
    return f"{file.name} {what}"


def _taken(place: Place, output: str) -> bytes:
    """The bytes of a file that was made, which is removed."""
    path = place.folder / output
    if not output or not path.exists():
        return b""
    data = path.read_bytes()
    path.unlink()
    return data


def _without_note(err: str) -> list[str]:
    return [line for line in err.splitlines() if NOTE not in line]
