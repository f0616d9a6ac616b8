"""The cache of what was made of reports: where it lies, whose it is, how much stays.

Exports that nsys made are files there, what was imported of reports and traces folders of columns.
"""

import errno
import functools
import hashlib
import multiprocessing.util
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from nsightpy.errors import ReportError, UsageError
from nsightpy.units import format_bytes, parse_size

DEFAULT_LIMIT_BYTES = 20 * 2**30
GRACE_S = 600.0
_EDGE_BYTES = 64 * 1024
# What file systems without locks answer (some NFS, Lustre, FUSE).
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP}
SQLITE, COLUMNS = ".sqlite", ".columns"
_ENTRY = re.compile(r".+-[0-9a-f]{24}\.(?:sqlite|columns)")
# The cache is trimmed once for this part of its limit that is written, on average.
_TRIMMED_PARTS = 64
_handed_out: set[Path] = set()


@dataclass(frozen=True)
class CacheUsage:
    """What the cache holds, or what was `removed` from it; sizes in bytes."""

    folder: Path
    files: int
    bytes: int
    limit_bytes: int
    removed: bool = False

    def __str__(self) -> str:
        size = format_bytes(self.bytes)
        if self.removed:
            return f"removed {self.files} entries, {size}"
        limit = format_bytes(self.limit_bytes)
        return f"{self.folder}: {self.files} entries, {size} of {limit}"


def cache_folder() -> Path:
    """Where exports are kept: NSIGHTPY_CACHE_DIR or the user's cache directory."""
    chosen = os.environ.get("NSIGHTPY_CACHE_DIR", "")
    if chosen:
        # a ~name that is nobody's stays as it is
        return Path(os.path.expanduser(chosen)).absolute() / "exports"  # noqa: PTH111
    import platformdirs

    return platformdirs.user_cache_path("nsightpy") / "exports"


# Of the process, not of a report: two reports of one file share what was made of it.
@functools.cache
def session_folder() -> Path:
    """A folder for what this process alone uses, removed when it ends. Raises ReportError."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="nsightpy-"))
    except OSError as error:
        raise unwritable(Path(tempfile.gettempdir()), error) from error
    # Also runs in workers, which atexit does not; never in a child for its parent's folder.
    multiprocessing.util.Finalize(
        None, shutil.rmtree, args=(folder,), kwargs={"ignore_errors": True}, exitpriority=0
    )
    return folder


def cache_limit() -> int:
    """Bytes that the cache may hold: NSIGHTPY_CACHE_SIZE (`50G`, powers of 1024) or 20 GiB.

    Raises UsageError when the variable is no size.
    """
    text = os.environ.get("NSIGHTPY_CACHE_SIZE", "")
    if not text:
        return DEFAULT_LIMIT_BYTES
    if (size := parse_size(text)) is None:
        raise UsageError(f"NSIGHTPY_CACHE_SIZE is {text!r}: give a size such as 50G or 800M")
    return size


def entry_name(report: Path, options: str, *, kind: str = SQLITE, stem: str | None = None) -> str:
    """The file name of what is made of a report: changes with its identity and the options.

    It begins with the report's own name, or with `stem`. Raises OSError when the report cannot be
    read.
    """
    state = report.stat()
    key = hashlib.sha256(os.fsencode(report.resolve()))
    key.update(f"|{state.st_size}|{state.st_mtime_ns}|{state.st_ino}|{options}|".encode())
    with report.open("rb") as file:
        key.update(file.read(_EDGE_BYTES))
        file.seek(max(0, state.st_size - _EDGE_BYTES))
        key.update(file.read(_EDGE_BYTES))
    name = report.stem[:24] if stem is None else stem
    return f"{name}-{key.hexdigest()[:24]}{kind}"


def mark_used(entry: Path) -> Path:
    """Note that an export is in use now; the time of change of a file stays. Returns it."""
    _handed_out.add(entry)
    now = time.time_ns()
    with suppress(OSError):
        os.utime(entry, ns=(now, now if entry.is_dir() else entry.stat().st_mtime_ns))
    return entry


@contextmanager
def alone(entry: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Alone among all processes with an entry, its folder being there and its owner's alone.

    What killed processes left of the entry is gone. Raises ReportError when it cannot be made, or
    the file system has no locks.
    """
    folder = entry.parent
    with ExitStack() as held:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folder.stat().st_mode & 0o077:
                with suppress(PermissionError):
                    folder.chmod(0o700)
            held.enter_context(locked(lock_of(entry), waiting))
        except OSError as error:
            raise unwritable(folder, error) from error
        _remove_parts(folder, lambda made: made == entry)
        yield


def _remove_parts(folder: Path, is_left: Callable[[Path], bool]) -> None:
    """Remove the private folders of entries that nobody makes any more."""
    for part in folder.glob("*.part"):
        entry = folder / part.name.rsplit(".", 2)[0]
        if _ENTRY.fullmatch(entry.name) and is_left(entry):
            shutil.rmtree(part, ignore_errors=True)


