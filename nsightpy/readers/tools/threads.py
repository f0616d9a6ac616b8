"""Threads that begin, or say at once that there is no room for one."""

from __future__ import annotations

import threading
from collections.abc import Callable

from nsightpy.errors import memory_left

# A thread takes less to begin, its stack with it.
_MEMORY_TO_BEGIN = 32 * 2**20


def begun(target: Callable[..., object], *arguments: object) -> threading.Thread:
    """A daemon thread that runs. Raises RuntimeError where the system has no room for one.

    Thread.start waits without end for a thread that has no memory to begin.
    """
    left = memory_left()
    if left is not None and left < _MEMORY_TO_BEGIN:
        raise RuntimeError("no memory for a thread")
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread
