"""Damage to files of a store, as disks and other programs do it."""

import os
import random
from collections.abc import Callable
from pathlib import Path


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
