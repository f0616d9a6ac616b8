"""Two parts of an analysis at a time: arrays are sorted and added up without Python's lock.

And what both of them may ask for first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

from nsightpy.errors import memory_left

A = TypeVar("A")
B = TypeVar("B")
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


def both(first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """What two functions give, the second on a thread of its own."""
    with OtherThread() as other:
        meanwhile = other.start(second)
        return first(), meanwhile()


class shared_property(cached_property[A]):  # noqa: N801 - named as what it stands for
    """A cached_property that is made once, whichever threads ask: from Python 3.12 on none is."""

    if not TYPE_CHECKING:  # its types are those of cached_property

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            with vars(instance).setdefault(f"making {self.attrname}", threading.RLock()):
                return super().__get__(instance, owner)


class OtherThread:
    """A thread that does what it is given, one after the other. Use as a context manager.

    The block ends when all is done; after an exception nothing more is begun. Who interrupts the
    program waits for nothing: the thread ends with the process at the latest. Where the system
    allows no thread more, each function is called when its result is asked for.
    """

    def __init__(self) -> None:
        self._last: threading.Thread | None = None
        self._ended = threading.Event()

    def __enter__(self) -> OtherThread:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._ended.set()
        if self._last is not None and (kind is None or issubclass(kind, Exception)):
            self._last.join()

    def start(self, function: Callable[[], A]) -> Callable[[], A]:
        """Begin a function once those before it are done; returns what waits for its result.

        That is asked for once, and not kept.
        """
        job = _Job(function)
        try:
            self._last = begun(self._do, job, self._last)
        except RuntimeError:  # no more threads, or no memory for one
            return function
        return job.result

    def _do(self, job: _Job[A], before: threading.Thread | None) -> None:
        if before is not None:
            before.join()
        if not self._ended.is_set():
            job.do()


class _Job(Generic[A]):
    """A function, and what it gave or raised; unlike a Future it lets go of that when asked."""

    def __init__(self, function: Callable[[], A]) -> None:
        self._function = function
        self._given: list[A] = []
        self._raised: list[BaseException] = []
        self._is_done = threading.Event()

    def do(self) -> None:
        try:
            self._given.append(self._function())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            self._raised.append(error)
        self._is_done.set()

    def result(self) -> A:
        self._is_done.wait()
        if self._raised:
            raise self._raised.pop()
        return self._given.pop()
