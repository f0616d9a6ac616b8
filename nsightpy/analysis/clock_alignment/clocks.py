"""What reports say of their own clocks: level 0 of the alignment.

One session has one clock; reports of one host and boot share its system clock; else the wall
clock (UTC) is all there is, wrong by milliseconds between hosts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.collectives.log import Codes
from nsightpy.analysis.collectives.thresholds import SAME_BOOT_NS
from nsightpy.frames import Ints

COLLECTIVES, MPI = "collectives", "MPI"
ONE_SESSION, SYSTEM_CLOCK, WALL_CLOCK, UNKNOWN = "one session", "system clock", "wall clock", "none"


@dataclass(frozen=True, slots=True)
class ClockFit:
    """How the times of one process of one report become times on the common clock.

    Positive `offset_ns`: this clock was ahead of the first rank's when the session began, beyond
    what level 0 corrects (`epoch_ns`: the UTC of the report's time 0). `drift_ppm` adds to it from
    `zero_ns` on, the session's start in the report's own time; None where the capture is too short
    for it, and the offset then is that of its middle. `residual_*` are percentiles of own end -
    median end over the `instances` collectives compared; None without any. A clock placed by MPI
    has no drift, `instances` counts operations, and the first and the last percentile are the ends
    of the interval that they leave, about the offset (at the middle of the calls).
    """

    report: str
    pid: int
    rank: int | None
    offset_ns: int = 0
    drift_ppm: float | None = None
    method: str = WALL_CLOCK
    instances: int = 0
    residual_p05_ns: float | None = None
    residual_p50_ns: float | None = None
    residual_p95_ns: float | None = None
    epoch_ns: int = 0
    zero_ns: int = 0

    def to_aligned(self, times: Ints) -> Ints:
        """Times of this report (ns) as ns of the common clock, UTC of the first rank's host."""
        moved: Ints = times + (self.epoch_ns - self.offset_ns)
        if self.drift_ppm is None:
            return moved
        moved -= np.rint((times - self.zero_ns) * (self.drift_ppm * 1e-6)).astype(np.int64)
        return moved


@dataclass(frozen=True, slots=True)
class Seen:
    """What collectives or MPI operations show of one clock: how many, percentiles of residuals,
    error (ns; infinite where they show nothing)."""

    instances: int = 0
    percentiles: tuple[float, float, float] | None = None
    error_ns: float = float("inf")


@dataclass(frozen=True, slots=True)
class Clock:
    """What one process of one report says about its clock; None where it does not say."""

    report: str
    pid: int
    rank: int | None = None
    host: str = ""
    utc_ns: int | None = None
    system_clock_ns: int | None = None
    shift_ns: int = 0
    session: str = ""

    @property
    def name(self) -> str:
        """How people call it: its rank, else its report and process."""
        return f"{self.report}:{self.pid}" if self.rank is None else f"rank {self.rank}"


def machines_of(clocks: Sequence[Clock]) -> list[str]:
    """The machine of each clock, whose clocks are microseconds apart: host and boot if known, else
    the host, else the session."""
    return [
        clock.host or clock.session or clock.report
        if boot is None
        else f"{clock.host} since {boot}"
        for clock, boot in zip(clocks, _boots(clocks), strict=True)
    ]


def sessions_of(clocks: Sequence[Clock]) -> Codes:
    """For each clock the first one of its session: they are one clock."""
    first: dict[tuple[object, ...], int] = {}
    keys = (
        (clock.session, clock.host, clock.utc_ns, clock.system_clock_ns)
        if clock.session
        else (clock.report,)
        for clock in clocks
    )
    sessions = [first.setdefault(key, place) for place, key in enumerate(keys)]
    return np.asarray(sessions, dtype=np.int32)


def level_zero(clocks: Sequence[Clock]) -> list[ClockFit]:
    """The fits that need no collectives: system clock within a host, wall clock between hosts."""
    boots = _boots(clocks)
    one_session = not sessions_of(clocks).any()
    fits = []
    for clock, boot in zip(clocks, boots, strict=True):
        zero = (clock.utc_ns or 0) if boot is None else boot + (clock.system_clock_ns or 0)
        method = WALL_CLOCK if clock.utc_ns is not None else UNKNOWN
        if boot is not None and (clock.host, boot) == (clocks[0].host, boots[0]):
            method = SYSTEM_CLOCK
        fits.append(
            ClockFit(
                clock.report,
                clock.pid,
                clock.rank,
                method=ONE_SESSION if one_session else method,
                epoch_ns=zero - clock.shift_ns,
                zero_ns=clock.shift_ns,
            )
        )
    return fits


def _boots(clocks: Sequence[Clock]) -> list[int | None]:
    """UTC minus system clock of each clock's host and boot; None where that cannot be known."""
    offsets = sorted(
        (clock.host, clock.utc_ns - clock.system_clock_ns, place)
        for place, clock in enumerate(clocks)
        if clock.host and clock.utc_ns is not None and clock.system_clock_ns is not None
    )
    groups: list[list[tuple[str, int, int]]] = []
    for host, offset, place in offsets:
        if not groups or groups[-1][0][0] != host or offset - groups[-1][0][1] > SAME_BOOT_NS:
            groups.append([])
        groups[-1].append((host, offset, place))
    boots = {place: group[len(group) // 2][1] for group in groups for *_, place in group}
    return [boots.get(place) for place in range(len(clocks))]