@contextmanager
def locked(path: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Alone with a lock file, which the system frees when its holder dies; it is gone afterwards.

    `waiting` is called once where another holds it, else that raises TimeoutError. Raises OSError
    where it cannot be made.
    """
    from filelock import FileLock

    lock = FileLock(path, mode=0o600, poll_interval=0.1, fallback_to_soft=False)
    try:
        lock.acquire(blocking=False)
    except TimeoutError:
        if waiting is None:
            raise
        waiting()
        lock.acquire()
    except OSError as error:
        if error.errno in _NO_LOCKS:  # so nobody holds it
            path.unlink(missing_ok=True)
        raise
    try:
        yield
    finally:
        if sys.platform != "win32":  # there it goes when it is freed
            path.unlink(missing_ok=True)
        lock.release()


def is_locked(path: Path) -> bool:
    """Whether someone may hold the lock. Removes the lock file that nobody holds any more."""
    try:
        with locked(path) if path.exists() else nullcontext():
            return False
    except OSError:
        return True


def lock_of(entry: Path) -> Path:
    """The lock file of an entry."""
    return entry.with_name(f"{entry.name}.lock")


@contextmanager
def made_folder(entry: Path) -> Iterator[Path]:
    """An empty private folder beside an entry, gone afterwards. Raises ReportError."""
    try:
        part = Path(tempfile.mkdtemp(prefix=f"{entry.name}.", suffix=".part", dir=entry.parent))
    except OSError as error:
        raise unwritable(entry.parent, error) from error
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


def publish(export: Path, entry: Path) -> None:
    """Put a finished export in its place at once. Raises ReportError when that is impossible.

    What lies there is removed with what SQLite would take for the journal of the export.
    """
    try:
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        for suffix in ("-journal", "-wal", "-shm"):
            entry.with_name(entry.name + suffix).unlink(missing_ok=True)
        with suppress(PermissionError):
            export.chmod(0o600)
        export.replace(entry)
    except OSError as error:
        raise unwritable(entry.parent, error) from error


def delete(path: Path) -> None:
    """Remove what lies there, a folder with all that it holds. Raises OSError."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def unwritable(folder: Path, error: OSError) -> ReportError:
    """The error for a folder of exports that cannot be written."""
    return ReportError(
        folder,
        f"exports cannot be written there: {error.strerror or error}",
        "Free some space there, or set NSIGHTPY_CACHE_DIR (TMPDIR when the cache is off) to "
        "another folder.",
    )


def cache_usage() -> CacheUsage:
    """How many exports the cache holds and how large they are. Raises UsageError."""
    return _usage([size for _, size, _ in _entries(cache_folder())])


def _usage(sizes: Sequence[int], *, removed: bool = False) -> CacheUsage:
    return CacheUsage(cache_folder(), len(sizes), sum(sizes), cache_limit(), removed)


def clear_cache() -> CacheUsage:
    """Remove every export that is not being made now; returns what was removed."""
    folder = cache_folder()
    removed = [size for _, size, path in _entries(folder) if _remove(path)]
    _remove_parts(folder, lambda entry: not is_locked(lock_of(entry)))
    for kind in (SQLITE, COLUMNS):
        for lock in folder.glob(f"*{kind}.lock"):
            is_locked(lock)
    return _usage(removed, removed=True)


def trim_cache(keep: Path, written: int | None = None) -> None:
    """Remove the entries unused for longest until the cache is within its limit.

    `keep`, what this process uses, and what was used in the last minutes stay. Where so many bytes
    were `written`, chance decides whether to look: there may be 100,000 files, and 1,000 processes
    that each write little. Raises UsageError.
    """
    limit = cache_limit()
    if written is not None and random.random() * limit > written * _TRIMMED_PARTS:
        return
    entries = _entries(keep.parent)
    total = sum(size for _, size, _ in entries)
    for used, size, path in entries:
        if total <= limit:
            break
        in_use = path == keep or path in _handed_out or time.time() - used < GRACE_S
        if not in_use and _remove(path):
            total -= size


def _entries(folder: Path) -> list[tuple[float, int, Path]]:
    """(last use in seconds, bytes, path) of every export, the one unused for longest first."""
    entries = []
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in folder.iterdir():
            if _ENTRY.fullmatch(path.name):
                with suppress(OSError):
                    state = path.stat()
                    used, held = max(state.st_atime, state.st_mtime), [path]
                    if path.is_dir():  # which is accessed by who only looks how large it is
                        used, held = state.st_mtime, list(path.iterdir())
                    size = sum(file.lstat().st_size for file in held)
                    entries.append((used, size, path))
    return sorted(entries)


def _remove(entry: Path) -> bool:
    with suppress(OSError):
        if not is_locked(lock_of(entry)):
            delete(entry)
            return True
    return False
