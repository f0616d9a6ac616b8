"""The API calls of a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Frame
from nsightpy.readers.host_calls import ALLOCATING, LAUNCHING, SYNCHRONISING

_LAUNCH = ("start_ns", "pid", "correlation_id")
_CALL = ("start_ns", "end_ns", "pid", "tid", "name")


class TraceCalls:
    """HostCalls of a trace's api_calls frame. All calls count as launching: they are at hand."""

    def __init__(self, calls: Frame) -> None:
        self._calls = calls

    @property
    def recorded(self) -> bool:
        return self._calls.rows > 0

    def only_process(self, *, likely: bool = False) -> int | None:
        return None

    def launching(
        self,
        alone: int | None,
        kinds: Sequence[str] = LAUNCHING,
        *,
        others: bool = False,
        ends: bool = False,
        threads: bool = False,
    ) -> Frame:
        names = [*_LAUNCH, *(["end_ns"] * ends), *(["tid"] * threads)]
        calls = Frame({name: self._calls[name] for name in names})
        return calls.take(np.zeros(calls.rows, dtype=np.bool_)) if others else calls

    def synchronising(self) -> Frame:
        return self._some(
            self._named(lambda name: name.startswith(SYNCHRONISING) and "Async" not in name)
        )

    def named(self, *prefixes: str) -> Frame:
        return self._some(self._named(lambda name: name.startswith(prefixes)))

    def holding(self, least_ns: int) -> tuple[Frame, Frame]:
        length = self._calls.ints("end_ns") - self._calls.ints("start_ns")
        allocating = self._named(lambda name: name.startswith(ALLOCATING))
        return self.synchronising(), self._some(allocating | (length >= least_ns))

    def any_named(self, *prefixes: str) -> bool:
        return bool(self._named(lambda name: name.startswith(prefixes)).any())

    def _named(self, fits: Callable[[str], bool]) -> NDArray[np.bool_]:
        names = self._calls.labels("name")
        hits = np.asarray([fits(name) for name in names.values], dtype=np.bool_)
        return hits[names.codes] if len(hits) else np.zeros(len(names), dtype=np.bool_)

    def _some(self, rows: NDArray[np.bool_]) -> Frame:
        return Frame({name: self._calls[name] for name in _CALL}).take(rows)
