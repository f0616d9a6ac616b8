"""What --by splits a table by: which splits, their columns, and keys as they are shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Protocol

from nsightpy.analysis.tally import Key, Tally, merge
from nsightpy.errors import UsageError
from nsightpy.results import Field

_TEXTS = ("grid", "block", "process", "memory", "shape", "module")
# Their numbers are counted anew in every process, as what names processes: rows are of these, too.
_OF_PROCESSES = ("device", "stream", "thread")
_PROCESSES = ("rank", "process")
# What stands for a value that is not known, by split.
_MISSING = {"grid": "", "block": "", "memory": ""}


class Ranked(Protocol):
    """What is asked of a report: where it is, and the rank of a process."""

    path: Path

    def rank_of(self, pid: int) -> tuple[int | None, str]: ...


def parse_splits(by: str | Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """The wanted splits, each once, in the order given. Raises UsageError for unknown ones."""
    given = by.split(",") if isinstance(by, str) else by
    splits = tuple(dict.fromkeys(split.strip() for split in given if split.strip()))
    if unknown := [split for split in splits if split not in known]:
        raise UsageError(f"cannot split by {', '.join(unknown)}; there are {', '.join(known)}")
    return splits


def in_processes(splits: tuple[str, ...], reports: Sequence[Ranked]) -> tuple[str, ...]:
    """The splits, led by process where they would add up equal numbers of several reports."""
    if not set(splits) & set(_OF_PROCESSES) or set(splits) & set(_PROCESSES):
        return splits
    return ("process", *splits) if len(reports) > 1 else splits


def distinct_parts(reports: Collection[str]) -> int:
    """How many of the last parts of their paths tell reports apart; 0 where there is one."""
    if len(reports) < 2:
        return 0
    bare = {Path(report).with_suffix("").parts for report in reports}
    return next(n for n in count(1) if len({parts[-n:] for parts in bare}) == len(bare))


def split_field(split: str) -> Field:
    """The column under which a split's values are printed."""
    return Field(split, "text" if split in _TEXTS else "id")


def shown_key(key: Key, report: Ranked, splits: Sequence[str], path_parts: int) -> Key:
    """A key (splits..., ...) with processes as they are shown: a rank, or report and process.

    `path_parts`: so many of its path name the report; 0 where there are no others.
    """
    name = "/".join(report.path.with_suffix("").parts[-path_parts:]) if path_parts else ""
    parts = list(key)
    for place, split in enumerate(splits):
        pid = parts[place]
        if split == "rank" and isinstance(pid, int):
            parts[place] = report.rank_of(pid)[0]
        elif split == "process":
            parts[place] = f"{name}:{pid}" if name else str(pid)
        elif pid == _MISSING.get(split):
            parts[place] = None
    return tuple(parts)


def shown(tally: Tally, report: Ranked, splits: Sequence[str], path_parts: int) -> Tally:
    """The same tally under keys as they are shown."""
    keys = tuple(shown_key(key, report, splits, path_parts) for key in tally.keys)
    if keys == tally.keys:
        return tally
    return merge([Tally(keys, tally.bounds, tally.values, tally.counts)])
