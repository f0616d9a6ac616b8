"""Notes: what a reader must know to trust an answer, as data.

A note says in one sentence what is so, and what would help where something would. Its kind is for
programs, which never look into its words. The text is made once, when an answer is finished.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

# Kinds of what is said of captures.
NO_WORK, NO_CALLS, LEFT_OUT = "no-work", "no-calls", "left-out"
REPEATED, CLAIMED, MISSING_RANKS = "repeated", "claimed", "missing-ranks"
OTHER_JOBS = "other-jobs"
# What the profiler said: events were lost; it failed; events may be missing; a device or a build
# cannot do something; anything else.
LOST, FAILED, PARTIAL, DIAGNOSTIC = "lost", "failed", "partial", "diagnostic"
UNSUPPORTED = "unsupported"
# The same of code ranges alone.
LOST_RANGES, PARTIAL_RANGES = "lost-ranges", "partial-ranges"


@dataclass(frozen=True, slots=True)
class Note:
    """What is so, and `what_would_help`: without such words it is a remark, else an abstention.

    `in_traces`: what would help where PyTorch's profiler recorded. `whose`: the report or ranks
    that it is about, `reports`: how many of several, in words.
    """

    reason: str
    what_would_help: str = ""
    in_traces: str = ""
    kind: str = ""
    whose: str = ""
    reports: str = ""

    def __str__(self) -> str:
        return self.text()

    def text(self, tool: str = "nsys") -> str:
        """The note for people who have reports of this tool (nsys, torch)."""
        return f"{self._reason} {self.help(tool)}".strip()

    def help(self, tool: str) -> str:
        """What would help those people."""
        return (self.in_traces if tool == "torch" else "") or self.what_would_help

    def record(self, tool: str) -> dict[str, str]:
        """An abstention as data."""
        return {"reason": self._reason, "what_would_help": self.help(tool)}

    @property
    def _reason(self) -> str:
        whose = f"{self.whose}: " if self.whose else ""
        return f"{whose}{self.reason}" + (f" ({self.reports})" if self.reports else "")


# A remark may be its text alone.
Said: TypeAlias = str | Note


def as_note(said: Said) -> Note:
    """A remark that is a text alone as a note."""
    return said if isinstance(said, Note) else Note(said)


def texts(notes: Iterable[Said], tool: str = "nsys") -> tuple[str, ...]:
    """Notes as people read them, each once and in order."""
    return tuple(dict.fromkeys(as_note(note).text(tool) for note in notes))


def abstentions(notes: Sequence[Said], tool: str = "nsys") -> tuple[dict[str, str], ...]:
    """Those of the notes that say what could not be answered, as data."""
    unanswered = dict.fromkeys(note for note in map(as_note, notes) if note.what_would_help)
    return tuple(note.record(tool) for note in unanswered)
