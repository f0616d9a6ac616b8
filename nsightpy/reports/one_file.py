"""What reports without processes share: a file whose rank only its name gives."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nsightpy.readers.nsys.identity import (
    GUESS,
    decide_ranks,
    rank_by_regex,
    rank_expression,
    rank_in_name,
)
from nsightpy.readers.tools.file_check import file_size


class OneFile:
    """One report that is read as a whole. To another process only its path and rank travel."""

    reading_factor = 1  # memory that reading takes at most, as a multiple of the file
    threads: int | None = None

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.rank: int | None = None
        self.rank_source = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def __getstate__(self) -> dict[str, object]:
        """What another process needs to read the same file: no frames."""
        return {"path": self.path, "rank": self.rank, "rank_source": self.rank_source}

    def close(self) -> None:
        """Let go of what was read, where that can be read again."""

    @property
    def reading_bytes(self) -> int:
        """Memory that reading it takes at most, estimated from its size."""
        return file_size(self.path) * self.reading_factor

    @property
    def facts(self) -> dict[str, list[str]]:
        """The notes, where they are asked for again after a function was run on the report."""
        return {}


def name_ranks(reports: Iterable[OneFile], rank_regex: str | None = None) -> None:
    """Give every report the rank in its file name, by the user's expression first."""
    if rank_regex is not None:
        rank_expression(rank_regex)
    by_unit = {(str(report.path), 0): report for report in reports}
    evidence = {
        unit: (rank_by_regex(report.path.name, rank_regex) if rank_regex else [])
        + rank_in_name(report.path.name)
        for unit, report in by_unit.items()
    }
    for unit, (rank, source) in decide_ranks(evidence).items():
        if not source.startswith(GUESS):
            by_unit[unit].rank, by_unit[unit].rank_source = rank, source
