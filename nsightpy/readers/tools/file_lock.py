"""A lock file between processes; the system frees it when its holder dies."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_POLL_S = 0.1


@dataclass(frozen=True)
class FileLock:
    """A held lock; not `sure` where the file system has no locks, so others may run as well."""

    path: Path
    descriptor: int
    sure: bool

    def release(self) -> None:
        """Free the lock and remove its file."""
        if sys.platform != "win32":
            with suppress(OSError):
                self.path.unlink()
        with suppress(OSError):
            _unlock(self.descriptor)
        os.close(self.descriptor)
        if sys.platform == "win32":
            with suppress(OSError):
                self.path.unlink()


def acquire(path: Path, waiting: Callable[[], None]) -> FileLock:
    """Wait until the lock is ours; `waiting` is called once if that is not at once.

    Raises OSError when the lock file cannot be made.
    """
    announced = False
    while True:
        lock = _attempt(path, os.O_RDWR | os.O_CREAT)
        if lock is not None:
            return lock
        if not announced:
            waiting()
            announced = True
        time.sleep(_POLL_S)


def is_locked(path: Path) -> bool:
    """Whether someone may hold the lock. Removes the lock file that nobody holds any more."""
    try:
        lock = _attempt(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    if lock is None:
        return True
    if lock.sure:
        lock.release()
    else:
        os.close(lock.descriptor)
    return not lock.sure


def _attempt(path: Path, flags: int) -> FileLock | None:
    """The lock, or None while another holds it."""
    descriptor = os.open(path, flags, 0o600)
    kept = False
    try:
        held = _try_lock(descriptor)
        # The holder before us may have removed the file that we opened: then there is a newer one.
        if held is not False and (held is None or _is_current(path, descriptor)):
            kept = True
            return FileLock(path, descriptor, held is True)
        return None
    finally:
        if not kept:
            os.close(descriptor)


def _is_current(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool | None:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        except OSError:
            return None
        return True

    def _unlock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool | None:
        """Whether we hold it now; None where the file system (NFS, Lustre) has no locks."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return None
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
