"""A lock file between processes; the system frees it when its holder dies."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import BaseFileLock

_POLL_S = 0.1
# What file systems without locks answer (some NFS, Lustre, FUSE); EINVAL on Windows.
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}


@dataclass(frozen=True)
class FileLock:
    """A held lock; not `sure` where the file system has no locks, so others may run as well."""

    path: Path
    lock: BaseFileLock
    sure: bool

    def release(self) -> None:
        """Free the lock and remove its file."""
        if sys.platform != "win32":  # there it goes when it is freed
            self.path.unlink(missing_ok=True)
        self.lock.release()


def acquire(path: Path, waiting: Callable[[], None]) -> FileLock:
    """Wait until the lock is ours; `waiting` is called once if that is not at once.

    Raises OSError when the lock file cannot be made.
    """
    try:
        return _attempt(path, blocking=False)
    except TimeoutError:
        waiting()
    return _attempt(path, blocking=True)


def is_locked(path: Path) -> bool:
    """Whether someone may hold the lock. Removes the lock file that nobody holds any more."""
    try:
        if not path.exists():
            return False
        lock = _attempt(path, blocking=False)
    except OSError:
        return True
    if lock.sure:
        lock.release()
    return not lock.sure


def _attempt(path: Path, *, blocking: bool) -> FileLock:
    """The lock; raises TimeoutError while another holds it and we do not wait."""
    from filelock import FileLock as SystemLock

    lock = SystemLock(
        path, mode=0o600, blocking=blocking, poll_interval=_POLL_S, fallback_to_soft=False
    )
    try:
        lock.acquire()
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return FileLock(path, lock, sure=False)
    return FileLock(path, lock, sure=True)
