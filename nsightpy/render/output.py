"""The one owner of output files: refuses to overwrite, and leaves nothing half-written."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from nsightpy.errors import OutputError

STDOUT = "-"


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
