"""What can be said of a report file before any tool or library opens it."""

from __future__ import annotations

import stat
from pathlib import Path

from nsightpy.errors import ReportError

MAGIC = b"SQLite format 3\x00"


def check_file(path: Path) -> None:
    """Raise ReportError unless the path is a whole, readable SQLite file."""
    try:
        if path.is_dir():
            raise ReportError(path, "is a directory, not a report file")
        size = size_of_regular(path)
        with path.open("rb") as file:
            header = file.read(100)
    except FileNotFoundError:
        raise ReportError(path, "no such file", "check the path.") from None
    except OSError as error:
        raise ReportError(
            path, f"cannot be read: {error.strerror}", "check its permissions."
        ) from error
    if size == 0:
        raise ReportError(path, "is empty", "the export may have failed: export it again.")
    if not header.startswith(MAGIC):
        raise ReportError(
            path,
            "is not an SQLite file",
            "give a .nsys-rep, or what `nsys export --type sqlite REPORT` writes.",
        )
    if len(header) < 100 or size < _declared_size(header):
        raise ReportError(
            path,
            f"is truncated: {size:,} of {_declared_size(header):,} bytes are there"
            if len(header) == 100
            else "is truncated",
            "copy or export it again; the disk may have been full.",
        )


def size_of_regular(path: Path) -> int:
    """The size of a regular file in bytes: reading anything else could wait for ever.

    Raises ReportError for pipes, sockets and devices, OSError when nothing is there.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        advice = "write what it yields into a file, and give that file."
        raise ReportError(path, "is a pipe or a device, not a file", advice)
    return found.st_size


def file_size(path: Path) -> int:
    """The size of a file in bytes; 0 where it cannot be known."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _declared_size(header: bytes) -> int:
    if len(header) < 100 or header[24:28] != header[92:96]:
        return 0
    page = int.from_bytes(header[16:18], "big")
    return (65_536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
