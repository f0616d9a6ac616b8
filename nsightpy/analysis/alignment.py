"""Putting the clocks of many reports on one time line.

Level 0 is what the reports say themselves: one session, one host's system clock, or the wall
clock (UTC). Level 1 is what their collectives say: ranks leave a synchronising collective
together, so the ends tell how far each clock is off. A fit carries its own error bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.frames import Ints

COLLECTIVES = "collectives"
ONE_SESSION, SYSTEM_CLOCK, WALL_CLOCK, UNKNOWN = "one session", "system clock", "wall clock", "none"
# A host's reports whose wall and system clocks disagree by more belong to different boots.
SAME_BOOT_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ClockFit:
    """How the times of one process of one report become times on the common clock.

    Positive `offset_ns`: this clock was ahead of the first rank's when the session began, beyond
    what level 0 corrects (`epoch_ns`: the UTC of the report's time 0). `drift_ppm` adds to it from
    `zero_ns` on, the session's start in the report's own time. `residual_*` are percentiles of
    own end - median end over the `instances` collectives compared; None without any.
    """

    report: str
    pid: int
    rank: int | None
    offset_ns: int = 0
    drift_ppm: float = 0.0
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
        if not self.drift_ppm:
            return moved
        moved -= np.rint((times - self.zero_ns) * (self.drift_ppm * 1e-6)).astype(np.int64)
        return moved


@dataclass(frozen=True, slots=True)
class Clock:
    """What one process of one report says about its clock; None where it does not tell."""

    report: str
    pid: int
    rank: int | None = None
    host: str = ""
    utc_ns: int | None = None
    system_clock_ns: int | None = None
    shift_ns: int = 0
    session: str = ""


def level_zero(clocks: Sequence[Clock]) -> list[ClockFit]:
    """The fits that need no collectives: system clock within a host, wall clock between hosts."""
    offsets = _boot_offsets(clocks)
    fits = []
    for clock, boot in zip(clocks, offsets, strict=True):
        if boot is not None and clock.system_clock_ns is not None:
            zero, method = boot + clock.system_clock_ns, SYSTEM_CLOCK
        else:
            zero, method = clock.utc_ns or 0, WALL_CLOCK if clock.utc_ns is not None else UNKNOWN
        if len({(one.session or one.report) for one in clocks}) == 1:
            method = ONE_SESSION
        fits.append(
            ClockFit(
                clock.report,
                clock.pid,
                clock.rank,
                method=method,
                epoch_ns=zero - clock.shift_ns,
                zero_ns=clock.shift_ns,
            )
        )
    return fits


def _boot_offsets(clocks: Sequence[Clock]) -> list[int | None]:
    """UTC minus system clock of each clock's host and boot; None where that cannot be known."""
    boots: dict[str, list[tuple[int, int]]] = {}
    for place, clock in enumerate(clocks):
        if clock.host and clock.utc_ns is not None and clock.system_clock_ns is not None:
            boots.setdefault(clock.host, []).append((clock.utc_ns - clock.system_clock_ns, place))
    offsets: list[int | None] = [None] * len(clocks)
    for found in boots.values():
        boot: list[tuple[int, int]] = []
        for offset, place in [*sorted(found), (2**63, -1)]:
            if boot and offset - boot[0][0] > SAME_BOOT_NS:
                shared = boot[len(boot) // 2][0]
                for _, member in boot:
                    offsets[member] = shared
                boot = []
            boot.append((offset, place))
    return offsets
