"""NCCL's calls on the host: their NVTX ranges with payload, and which calls a launch served.

A call's kernel is launched inside its range; of calls between GroupStart and GroupEnd, inside
the GroupEnd (`-t nccl`, nsys 2025.6 on: inside the API Group that holds them).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from nsightpy.frames import Frame
from nsightpy.readers.nccl.names import (
    API_GROUP,
    CALLS,
    GROUP_END,
    GROUP_START,
    LAUNCHES,
    RANGE_TEXTS,
    call_of,
)
from nsightpy.readers.nccl.payload import NO_PAYLOAD, UNKNOWN, BlobLayouts, Payload, json_fields
from nsightpy.readers.nsys.columns import (
    NO_BYTES,
    NO_END,
    SPAN,
    column,
    number,
    process_of,
    text,
    thread_of,
)
from nsightpy.readers.nsys.nvtx import domain_names, events
from nsightpy.readers.nsys.tables import NsysExport

NCCL_DOMAIN = "NCCL"
_PUSH_POP = (59, 70)
_MARK = 34
_FOREVER = 2**62


@dataclass(slots=True)
class Range:
    """One NCCL range on one thread; times in ns. `parent` and `calls` are places on the thread."""

    start: int
    end: int
    name: str
    payload: Payload
    parent: int = -1
    calls: tuple[int, ...] = ()


class Served(NamedTuple):
    """The calls that one launch served; `place` differs between ranges."""

    place: int
    calls: tuple[Range, ...]
    grouped: bool


class CallingThread:
    """The NCCL ranges of one thread, by start."""

    def __init__(self, ranges: Sequence[Range]) -> None:
        self.ranges = sorted(ranges, key=lambda one: (one.start, -one.end))
        self._starts = [one.start for one in self.ranges]
        self._nest()
        self._group()

    def served(self, moment: int) -> Served | None:
        """What a launch at that moment was for; None where no range says."""
        place = bisect_right(self._starts, moment) - 1
        while place >= 0 and self.ranges[place].end < moment:
            place = self.ranges[place].parent
        top = place
        while place >= 0:
            one = self.ranges[place]
            if one.name in CALLS:
                return Served(place, (one,), grouped=False)
            if one.calls:
                calls = tuple(self.ranges[call] for call in one.calls)
                return Served(top, calls, grouped=len(calls) > 1 or one.name == GROUP_END)
            place = one.parent
        return None

    def _nest(self) -> None:
        """Give every range the innermost one that it lies in."""
        open_: list[int] = []
        for place, one in enumerate(self.ranges):
            while open_ and self.ranges[open_[-1]].end < one.end:
                open_.pop()
            one.parent = open_[-1] if open_ else -1
            open_.append(place)

    def _group(self) -> None:
        """Give every outermost GroupEnd the calls since its GroupStart, and API Groups theirs."""
        depth, waiting = 0, list[int]()
        for place, one in enumerate(self.ranges):
            if one.name == GROUP_START:
                depth += 1
                waiting = waiting if depth > 1 else []
            elif one.name == GROUP_END:
                depth -= 1
                if depth <= 0:
                    one.calls, waiting, depth = tuple(waiting), [], 0
            elif one.name in CALLS:
                if depth:
                    waiting.append(place)
                self._tell_group(place)

    def _tell_group(self, call: int) -> None:
        parent = self.ranges[call].parent
        while parent >= 0:
            if self.ranges[parent].name == API_GROUP:
                self.ranges[parent].calls += (call,)
                return
            parent = self.ranges[parent].parent


@dataclass(frozen=True)
class Calls:
    """NCCL's calls by (pid, tid), and what the creation of each (pid, communicator) was given."""

    threads: dict[tuple[int, int], CallingThread]
    communicators: dict[tuple[int, str], Payload]


def nccl_calls(export: NsysExport) -> Calls:
    """All NCCL ranges of an export; nothing where it has none."""
    ranges: dict[tuple[int, int], list[Range]] = {}
    communicators: dict[tuple[int, str], Payload] = {}
    for pid, tid, one in _ranges(export):
        if one.name.startswith("CommInit"):
            if one.payload.communicator and one.payload.ranks != UNKNOWN:
                communicators[pid, one.payload.communicator] = one.payload
        else:
            ranges.setdefault((pid, tid), []).append(one)
    return Calls({place: CallingThread(own) for place, own in ranges.items()}, communicators)


