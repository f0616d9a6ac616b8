"""What an export says of its capture: what is asked of every report, whatever the question."""

from __future__ import annotations

from dataclasses import dataclass

from nsightpy.frames import Frame
from nsightpy.readers.nsys.capture_notes import capture_notes
from nsightpy.readers.nsys.capture_start import CaptureStart, capture_start
from nsightpy.readers.nsys.identity import Evidence, recorded_ranks
from nsightpy.readers.nsys.session import (
    Session,
    capture_version,
    host_pids,
    process_names,
    session,
)
from nsightpy.readers.nsys.tables import NsysExport
from nsightpy.readers.nsys.threads import ThreadNames, thread_names
from nsightpy.results import Abstention

# Priority and name of a thread of a process.
_Thread = tuple[int, int, int | None, str | None]


@dataclass(frozen=True)
class Capture:
    """What an export says of its capture. `ranks`: of its processes, `launched`: of itself.

    `host_pids`: the processes where none has GPU work or CUDA calls. `thread_names`: process,
    thread, priority, name. `said`: notes, an abstention as its two parts.
    """

    session: Session
    start: CaptureStart
    tool_version: str
    ranks: list[Evidence]
    launched: list[Evidence]
    processes: dict[int, str]
    thread_names: list[_Thread]
    host_pids: list[int]
    said: list[list[str]]

    @property
    def threads(self) -> ThreadNames:
        """Priority and name by process and thread."""
        return {(pid, tid): (priority, name) for pid, tid, priority, name in self.thread_names}

    @property
    def notes(self) -> list[str]:
        """What a reader of any figure must know about the capture."""
        return [Abstention(*parts) if len(parts) > 1 else parts[0] for parts in self.said]


def capture(export: NsysExport, diagnostics: Frame, cuda_pids: list[int]) -> Capture:
    """The facts of one export, of whose processes those with GPU work or CUDA calls are known."""
    threads = thread_names(export)
    hosts = [] if cuda_pids else host_pids(export)
    pids = cuda_pids or hosts
    notes = capture_notes(export, diagnostics, pids)
    return Capture(
        session(export),
        capture_start(export, diagnostics),
        capture_version(diagnostics),
        *recorded_ranks(export),
        process_names(export, pids),
        [(*thread, *named) for thread, named in threads.items()],
        hosts,
        [
            list(note.record().values()) if isinstance(note, Abstention) else [note]
            for note in notes
        ],
    )
