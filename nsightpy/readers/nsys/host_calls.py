"""The API calls of an Nsight Systems export, read column by column."""

from __future__ import annotations

from collections.abc import Sequence

from nsightpy.frames import Frame
from nsightpy.readers.host_calls import LAUNCHING
from nsightpy.readers.nsys.events import RUNTIME
from nsightpy.readers.nsys.launch_calls import launch_calls, only_process
from nsightpy.readers.nsys.sync_calls import long_calls, sync_calls
from nsightpy.readers.nsys.tables import NsysExport


class NsysCalls:
    """HostCalls of an export."""

    def __init__(self, export: NsysExport) -> None:
        self._export = export

    @property
    def recorded(self) -> bool:
        return self._export.holds_rows(RUNTIME)

    def beside(self) -> NsysCalls:
        # a connection of its own: one cannot answer two threads at a time
        return NsysCalls(NsysExport(self._export.file.path, self._export.file.threads))

    def only_process(self, *, likely: bool = False) -> int | None:
        return only_process(self._export, likely=likely)

    def launching(
        self,
        alone: int | None,
        kinds: Sequence[str] = LAUNCHING,
        *,
        others: bool = False,
        ends: bool = False,
        threads: bool = False,
    ) -> Frame:
        return launch_calls(self._export, alone, kinds, others=others, ends=ends, threads=threads)

    def synchronising(self) -> Frame:
        return sync_calls(self._export)

    def lasting(self, least_ns: int) -> Frame:
        return long_calls(self._export, least_ns)

    def any_named(self, *prefixes: str) -> bool:
        return any(self._export.strings.matching(prefix) for prefix in prefixes)
