"""Functions on another thread: their results, what they raise, and what an exception ends."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest

from nsightpy import side_by_side
from nsightpy.readers.tools.time_limit import in_threads
from nsightpy.side_by_side import OtherThread, both, shared_property


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that starts no more threads."""

    def refused(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)


def test_both_give_their_results_from_two_threads() -> None:
    assert both(threading.get_ident, lambda: 7) == (threading.get_ident(), 7)
    first, second = both(threading.get_ident, threading.get_ident)
    assert first != second


def test_what_is_started_is_done_in_turn_on_threads_that_are_gone_afterwards() -> None:
    before, order = threading.active_count(), list[int]()
    with OtherThread() as other:
        waits = [other.start(partial(order.append, number)) for number in range(20)]
        waits[7]()
        assert order[:8] == list(range(8))
    assert order == list(range(20))
    assert threading.active_count() == before  # so that the process may be forked


def test_the_first_of_two_errors_is_raised() -> None:
    def fail(text: str) -> None:
        raise ValueError(text)

    with pytest.raises(ValueError, match="second"):
        both(lambda: 1, partial(fail, "second"))
    with pytest.raises(ValueError, match="first"):
        both(partial(fail, "first"), partial(fail, "second"))


def test_after_an_error_nothing_more_is_begun() -> None:
    goes_on, done = threading.Event(), list[str]()

    def slow() -> None:
        goes_on.wait(10)
        done.append("slow")

    def fail(other: OtherThread) -> None:
        other.start(slow)
        other.start(partial(done.append, "next"))
        threading.Timer(0.05, goes_on.set).start()
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"), OtherThread() as other:
        fail(other)
    assert done == ["slow"]


def test_an_interruption_waits_for_nobody() -> None:
    goes_on = threading.Event()

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        both(interrupt, lambda: goes_on.wait(10))
    assert not goes_on.is_set()
    goes_on.set()


@pytest.mark.usefixtures("no_threads")
def test_without_threads_both_are_called_in_turn() -> None:
    me = threading.get_ident()
    assert both(threading.get_ident, threading.get_ident) == (me, me)


@pytest.mark.usefixtures("no_threads")
def test_without_threads_a_table_is_read_in_turn() -> None:
    done: list[int] = []
    in_threads(done.append, range(3), 1.0)
    assert done == [0, 1, 2]


def test_where_memory_is_little_no_thread_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thread.start waits without end for one that has no memory to begin."""
    monkeypatch.setattr(side_by_side, "memory_left", lambda: 2**20)
    me = threading.get_ident()
    assert both(threading.get_ident, threading.get_ident) == (me, me)
    done: list[int] = []
    in_threads(done.append, range(3), 1.0)
    assert done == [0, 1, 2]


def test_a_thread_that_dies_without_a_word_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threading.Thread, "run", lambda _thread: None)
    with pytest.raises(MemoryError, match="without a word"):
        in_threads(print, range(2), 10.0)


def test_a_shared_property_is_made_once() -> None:
    made: list[int] = []

    class Report:
        @shared_property
        def export(self) -> int:
            made.append(threading.get_ident())
            time.sleep(0.05)
            return len(made)

    report = Report()
    assert both(lambda: report.export, lambda: report.export) == (1, 1)
    assert Report().export == 2
