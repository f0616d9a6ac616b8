"""Causes of idle time in people's words; one that is not here is the id of its finding."""

from __future__ import annotations

_WORDS = {
    "queued": "launched, not begun",
    "unknown": "not known",
    "exposed-communication": "exposed-communication (MPI)",
}
_IDLE = "idle: "


def cause_words(cause: str) -> str:
    """A cause as people read it, also behind `idle: ` in a part of a compared unit."""
    start = _IDLE if cause.startswith(_IDLE) else ""
    cause = cause.removeprefix(start)
    return start + _WORDS.get(cause, cause)
