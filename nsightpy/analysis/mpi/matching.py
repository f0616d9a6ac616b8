"""Which MPI calls of several ranks are one operation: a collective, or a message.

Collectives are matched by communicator, function and order, messages by communicator, ranks, tag
and order: MPI demands that they agree. Where the calls of the ranks do not, as when a capture
began in between, a communicator is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.mpi import functions
from nsightpy.analysis.mpi.functions import Mask, is_one_of
from nsightpy.frames import Frame, Ints, distinct_pairs, last_before

BARRIER, TO_ALL, FROM_ROOT, TO_ROOT, MESSAGE = range(5)
NONE = -1
# Columns of the calls of all clocks: those of the frame mpi_calls, and whose they are.
CALL_COLUMNS = (
    *("start_ns", "end_ns", "pid", "tid", "name", "bytes", "receive_bytes", "peer", "tag"),
    *("request", "communicator", "communicator_id", "communicator_size", "communicator_rank"),
)


@dataclass(frozen=True)
class Matched:
    """The calls of operations that several clocks took part in, one after the other.

    `instance` numbers the operations, `row` is that of the call, `posted` that of the call that
    began it (of a receive that a wait completes; else the same). `enters`: who must have come
    before any that `exits` marks can leave. `kind` and `strict` are by instance: what it is, and
    whether that holds whatever the program passed. `unmatched` names communicators left out.
    """

    instance: Ints
    row: Ints
    posted: Ints
    enters: Mask
    exits: Mask
    kind: Ints
    strict: Mask
    unmatched: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return len(self.kind)


def matched_calls(calls: Frame, clock: Ints, ranks: Sequence[int | None]) -> Matched:
    """The operations among the calls (CALL_COLUMNS) of some clocks, whose world ranks are given."""
    world = np.asarray([NONE if rank is None else rank for rank in ranks], dtype=np.int64)
    communicator_rank = calls.ints("communicator_rank")
    unnamed = calls.labels("communicator_id").equals([""])
    divided = _divided(calls, clock, unnamed)
    if len(world) and not divided:
        communicator_rank = np.where(
            unnamed & (communicator_rank == NONE), world[clock], communicator_rank
        )
    order = np.lexsort((calls.ints("start_ns"), clock))
    parts = _Parts(calls, clock, communicator_rank, order, divided)
    collectives, unmatched = _collectives(parts)
    matched = [*collectives, _messages(parts)]
    first = np.cumsum([0, *(part.count for part in matched[:-1])])
    numbers = [part.instance + n for part, n in zip(matched, first, strict=True)]
    names = ("row", "posted", "enters", "exits", "kind", "strict")
    columns = {n: np.concatenate([getattr(part, n) for part in matched]) for n in names}
    return Matched(np.concatenate(numbers), **columns, unmatched=tuple(unmatched))


def _divided(calls: Frame, clock: Ints, unnamed: Mask) -> bool:
    """Whether calls of communicators without a name may be of several: then none can be matched."""
    if is_one_of(calls.labels("name"), functions.DIVISIONS).any():
        return True
    handle = calls.ints("communicator")
    handled = unnamed & (handle != 0)
    pairs = np.unique(np.stack([clock[handled], handle[handled]]), axis=1)
    return bool(np.bincount(pairs[0]).max(initial=0) > 1)


@dataclass(frozen=True)
class _Parts:
    """The calls, whose they are, the own rank in the communicator, and their order in time;
    `divided`: that those without a communicator's name may be of several."""

    calls: Frame
    clock: Ints
    communicator_rank: Ints
    order: Ints
    divided: bool

    def among(self, names: frozenset[str]) -> Ints:
        """The rows of some functions, by clock and then by time."""
        return self.order[is_one_of(self.calls.labels("name"), names)[self.order]]


def _collectives(parts: _Parts) -> tuple[list[Matched], list[str]]:
    """The collectives of every communicator, and the names of those left out."""
    rows = parts.among(functions.COLLECTIVE)
    labels = parts.calls.labels("communicator_id").merged()
    initialised = np.unique(parts.clock[parts.among(functions.STARTS)])
    communicators = labels.codes[rows]
    matched, lost = [], []
    for code in np.unique(communicators).tolist():
        calls, name = rows[communicators == code], labels.values[code]
        clocks, member = np.unique(parts.clock[calls], return_inverse=True)
        if len(clocks) < 2:
            continue
        whole = bool(name) and bool(np.isin(clocks, initialised).all())
        kept = None
        if name or not parts.divided:
            kept = _in_step(parts, calls, member.astype(np.int64), whole)
        size = int(parts.calls.ints("communicator_size")[calls].max(initial=0))
        if kept is None or (size and len(clocks) > size):
            lost.append(name or "of unknown members")
        else:
            matched.append(_collectives_of(parts, calls[kept[0]], kept[1], known=bool(name)))
    return matched, lost


