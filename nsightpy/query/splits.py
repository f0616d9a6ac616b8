"""What --by splits a table by: which splits, their columns, and keys as they are shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from nsightpy.analysis.tally import Key, Tally, merge
from nsightpy.errors import UsageError
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field

_TEXTS = ("grid", "block", "process", "memory", "shape", "module", "category", "line")
# Their numbers are counted anew in every process, as what names processes: rows are of these, too.
_OF_PROCESSES = ("device", "stream", "thread")
_PROCESSES = ("rank", "process")
# What stands for a value that is not known, by split.
_MISSING = {"grid": "", "block": "", "memory": "", "line": ""}


def parse_splits(by: str | Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """The wanted splits, each once, in the order given. Raises UsageError for unknown ones."""
    given = by.split(",") if isinstance(by, str) else by
    splits = tuple(dict.fromkeys(split.strip() for split in given if split.strip()))
    if unknown := [split for split in splits if split not in known]:
        raise UsageError(f"cannot split by {', '.join(unknown)}; there are {', '.join(known)}")
    return splits


def in_processes(splits: tuple[str, ...]) -> tuple[str, ...]:
    """The splits by which one report is divided: of processes, where they count anew in each."""
    if not set(splits) & set(_OF_PROCESSES) or set(splits) & set(_PROCESSES):
        return splits
    return ("process", *splits)


def split_field(split: str) -> Field:
    """The column under which a split's values are printed."""
    return Field(split, "text" if split in _TEXTS else "id", own=split == "category")


@dataclass(frozen=True)
class Shown:
    """How the keys (splits..., ...) of several reports are shown.

    `divided` are the splits of each report; those of one alone need no process. `path_parts`: so
    many of a report's path name it; 0 where there are no others.
    """

    divided: tuple[str, ...]
    wanted: tuple[str, ...]
    path_parts: int

    @classmethod
    def of(cls, splits: tuple[str, ...], reports: Collection[str]) -> Shown:
        """The keys that the splits of these reports (paths) have."""
        divided = in_processes(splits)
        if len(reports) < 2:
            return cls(divided, splits, 0)
        bare = {Path(report).with_suffix("").parts for report in reports}
        # as many of the last parts of their paths as tell reports apart
        parts = next(n for n in count(1) if len({each[-n:] for each in bare}) == len(bare))
        return cls(divided, divided, parts)

    @property
    def fields(self) -> list[Field]:
        """The columns of the splits."""
        return list(map(split_field, self.wanted))

    def key(self, key: Key, report: SystemReport) -> Key:
        """A key of a report's part with processes as they are shown: a rank, or their name."""
        path = report.path.with_suffix("").parts
        name = "/".join(path[-self.path_parts :]) if self.path_parts else ""
        parts = list(key)
        for place, split in enumerate(self.divided):
            pid = parts[place]
            if split == "rank" and isinstance(pid, int):
                parts[place] = report.rank_of(pid)[0]
            elif split == "process":
                parts[place] = f"{name}:{pid}" if name else str(pid)
            elif pid == _MISSING.get(split):
                parts[place] = None
        return tuple(parts[len(self.divided) - len(self.wanted) :])

    def merged(self, tallies: Iterable[tuple[SystemReport, Tally]]) -> Tally:
        """One tally of those of several reports."""
        return merge(
            [
                replace(tally, keys=tuple(self.key(key, report) for key in tally.keys))
                for report, tally in tallies
            ]
        )
