"""The calls that launched operations, read as far as they are needed."""

from __future__ import annotations

from nsightpy.analysis.nvtx.projection import CALL_COLUMNS, Launched, launched
from nsightpy.frames import API_CALLS, Frame
from nsightpy.reports.system import SystemReport

NO_CALLS = Frame.empty(API_CALLS, CALL_COLUMNS)


def launching(report: SystemReport, operations: Frame) -> tuple[Frame, Launched] | None:
    """The calls among which are those that launched the operations, and what each launched; None
    without any recorded.

    Calls that usually launch something are read first, the others only where that is not enough.
    """
    if not report.calls.recorded:
        return None
    calls = report.calls.launching(whole=True)
    done = launched(operations, calls)
    if len(done.rows) < operations.rows:
        others = report.calls.launching(others=True, whole=True)
        calls = Frame.concatenate([calls, others.select(calls)]).ordered()
        done = launched(operations, calls)
    return calls, done
