"""The API calls of an Nsight Systems export, the few columns at a time that a question needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Frame
from nsightpy.readers.host_calls import ALLOCATING, LAUNCHING, SYNCHRONISING
from nsightpy.readers.nsys.events import RUNTIME
from nsightpy.readers.nsys.launch_calls import LAST_LAUNCH_CLASS, launch_calls, only_process
from nsightpy.readers.nsys.sync_calls import (
    CLASSES,
    COLUMNS,
    calls_named,
    holding_calls,
    sync_calls,
)
from nsightpy.readers.nsys.tables import NsysExport

_READ = ("start_ns", "end_ns", "pid", "tid", "correlation_id", "name", "event_class")
_LAUNCH = ("start_ns", "pid", "correlation_id")


class NsysCalls:
    """HostCalls of an export: of a small one chosen from its frame, else by queries of their own.

    `frame` gives columns of the frame of API calls.
    """

    def __init__(self, export: NsysExport, frame: Callable[[Sequence[str]], Frame]) -> None:
        self._export = export
        self._frame = frame

    @property
    def recorded(self) -> bool:
        return self._export.holds_rows(RUNTIME)

    @property
    def _are_few(self) -> bool:
        return self._export.is_shared(RUNTIME)

    def only_process(self, *, likely: bool = False) -> int | None:
        return None if self._are_few else only_process(self._export, likely=likely)

    def launching(
        self,
        alone: int | None,
        kinds: Sequence[str] = LAUNCHING,
        *,
        others: bool = False,
        ends: bool = False,
        threads: bool = False,
    ) -> Frame:
        if not self._are_few:
            read = self._export
            return launch_calls(read, alone, kinds, others=others, ends=ends, threads=threads)
        calls = self._frame(_READ)
        prefixes = [f"{api}{kind}" for api in ("cuda", "cu") for kind in kinds]
        wanted = _begins(calls, prefixes) != others
        wanted &= calls.ints("event_class") <= LAST_LAUNCH_CLASS
        columns = (*_LAUNCH, *(["end_ns"] * ends), *(["tid"] * threads))
        return calls.select(columns).take(wanted)

    def synchronising(self) -> Frame:
        if not self._are_few:
            return sync_calls(self._export)
        calls = self._frame(_READ)
        return _waits(calls, _synchronise(calls))

    def named(self, *prefixes: str) -> Frame:
        if not self._are_few:
            return calls_named(self._export, prefixes)
        calls = self._frame(_READ)
        return _waits(calls, _begins(calls, prefixes))

    def holding(self, least_ns: int) -> tuple[Frame, Frame]:
        calls = self._frame(_READ) if self._are_few else holding_calls(self._export, least_ns)
        start, end = calls.ints("start_ns"), calls.ints("end_ns")
        lasting = ((end > start) & (end - start >= least_ns)) | _begins(calls, ALLOCATING)
        if self._are_few:
            return self.synchronising(), _waits(calls, lasting)
        return calls.take(_synchronise(calls)), calls.take(lasting)

    def any_named(self, *prefixes: str) -> bool:
        return bool(self._export.strings.matching(*prefixes))


def _begins(calls: Frame, prefixes: Sequence[str]) -> NDArray[np.bool_]:
    """Mask of the calls of functions whose names begin with one of these prefixes."""
    names = calls.labels("name")
    low = tuple(prefix.lower() for prefix in prefixes)
    return names.equals([name for name in names.values if name.lower().startswith(low)])


def _synchronise(calls: Frame) -> NDArray[np.bool_]:
    """Mask of the calls that wait for the GPU."""
    names = calls.labels("name")
    copies = names.equals([name for name in names.values if "Async" in name])
    return _begins(calls, SYNCHRONISING) & ~copies


def _waits(calls: Frame, wanted: NDArray[np.bool_]) -> Frame:
    """The columns of those calls in which the host may wait; a backtrace repeats no call."""
    wanted &= np.isin(calls.ints("event_class"), CLASSES)
    return calls.select(COLUMNS).take(wanted)
