"""NCCL's calls on the host: their NVTX ranges with payload, and which calls a launch served.

A call's kernel is launched inside its range; of calls between GroupStart and GroupEnd, inside
the GroupEnd (`-t nccl`, nsys 2025.6 on: inside the API Group that holds them).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Frame, Ints, Labels, distinct_pairs
from nsightpy.readers.nccl.names import (
    API_GROUP,
    CALLS,
    GROUP_END,
    GROUP_START,
    LAUNCHES,
    NO_PAYLOAD,
    RANGE_TEXTS,
    UNKNOWN,
    Payload,
    call_of,
    json_fields,
)
from nsightpy.readers.nsys.nvtx import domain_names, events, range_names
from nsightpy.readers.nsys.tables import (
    NO_END,
    UNNAMED,
    NsysExport,
    number,
    process_part,
    text,
    thread_part,
)
from nsightpy.readers.sql import sa

NCCL_DOMAIN = "NCCL"
NONE = -1
_PUSH_POP = (59, 70)
_MARK = 34
_FOREVER = 2**62
_INIT = "CommInit"


class Calls:
    """NCCL's ranges of all threads, by thread and start, and the calls that each stands for.

    `ranges`: start_ns, end_ns, pid, tid, name, and payload, a place in `payloads`. Range i stands
    for the ranges members[first[i]:first[i + 1]]: a call for itself, a group for its calls.
    `communicators`: what the creation of each (pid, communicator) was given.
    """

    def __init__(
        self,
        ranges: Frame,
        payloads: tuple[Payload, ...],
        communicators: dict[tuple[int, str], Payload],
    ) -> None:
        thread = (ranges.ints("tid"), ranges.ints("pid"))
        order = np.lexsort((~ranges.ints("end_ns"), ranges.ints("start_ns"), *thread))
        self.ranges = ranges.take(order)
        self.payloads = payloads
        self.communicators = communicators
        self._parent = _parents(self.ranges)
        self.members, self.first = _members(self.ranges, self._parent)
        self.counts = np.diff(self.first)

    def __len__(self) -> int:
        return self.ranges.rows

    def served(self, pid: Ints, tid: Ints, moment: Ints) -> tuple[Ints, Ints]:
        """The range whose calls a launch of a thread at a moment served; NONE where none says.

        And what launches of one operation have in common: that range if it is a call, else the
        innermost one that was open.
        """
        end = self.ranges.ints("end_ns")
        inner = self._last_begun(pid, tid, moment)
        _climb(inner, self._parent, lambda place, row: end[place] < moment[row])
        around = _nearest(self._parent, self.counts > 0)
        serving = np.where(inner == NONE, NONE, around[inner])
        is_call = self.ranges.labels("name").equals(tuple(CALLS))
        return serving, np.where(is_call[serving], serving, inner)

    def _last_begun(self, pid: Ints, tid: Ints, moment: Ints) -> Ints:
        """The last range that began on a thread until a moment; NONE without any."""
        ranges = self.ranges
        processes, threads = (
            np.concatenate([ranges.ints(n), values]) for n, values in (("pid", pid), ("tid", tid))
        )
        _, thread = distinct_pairs(processes, threads)
        is_launch = np.arange(len(thread)) >= len(self)
        order = np.lexsort((is_launch, np.concatenate([ranges.ints("start_ns"), moment]), thread))
        last = np.empty(len(thread), dtype=np.int64)
        last[order] = np.cumsum(~is_launch[order]) - 1
        newest = last[len(self) :]
        here = (newest != NONE) & (thread[newest] == thread[len(self) :])
        return np.where(here, newest, NONE)


def _parents(ranges: Frame) -> Ints:
    """The innermost range that each lies in: the last before it on its thread that ends no sooner.
    What lies between them ends sooner, so all look on at once."""
    end = ranges.ints("end_ns")
    parent = np.arange(-1, ranges.rows - 1)
    parent[~_same_thread(ranges)] = NONE
    _climb(parent, parent, lambda place, row: end[place] < end[row])
    return parent


def _climb(places: Ints, parent: Ints, passed: Callable[[Ints, Ints], NDArray[np.bool_]]) -> None:
    """Move the place of each row to the first around it that is not passed, NONE without any."""
    looking = np.flatnonzero(places != NONE)
    while len(looking := looking[passed(places[looking], looking)]):
        places[looking] = parent[places[looking]]
        looking = looking[places[looking] != NONE]


def _same_thread(ranges: Frame) -> NDArray[np.bool_]:
    """Which ranges are on the thread of the one before."""
    pid, tid = ranges.ints("pid"), ranges.ints("tid")
    same = np.zeros(ranges.rows, dtype=np.bool_)
    same[1:] = (pid[1:] == pid[:-1]) & (tid[1:] == tid[:-1])
    return same


def _nearest(parent: Ints, wanted: NDArray[np.bool_]) -> Ints:
    """For each range it or the first wanted one around it, NONE without any."""
    nearest = np.where(wanted, np.arange(len(parent)), parent)
    _climb(nearest, nearest, lambda place, _: ~wanted[place])
    return nearest


def _members(ranges: Frame, parent: Ints) -> tuple[Ints, Ints]:
    """The calls that each range stands for, and where those of each begin: an outermost GroupEnd
    for those since its GroupStart, an API Group for those in it."""
    names = ranges.labels("name")
    begins, ends = names.equals([GROUP_START]), names.equals([GROUP_END])
    calls = np.flatnonzero(names.equals(tuple(CALLS)))
    thread = np.cumsum(~_same_thread(ranges)) - 1
    # each thread's depth lies below the one before, so that no minimum runs into the next
    begun = np.cumsum(begins.astype(np.int64) - ends)
    begun -= (np.concatenate([[0], begun[:-1]])[~_same_thread(ranges)])[thread]
    below = thread * (ranges.rows + 1)
    depth = begun - below - np.minimum.accumulate(np.minimum(begun, 0) - below)
    closing = np.flatnonzero(ends & (depth == 0))
    grouped = calls[depth[calls] > 0]
    after = np.searchsorted(closing, grouped)
    grouped, after = grouped[after < len(closing)], after[after < len(closing)]
    group = closing[after]
    same = thread[group] == thread[grouped]
    api = _nearest(parent, names.equals([API_GROUP]))[calls]
    owner = np.concatenate([calls, group[same], api[api != NONE]])
    member = np.concatenate([calls, grouped[same], calls[api != NONE]])
    order = np.lexsort((member, owner))
    return member[order], np.searchsorted(owner[order], np.arange(ranges.rows + 1))


def nccl_calls(export: NsysExport) -> Calls:
    """All NCCL ranges of an export; nothing where it has none."""
    registered = export.strings.starting("ncclComm", "CommInit")
    registered |= export.strings.named(RANGE_TEXTS)
    raw = _read(export, registered)
    if raw is None or not raw.rows:
        empty = np.empty(0, dtype=np.int64)
        blank = dict.fromkeys(("start_ns", "end_ns", "pid", "tid", "payload"), empty)
        return Calls(Frame(blank | {"name": Labels.of(())}), (), {})
    names, jsons = _names(export, raw), raw.labels("jsonText")
    # decoded once each, as captures repeat them; None for GPU work
    payloads = [_payload(json) for json in jsons.values]
    code = jsons.codes.astype(np.int64)
    creates = names.where(lambda name: name.startswith(_INIT))
    on_host = np.asarray([payload is not None for payload in payloads], dtype=np.bool_)[code]
    kept = ~names.equals([""]) & (creates | (raw.ints("kind") != _MARK))
    kept &= on_host | names.equals(tuple(LAUNCHES))
    communicators = {}
    creating = np.flatnonzero(kept & creates)
    for pid, index in zip(raw.ints("pid")[creating].tolist(), code[creating].tolist(), strict=True):
        payload = payloads[index] or NO_PAYLOAD
        if payload.communicator and payload.ranks != UNKNOWN:
            communicators[pid, payload.communicator] = payload
    end = np.where(raw.ints("end_ns") == NO_END, _FOREVER, raw.ints("end_ns"))
    columns = raw.select(("start_ns", "pid", "tid"))
    ranges = Frame({**columns, "end_ns": end, "name": names, "payload": code})
    known = tuple(payload or NO_PAYLOAD for payload in payloads)
    return Calls(ranges.take(kept & ~creates), known, communicators)


def _read(export: NsysExport, registered: Mapping[int, str]) -> Frame | None:
    """What NVTX has of NCCL; None where no column can name it."""
    table = events(export)
    if table is None or "end" not in table.c:
        return None
    named: list[sa.ColumnElement[bool]] = []
    if "textId" in table.c:
        named.append(table.c.textId.in_(registered))
    if "text" in table.c:
        named += [table.c.text.in_(RANGE_TEXTS), table.c.text.startswith("ncclComm")]
    if not named:
        return None
    query = sa.select(
        number(table, "start").label("start_ns"),
        number(table, "end", NO_END).label("end_ns"),
        number(table, "globalTid").label("thread"),
        number(table, "textId", UNNAMED).label("text_id"),
        number(table, "domainId").label("domain"),
        number(table, "eventType").label("kind"),
        text(table, "text"),
        text(table, "jsonText"),
    ).where(table.c.eventType.in_((*_PUSH_POP, _MARK)), sa.or_(*named))
    raw = Frame(export.file.arrays(query, split=table))
    thread = raw.ints("thread")
    return Frame({**raw, "pid": process_part(thread), "tid": thread_part(thread)})


def _names(export: NsysExport, raw: Frame) -> Labels:
    """Which call each range names, empty for none."""
    texts, domains = range_names(export, raw), domain_names(export)
    owners, owner = distinct_pairs(raw.ints("pid"), raw.ints("domain"))
    # a domain without a name of its own may be NCCL's
    is_nccl = [domains.get(each, NCCL_DOMAIN if each[1] else "") == NCCL_DOMAIN for each in owners]

    inside = texts.renamed(lambda text: call_of(text, in_domain=True) or "")
    outside = texts.renamed(lambda text: call_of(text, in_domain=False) or "")
    codes = np.where(
        np.asarray(is_nccl, dtype=np.bool_)[owner], inside.codes, outside.codes + len(inside.values)
    )
    return Labels(codes.astype(np.int32), inside.values + outside.values).merged()


def _payload(json: str) -> Payload | None:
    """The payload of a range; None for GPU work."""
    fields = json_fields(json)
    return None if "operationId" in fields or "channelId" in fields else Payload.of(fields)
