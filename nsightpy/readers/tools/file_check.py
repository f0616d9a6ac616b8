"""What can be said of a report file before any tool or library opens it."""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nsightpy.errors import ReportError

KINDS = (
    "nsightpy reads .nsys-rep and what `nsys export --type sqlite REPORT` writes, traces of "
    "PyTorch's profiler (.json, .json.gz), its memory snapshots (.pickle), .ncu-rep, and what "
    "`ncu --csv` prints"
)
# The header of a database file: https://www.sqlite.org/fileformat2.html#the_database_header
MAGIC = b"SQLite format 3\x00"
_UTF16 = (2, 3)
SQLITE_SUFFIXES = (".sqlite", ".sqlite3", ".db")
NSYS_SUFFIXES = (".nsys-rep", ".qdrep")
UTF8_MARK = b"\xef\xbb\xbf"


def has_suffix(path: Path, suffixes: tuple[str, ...]) -> bool:
    """Whether a file's name ends with one of these, in any case: RUN.SQLITE is a .sqlite."""
    return path.name.lower().endswith(suffixes)


def check_file(path: Path) -> None:
    """Raise ReportError unless the path is a whole, readable SQLite file."""
    with file_errors(path):
        size = size_of_regular(path)
        with path.open("rb") as file:
            header = file.read(100)
    if size == 0:
        raise ReportError(path, "is empty", "the export may have failed: export it again.")
    if not header.startswith(MAGIC):
        raise ReportError(path, "is no report of a kind that nsightpy reads", f"{KINDS}.")
    declared = 0
    if len(header) == 100 and header[24:28] == header[92:96]:
        page = int.from_bytes(header[16:18], "big")
        declared = (65_536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
    if len(header) < 100 or size < declared:
        advice = "copy or export it again; the disk may have been full."
        raise ReportError(path, "is truncated", advice)
    if int.from_bytes(header[56:60], "big") in _UTF16:
        raise ReportError(path, "holds texts in UTF-16: nsys writes UTF-8", "export it again.")


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Whatever the system says of a file while it is opened or read becomes a ReportError."""
    try:
        yield
    except FileNotFoundError:
        raise ReportError(path, "no such file", "check the path.") from None
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        denied = isinstance(error, PermissionError)
        advice = "check its permissions." if denied else "check the path."
        raise ReportError(path, problem, advice) from error
    except RuntimeError as error:  # what Python before 3.13 says of links that form a loop
        if "loop" not in str(error):
            raise
        problem = "cannot be read: its links form a loop"
        raise ReportError(path, problem, "check the path.") from error


def is_regular(path: Path) -> bool:
    """Whether a path is a file that can be looked at; False where the system does not tell."""
    try:
        return path.is_file()
    except OSError:
        return False


def beginning(path: Path, size: int) -> bytes:
    """The first bytes of a regular file (reading anything else could wait for ever); empty where
    it cannot be read."""
    try:
        if path.is_file():
            with path.open("rb") as file:
                return file.read(size)
    except OSError:
        pass
    return b""


def resolved(path: Path) -> Path:
    """The path without links; as it is where these form a loop."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path.absolute()


def size_of_regular(path: Path) -> int:
    """The size of a regular file in bytes: reading anything else could wait for ever.

    Raises ReportError for all that is none, OSError when nothing is there.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        advice = "write what it yields into a file, and give that file."
        raise ReportError(path, "is a pipe, a device or a directory, not a file", advice)
    return status.st_size


def file_size(path: Path) -> int:
    """The size of a file in bytes; 0 where it cannot be known."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