def _in_step(parts: _Parts, rows: Ints, member: Ints, whole: bool) -> tuple[Mask, Ints] | None:
    """The calls that all members made in the same order, and the place of each of those.

    Calls of different names, or more of them on one member, are in order only up to there, and
    that only where the members were captured from their start on (`whole`).
    """
    begin = np.searchsorted(member, np.arange(member[-1] + 1))
    place = np.arange(len(rows)) - begin[member]
    counts = np.bincount(member)
    shared = int(counts.min())
    # equal names of different reports have one code
    name = parts.calls.labels("name").merged().codes[rows]
    first = name[begin[0] : begin[0] + shared]
    common = place < shared
    odd = np.flatnonzero(common)[name[common] != first[place[common]]]
    agreed = int(place[odd].min()) if len(odd) else shared
    if (agreed < shared or counts.max() > shared) and not whole:
        return None
    kept = place < agreed
    return kept, place[kept]


def _collectives_of(parts: _Parts, rows: Ints, instance: Ints, *, known: bool) -> Matched:
    """The collectives of one communicator; place in the order is the number."""
    count = int(instance.max(initial=-1)) + 1
    names = parts.calls.labels("name").take(rows)
    to_all, _, from_root, to_root = masks = [
        is_one_of(names, group)
        for group in (functions.TO_ALL, functions.BARRIERS, functions.FROM_ROOT, functions.TO_ROOT)
    ]
    peer = parts.calls.ints("peer")[rows]
    rooted = (peer != NONE) & (parts.communicator_rank[rows] != NONE)
    root = rooted & (peer == parts.communicator_rank[rows])
    other = rooted & ~root
    enters = to_all | (from_root & root) | (to_root & rooted)
    exits = to_all | (from_root & other) | (to_root & root)
    kind = np.full(count, NONE, dtype=np.int64)
    for code, mask in zip((TO_ALL, BARRIER, FROM_ROOT, TO_ROOT), masks, strict=True):
        kind[instance[mask]] = code
    moved = parts.calls.ints("bytes")[rows] + parts.calls.ints("receive_bytes")[rows]
    carried = np.zeros(count, dtype=np.int64)
    np.maximum.at(carried, instance, moved)
    strict = (carried > 0) | (kind == BARRIER) | (not known)
    strict[instance[is_one_of(names, functions.UNEVEN)]] = False
    return Matched(instance, rows, rows, enters, exits, kind, strict)


def _messages(parts: _Parts) -> Matched:
    """Messages from one rank to another, each with its send and what completed its receive."""
    sends, receives = parts.among(functions.SENDS), parts.among(functions.RECEIVES)
    both = np.concatenate([sends, receives])
    sent = np.arange(len(both)) < len(sends)
    peer, rank = parts.calls.ints("peer")[both], parts.communicator_rank[both]
    communicator = parts.calls.labels("communicator_id").merged().codes[both]
    by = Frame(
        {
            "communicator": communicator,
            "from": np.where(sent, rank, peer),
            "to": np.where(sent, peer, rank),
            "tag": parts.calls.ints("tag")[both],
        }
    )
    code = group_by(by, tuple(by)).codes
    balanced = np.bincount(code, np.where(sent, 1, -1)) == 0
    usable = balanced[code] & (peer >= 0) & (rank >= 0) & (peer != rank)
    chosen = np.flatnonzero(usable)
    # by key, sends and receives apart, each in its order: the k-th of both is one message
    order = chosen[np.lexsort((np.arange(len(chosen)), sent[chosen], code[chosen]))]
    out, into = both[order[sent[order]]], both[order[~sent[order]]]
    completed = _completions(parts, into)
    seen = (completed != NONE) & (parts.clock[out] != parts.clock[into])
    out, into, completed = out[seen], into[seen], completed[seen]
    count = len(out)
    first, second = np.ones(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
    return Matched(
        np.tile(np.arange(count), 2),
        np.concatenate([out, completed]),
        np.concatenate([out, into]),
        np.concatenate([first, second]),
        np.concatenate([second, first]),
        np.full(count, MESSAGE, dtype=np.int64),
        np.ones(count, dtype=np.bool_),
    )


def _completions(parts: _Parts, receives: Ints) -> Ints:
    """The call in which each receive ended: itself, or the wait for its request; NONE: unknown."""
    pending = is_one_of(parts.calls.labels("name"), functions.PENDING_RECEIVES)[receives]
    completions = np.where(pending, NONE, receives)
    waits, pending_rows = parts.among(functions.WAITS), receives[pending]
    request = parts.calls.ints("request")
    waits = waits[request[waits] != 0]
    # the first wait after a receive is the last before it, backwards in time
    start, clock = -parts.calls.ints("start_ns"), parts.clock.astype(np.int64)
    waits = waits[np.lexsort((start[waits], request[waits], clock[waits]))]
    both = np.concatenate([waits, pending_rows])
    _, group = distinct_pairs(clock[both], request[both])
    edge = len(waits)
    after = last_before((group[:edge], start[waits]), (group[edge:], start[pending_rows]), "left")
    found = np.where(request[pending_rows] != 0, after, NONE)
    completions[pending] = np.append(waits, NONE)[found]
    return completions
