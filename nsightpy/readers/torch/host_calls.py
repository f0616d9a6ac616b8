"""The API calls of a trace."""

from __future__ import annotations

from collections.abc import Sequence

from nsightpy.frames import API_CALLS, Frame
from nsightpy.readers.host_calls import LAUNCHING, CallsOfFrame, launch_columns


class TraceCalls(CallsOfFrame):
    """HostCalls of a trace's api_calls frame. All calls count as launching: they are at hand."""

    def launching(
        self,
        alone: int | None,
        names: Sequence[str] = LAUNCHING,
        *,
        others: bool = False,
        whole: bool = False,
    ) -> Frame:
        columns = launch_columns(whole=whole)
        return Frame.empty(API_CALLS, columns) if others else self._read().select(columns)
