"""The one owner of output files and folders: nothing is overwritten, or left half-written."""

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from nsightpy.errors import OutputError

STDOUT = "-"
# Names the files of the folder; what it names is what --force replaces.
CONTENTS = "schema.json"


@contextlib.contextmanager
def output_file(path: Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """A binary file that appears under its name only when it is complete.

    Devices and pipes are written to as they are. Raises OutputError when the file exists and
    `force` is not given, or cannot be written.
    """
    if path.is_dir():
        raise OutputError(path, "is a directory", "give a file name.")
    if path.exists() and not path.is_file():
        with _written(path), path.open("wb") as file:
            yield file
        return
    if path.exists() and not force:
        raise OutputError(path, "exists already", "--force overwrites it.")
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with _written(path):
            with partial.open("xb") as file:
                yield file
            if force:
                partial.replace(path)
            else:
                _publish(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def _written(path: Path) -> Iterator[None]:
    """Failures of the system become one message."""
    try:
        yield
    except OSError as error:
        raise OutputError(path, f"cannot be written: {error.strerror or error}") from error


def _publish(partial: Path, path: Path) -> None:
    """Give the finished file its name, never over a file that has appeared since."""
    try:
        os.link(partial, path)
    except FileExistsError:
        raise OutputError(path, "exists already", "--force overwrites it.") from None
    except OSError:
        # no hard links on this file system
        partial.replace(path)


@contextlib.contextmanager
def output_folder(path: Path, *, force: bool = False) -> Iterator[Path]:
    """A new folder to write into, whose files are in `path` afterwards; nothing is if that fails.

    Raises OutputError when `path` is no folder, cannot be written, or holds anything and `force`
    is not given. With it the files that an earlier output says are its own go, others stay.
    """
    if path.exists() and not path.is_dir():
        raise OutputError(path, "is no directory", "give a new one.")
    if path.is_dir() and any(path.iterdir()) and not force:
        raise OutputError(path, "is not empty", "--force replaces an earlier export in it.")
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with _written(path):
            partial.mkdir(parents=True)
            yield partial
            _publish_folder(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _publish_folder(partial: Path, path: Path) -> None:
    if not path.exists():
        partial.replace(path)
        return
    _clear(path)
    for file in sorted(file for file in partial.rglob("*") if file.is_file()):
        target = path / file.relative_to(partial)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)


def _clear(path: Path) -> None:
    """Remove the files that an earlier output says are its own, and folders left empty."""
    try:
        listed = json.loads((path / CONTENTS).read_text(encoding="utf-8"))["files"]
        names = [str(name) for name in listed]
    except (OSError, ValueError, KeyError, TypeError):
        return
    for name in names:
        file = path / name
        if file.parent.parent == path and ".." not in file.parts and file.is_file():
            file.unlink()
            if not any(file.parent.iterdir()):
                file.parent.rmdir()
