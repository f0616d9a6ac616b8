"""What an answer does not say: a note that names the reason and what would help, as data, too."""

from __future__ import annotations

from collections.abc import Callable


class Abstention(str):
    """A note on what could not be answered; as a text it is the reason, then what would help.

    It goes where notes go. `what_would_help` is what to do next, mostly the option that would have
    recorded what is missing; empty where nothing would. `in_traces` is the same for PyTorch traces,
    which other tools record, where it differs.
    """

    reason: str
    what_would_help: str
    in_traces: str

    def __new__(cls, reason: str, what_would_help: str = "", in_traces: str = "") -> Abstention:
        made = super().__new__(cls, f"{reason} {what_would_help}".strip())
        made.reason = reason
        made.what_would_help = what_would_help
        made.in_traces = in_traces
        return made

    def __reduce__(self) -> tuple[type[Abstention], tuple[str, str, str]]:
        return type(self), (self.reason, self.what_would_help, self.in_traces)

    def record(self) -> dict[str, str]:
        """Its two parts by name."""
        return {"reason": self.reason, "what_would_help": self.what_would_help}


def reworded(note: str, reason: Callable[[str], str]) -> str:
    """A note with another reason, an abstention with the same help; other notes are all reason."""
    if isinstance(note, Abstention):
        return Abstention(reason(note.reason), note.what_would_help, note.in_traces)
    return reason(note)


def for_kind(note: str, kind: str) -> str:
    """A note to people who have reports of this kind (nsys, torch)."""
    if kind == "torch" and isinstance(note, Abstention) and note.in_traces:
        return Abstention(note.reason, note.in_traces)
    return note
