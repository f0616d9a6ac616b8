"""What can become of the files of a store between two commands."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

# What is done to a file; the files of another report, which are whole, may take its place.
Damage = Callable[[Path, random.Random, list[Path]], None]


def _flipped(file: Path, chance: random.Random, _: list[Path]) -> None:
    data = bytearray(file.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    _replaced(file, bytes(data))


def _truncated(file: Path, chance: random.Random, _: list[Path]) -> None:
    data = file.read_bytes()
    _replaced(file, data[: chance.randrange(len(data))])


def _zeros(file: Path, chance: random.Random, _: list[Path]) -> None:
    """Blocks that never reached the disk."""
    data = bytearray(file.read_bytes())
    start = chance.randrange(len(data))
    data[start : start + 512] = bytes(len(data[start : start + 512]))
    _replaced(file, bytes(data))


def _sibling(file: Path, chance: random.Random, _: list[Path]) -> None:
    _replaced(file, chance.choice(whole_files(file.parent)).read_bytes())


def _foreign(file: Path, chance: random.Random, others: list[Path]) -> None:
    same = [path for path in others if path.name == file.name]
    _replaced(file, chance.choice(same or others).read_bytes())


def _folder(file: Path, _chance: random.Random, _others: list[Path]) -> None:
    file.unlink()
    file.mkdir()
    (file / "file").touch()


def _link(file: Path, _chance: random.Random, others: list[Path]) -> None:
    file.unlink()
    file.symlink_to(others[0])


def _endless(file: Path, _chance: random.Random, _others: list[Path]) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


def _pipe(file: Path, _chance: random.Random, _others: list[Path]) -> None:
    file.unlink()
    os.mkfifo(file)


def _unreadable(file: Path, _chance: random.Random, _others: list[Path]) -> None:
    file.chmod(0)


def _replaced(file: Path, data: bytes) -> None:
    """As another program would: processes that map the file keep what they have."""
    file.unlink()
    file.write_bytes(data)


DAMAGES: dict[str, Damage] = {
    "flipped": _flipped,
    "truncated": _truncated,
    "empty": lambda file, _chance, _others: _replaced(file, b""),
    "zeros": _zeros,
    "removed": lambda file, _chance, _others: file.unlink(),
    "its sibling": _sibling,
    "of another report": _foreign,
    "folder": _folder,
    "link": _link,
    **({"endless": _endless, "pipe": _pipe} if os.name == "posix" else {}),
    "unreadable": _unreadable,
}


def damage(file: Path, what: str, chance: random.Random, foreign: Path) -> None:
    """Damage one file of a store; `foreign` is the store of another report."""
    DAMAGES[what](file, chance, whole_files(foreign))


def whole_files(store: Path) -> list[Path]:
    """The files of a store that hold anything."""
    return sorted(path for path in store.glob("*") if path.is_file() and path.stat().st_size)
