"""Which part of the reports a question is about: ranks, devices, a stretch of time."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from nsightpy.errors import UsageError
from nsightpy.frames import Frame
from nsightpy.reports import NsysReport
from nsightpy.units import parse_time_ns

_PART = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?", re.ASCII)
MOST_NUMBERS = 1_000_000


@dataclass(frozen=True, slots=True)
class Scope:
    """Ranks and devices (None: all) and a stretch of the reports' own time, in ns."""

    ranks: frozenset[int] | None = None
    devices: frozenset[int] | None = None
    from_ns: int | None = None
    to_ns: int | None = None

    @classmethod
    def of(
        cls,
        rank: str | int | None = None,
        device: str | int | None = None,
        from_time: str | int | None = None,
        to_time: str | int | None = None,
    ) -> Scope:
        """A scope from what users write: "0,2-5", "1.5s". Raises UsageError."""
        scope = cls(
            numbers(rank, "rank"), numbers(device, "device"), _time(from_time), _time(to_time)
        )
        if scope.from_ns is not None and scope.to_ns is not None and scope.to_ns <= scope.from_ns:
            raise UsageError("--to must be later than --from")
        return scope

    @property
    def columns(self) -> tuple[str, ...]:
        """The frame columns that narrowing needs beside start_ns and end_ns."""
        wanted = ("pid",) if self.ranks is not None else ()
        return (*wanted, "device") if self.devices is not None else wanted

    @property
    def needs_ranks(self) -> bool:
        return self.ranks is not None

    def narrow(self, report: NsysReport, frame: Frame) -> Frame:
        """The rows inside the scope; whoever overlaps the stretch of time counts whole."""
        keep = np.ones(frame.rows, dtype=np.bool_)
        if self.ranks is not None:
            pids = [pid for pid in report.pids if report.rank_of(pid)[0] in self.ranks]
            keep &= np.isin(frame.ints("pid"), pids)
        if self.devices is not None and "device" in frame:
            keep &= np.isin(frame.ints("device"), sorted(self.devices))
        if self.from_ns is not None:
            keep &= frame.ints("end_ns") > self.from_ns
        if self.to_ns is not None:
            keep &= frame.ints("start_ns") < self.to_ns
        return frame if keep.all() else frame.take(keep)

    @property
    def notes(self) -> list[str]:
        if self.from_ns is None and self.to_ns is None:
            return []
        return ["Events that overlap the wanted stretch of time are counted whole."]


def numbers(spec: str | int | None, what: str) -> frozenset[int] | None:
    """The numbers of a list with ranges, "0,2-5"; None for all. Raises UsageError."""
    if spec is None or isinstance(spec, int):
        return None if spec is None else frozenset([spec])
    found: set[int] = set()
    for part in spec.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise UsageError(f"{spec!r} names no {what}s: write numbers and ranges, as 0,2-5")
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < MOST_NUMBERS:
            raise UsageError(
                f"{part.strip()!r} names no {what}s: a range goes up, to {MOST_NUMBERS - 1} at most"
            )
        found.update(range(first, last + 1))
    return frozenset(found)


def _time(value: str | int | None) -> int | None:
    return value if value is None or isinstance(value, int) else parse_time_ns(value)
