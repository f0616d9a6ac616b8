"""What SQLite says of a file that it cannot read, as messages with the file's name."""

from __future__ import annotations

from pathlib import Path

from nsightpy.errors import ReportError


def too_much(path: Path, exceeded: str) -> ReportError:
    problem = f"is damaged or very slow to read: a query {exceeded}"
    advice = "copy it to a fast local disk, or set NSIGHTPY_QUERY_SECONDS to allow more."
    return ReportError(path, problem, advice)


def explained(path: Path, error: Exception) -> ReportError:
    text = str(error)
    if "locked" in text or "busy" in text:
        return ReportError(
            path,
            "is locked by another program",
            "wait until nsys has finished writing it, or copy the file and read the copy.",
        )
    if "malformed" in text or "not a database" in text or "encrypted" in text:
        return damaged(path)
    if "unable to open" in text:
        return ReportError(path, "cannot be opened", "check that it exists and may be read.")
    if "readonly" in text:  # SQLite would undo what the journal holds
        problem = f"a change that was not finished waits in {path.name}-journal"
        return ReportError(path, problem, "let its writer end, or export it again.")
    first_line = text.splitlines()[0] if text else type(error).__name__
    return ReportError(path, f"SQLite says: {first_line}")


def damaged(path: Path) -> ReportError:
    return ReportError(path, "is damaged (SQLite cannot read it)", "copy or export it again.")
