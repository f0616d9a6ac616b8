"""From the true clock to what a report says: session start, errors and drift."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Clock:
    """One rank's clocks; times ns, drift in parts per billion counted from session start.

    A report shows UTC as utcEpochNs + session time, so a GPU event's UTC is wrong by
    `offset_ns` + drift x (time since session start).
    """

    start: int
    utc_error_ns: int = 0
    drift_ppb: int = 0
    gpu_error_ns: int = 0

    @property
    def utc_epoch_ns(self) -> int:
        """What the report gives as UTC at session time 0."""
        return self.start + self.utc_error_ns

    @property
    def offset_ns(self) -> int:
        """Error of a GPU event's UTC at session start."""
        return self.utc_error_ns + self.gpu_error_ns

    def host(self, times: Sequence[int]) -> Times:
        """Session times of host events."""
        since = np.asarray(times, dtype=np.int64) - self.start
        return since + since * self.drift_ppb // 10**9

    def gpu(self, times: Sequence[int]) -> Times:
        """Session times of GPU events."""
        return self.host(times) + self.gpu_error_ns
