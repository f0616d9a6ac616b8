"""What an export says of its capture: what is asked of every report, whatever the question."""

from __future__ import annotations

from dataclasses import dataclass

from nsightpy.frames import Frame
from nsightpy.readers.nsys.capture_start import CaptureStart, capture_start
from nsightpy.readers.nsys.identity import Evidence, recorded_ranks
from nsightpy.readers.nsys.session import (
    Session,
    capture_version,
    process_names,
    session,
)
from nsightpy.readers.nsys.tables import NsysExport
from nsightpy.readers.nsys.threads import ThreadNames, thread_names

# Priority and name of a thread of a process.
_Thread = tuple[int, int, int | None, str | None]


@dataclass(frozen=True)
class Capture:
    """What an export says of its capture. `ranks`: of its processes, `launched`: of itself.

    `thread_names`: process, thread, priority, name.
    """

    session: Session
    start: CaptureStart
    tool_version: str
    ranks: list[Evidence]
    launched: list[Evidence]
    processes: dict[int, str]
    thread_names: list[_Thread]

    @property
    def threads(self) -> ThreadNames:
        """Priority and name by process and thread."""
        return {(pid, tid): (priority, name) for pid, tid, priority, name in self.thread_names}


def capture(export: NsysExport, diagnostics: Frame, pids: list[int]) -> Capture:
    """The facts of one export, `pids` being its processes with GPU work."""
    threads = thread_names(export)
    return Capture(
        session(export),
        capture_start(export, diagnostics),
        capture_version(diagnostics),
        *recorded_ranks(export),
        process_names(export, pids),
        [(*thread, *named) for thread, named in threads.items()],
    )