def _ranges(export: NsysExport) -> Iterator[tuple[int, int, Range]]:
    table = events(export)
    if table is None:
        return
    registered = _registered(export)
    named: list[sa.ColumnElement[bool]] = []
    if "textId" in table.c:
        named.append(table.c.textId.in_(registered))
    if "text" in table.c:
        named += [table.c.text.in_(RANGE_TEXTS), table.c.text.startswith("ncclComm")]
    if not named:
        return
    query = sa.select(
        *(number(table, name, SPAN[name], 0) for name in SPAN),
        number(table, "pid", process_of("globalTid"), 0),
        number(table, "tid", thread_of("globalTid"), 0),
        number(table, "text_id", column("textId"), 0),
        number(table, "domain", column("domainId"), 0),
        number(table, "kind", column("eventType"), 0),
        text(table, "text"),
        text(table, "jsonText"),
        _hexadecimal(table, "binaryData"),
    ).where(table.c.eventType.in_((*_PUSH_POP, _MARK)), sa.or_(*named))
    names, payloads = _Names(export), _Payloads(export)
    raw = Frame(export.file.arrays(query, split=table))
    texts, jsons, blobs = (raw.labels(name) for name in ("text", "jsonText", "binaryData"))
    numbers = (
        raw.ints(name).tolist() for name in (*SPAN, "pid", "tid", "text_id", "domain", "kind")
    )
    codes = zip(texts.codes.tolist(), jsons.codes.tolist(), blobs.codes.tolist(), strict=True)
    for start, end, pid, tid, text_id, domain, kind, (said, json, blob) in zip(
        *numbers, codes, strict=True
    ):
        name = names.of(texts.values[said] or registered.get(text_id, ""), (pid, domain))
        if name is None or (kind == _MARK and not name.startswith("CommInit")):
            continue
        payload = payloads.of(jsons.values[json], blobs.values[blob])
        if payload is None and name not in LAUNCHES:
            continue
        last = _FOREVER if end == NO_END else end
        yield pid, tid, Range(start, last, name, payload or NO_PAYLOAD)


def _hexadecimal(table: sa.TableClause, name: str) -> sa.ColumnElement[Any]:
    """A column of raw bytes as hexadecimal digits, which no decoding can damage."""
    if name not in table.c:
        return NO_BYTES.label(name)
    digits = sa.func.hex(sa.cast(table.c[name], sa.LargeBinary))
    return sa.cast(digits, sa.LargeBinary).label(name)


class _Names:
    """Which call a range names, asked once for each text and domain."""

    def __init__(self, export: NsysExport) -> None:
        self._domains = export.once(domain_names)
        self._known: dict[tuple[str, tuple[int, int]], str | None] = {}

    def of(self, text: str, domain: tuple[int, int]) -> str | None:
        """The call; a domain without a name of its own may be NCCL's."""
        if (text, domain) not in self._known:
            name = self._domains.get(domain, NCCL_DOMAIN if domain[1] else "")
            self._known[text, domain] = call_of(text, in_domain=name == NCCL_DOMAIN)
        return self._known[text, domain]


def _registered(export: NsysExport) -> dict[int, str]:
    """The registered strings that name NCCL ranges, by id."""
    wanted = {*RANGE_TEXTS, "CommInit", "CommInitRank", "CommInitRankConfig"}
    return export.strings.starting("ncclComm") | export.strings.named(wanted)


class _Payloads:
    """Payloads decoded once each: captures repeat a few of them thousands of times."""

    def __init__(self, export: NsysExport) -> None:
        self._export = export
        self._layouts: BlobLayouts | None = None
        self._known: dict[tuple[str, str], Payload | None] = {}

    def of(self, json: str, blob: str) -> Payload | None:
        """The payload; None when it is of an operation on the GPU, not of a call on the host."""
        if (json, blob) not in self._known:
            fields = json_fields(json)
            if not fields and blob:
                self._layouts = self._layouts or BlobLayouts(self._export)
                fields = self._layouts.fields(bytes.fromhex(blob))
            on_gpu = "operationId" in fields or "channelId" in fields
            self._known[json, blob] = None if on_gpu else Payload.of(fields)
        return self._known[json, blob]
