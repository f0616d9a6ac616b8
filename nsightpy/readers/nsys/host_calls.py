"""The API calls of an Nsight Systems export, the few columns at a time that a question needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nsightpy.frames import Frame
from nsightpy.readers.host_calls import LAUNCHING, CallsOfFrame, holding_of
from nsightpy.readers.nsys.events import RUNTIME
from nsightpy.readers.nsys.launch_calls import launch_calls, only_process
from nsightpy.readers.nsys.sync_calls import calls_named, holding_calls, sync_calls
from nsightpy.readers.nsys.tables import NsysExport


class NsysCalls:
    """HostCalls of an export: of a small one chosen from its frame, else by queries of their own.

    `frame` gives columns of the frame of API calls.
    """

    def __init__(self, export: NsysExport, frame: Callable[[Sequence[str]], Frame]) -> None:
        self._export = export
        self._few = CallsOfFrame(frame)

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
        names: Sequence[str] = LAUNCHING,
        *,
        others: bool = False,
        whole: bool = False,
    ) -> Frame:
        if self._are_few:
            return self._few.launching(alone, names, others=others, whole=whole)
        return launch_calls(self._export, alone, names, others=others, whole=whole)

    def synchronising(self) -> Frame:
        return self._few.synchronising() if self._are_few else sync_calls(self._export)

    def named(self, *prefixes: str) -> Frame:
        return self._few.named(*prefixes) if self._are_few else calls_named(self._export, prefixes)

    def holding(self, least_ns: int) -> tuple[Frame, Frame]:
        if self._are_few:
            return self._few.holding(least_ns)
        return holding_of(holding_calls(self._export, least_ns), least_ns)

    def any_named(self, *prefixes: str) -> bool:
        return bool(self._export.strings.matching(*prefixes))
