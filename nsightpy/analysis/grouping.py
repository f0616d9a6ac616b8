"""Grouping the rows of a frame by several columns at once; connected sets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.tally import Key
from nsightpy.frames import Frame, Ints, Labels, distinct


@dataclass(frozen=True, slots=True)
class Groups:
    """Which group each row belongs to: codes into keys, a key being a tuple of column values."""

    codes: NDArray[np.int32]
    keys: tuple[Key, ...]


def group_by(frame: Frame, names: Sequence[str]) -> Groups:
    """Groups of the rows that agree in all the named columns."""
    codes: NDArray[np.int32] = np.zeros(frame.rows, dtype=np.int32)
    keys: tuple[Key, ...] = ((),)
    for name in names:
        part, values = _coded(frame, name)
        if len(keys) == 1:
            codes, keys = part, tuple((*keys[0], value) for value in values)
            continue
        pairs, codes = distinct(codes.astype(np.int64) * len(values) + part)
        keys = tuple(
            (*keys[pair // len(values)], values[pair % len(values)]) for pair in pairs.tolist()
        )
    return Groups(codes, keys)


def group_sums(frame: Frame, by: Sequence[str], columns: Sequence[str]) -> dict[Key, list[float]]:
    """The sums of columns of numbers for each group; of whole numbers they are whole."""
    groups = group_by(frame, by)
    sums = []
    for name in columns:
        column = np.asarray(frame[name])
        total = np.zeros(len(groups.keys), dtype=column.dtype)
        np.add.at(total, groups.codes, column)
        sums.append(total.tolist())
    return {key: figures for key, *figures in zip(groups.keys, *sums, strict=True)}


def named_by(frame: Frame, columns: Sequence[str], name: Callable[..., str]) -> Labels:
    """A name of each row, which is made once for all rows with the same values in these columns."""
    groups = group_by(frame, columns)
    return Labels(groups.codes, tuple(name(*key) for key in groups.keys))


def labelled(labels: Labels, rows: NDArray[np.integer]) -> Labels:
    """The names of some rows; empty for no row (-1)."""
    codes = np.append(labels.codes, np.int32(len(labels.values)))[rows]
    return Labels(codes, (*labels.values, "")).used()


def rows_by_group(codes: NDArray[np.int32] | Ints) -> Ints:
    """The rows by their code (0 and up), those of one code in their order."""
    # numpy sorts 16-bit integers by radix, ten times as fast as others
    order: Ints = np.argsort(codes.astype(np.uint16), kind="stable")
    if codes.max(initial=0) < 1 << 16:
        return order
    return order[np.argsort((codes >> 16).astype(np.uint16)[order], kind="stable")]


def rows_of_groups(codes: NDArray[np.int32] | Ints, groups: int) -> list[Ints]:
    """The rows of each group (code 0 and up), in their order."""
    edges = np.cumsum(np.bincount(codes, minlength=groups))
    return np.split(rows_by_group(codes), edges[:-1])[:groups]


def rows_before(codes: NDArray[np.int32] | Ints, counted: NDArray[np.bool_] | None = None) -> Ints:
    """For each row the number of rows of its group (code) before it, of those that are counted."""
    order = rows_by_group(codes)
    seen = np.ones(len(order), dtype=np.bool_) if counted is None else counted[order]
    before: Ints = np.cumsum(seen) - seen
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    numbers = np.empty_like(before)
    numbers[order] = before - np.repeat(before[starts], np.diff(starts, append=len(order)))
    return numbers


def _coded(frame: Frame, name: str) -> tuple[NDArray[np.int32], Sequence[int | str]]:
    data = frame[name]
    if isinstance(data, Labels):
        merged = data.merged()
        used, places = distinct(merged.codes.astype(np.int64))
        return places, [merged.values[code] for code in used.tolist()]
    unique, places = distinct(frame.ints(name))
    return places, unique.tolist()


def connected(member: Ints, group: Ints, members: int) -> NDArray[np.int32]:
    """The least member of each connected set; member[i] is in group[i] (both from 0 on)."""
    roots = np.arange(members, dtype=np.int32)
    while True:
        least = np.full(int(group.max(initial=-1)) + 1, members, dtype=np.int32)
        np.minimum.at(least, group, roots[member])
        lower = roots.copy()
        np.minimum.at(lower, member, least[group])
        np.minimum.at(lower, roots[member], least[group])
        lower = lower[lower]
        if np.array_equal(lower, roots):
            return roots
        roots = lower
