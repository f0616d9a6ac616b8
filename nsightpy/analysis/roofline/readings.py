"""The metrics of one launch by name, and what is known of its GPU; what was not measured is None.

What a report does not say is known by compute capability, as measured on V100, T4, A100, A40, H100,
GH200 and GB200 counters; FP64 lanes of 8.9 and 12.x were never measured and are not guessed.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from nsightpy.frames import Frame

NS_PER_S = 1e9
# Thread instructions per SM and cycle.
_FP32_LANES = {
    **dict.fromkeys([(7, 0), (7, 2), (7, 5), (8, 0)], 64),
    **dict.fromkeys([(8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (10, 3), (11, 0)], 128),
    **dict.fromkeys([(12, 0), (12, 1)], 128),
}
_FP64_LANES = {(7, 0): 32, (8, 0): 32, (9, 0): 64, (10, 0): 64, (7, 5): 2, (8, 6): 2}
LANES = {"fp32": _FP32_LANES, "fp64": _FP64_LANES}
# Integrated memory: no DRAM counters, and so no DRAM roofline.
_INTEGRATED = ((8, 7), (11, 0), (12, 1))
# Where a tensor instruction is 512 operations.
VOLTA = ((7, 0), (7, 2))


@dataclass(frozen=True, slots=True)
class Rate:
    """FLOP/s of a precision or bytes/s of a memory level: achieved, at most, what to know of it."""

    of: str
    per_s: float
    peak_per_s: float | None
    remark: str = ""


@dataclass(frozen=True)
class Readings:
    """Numbers and texts of one launch by metric; duration in ns."""

    numbers: Mapping[str, float]
    texts: Mapping[str, str] = field(default_factory=dict)
    duration_ns: int | None = None
    capability: tuple[int, int] = (0, 0)

    def get(self, *names: str) -> float | None:
        """The first of these metrics that was measured."""
        return next((self.numbers[name] for name in names if name in self.numbers), None)

    def total(self, *names: str) -> float | None:
        """The sum of metrics that were all measured."""
        values = [self.numbers.get(name) for name in names]
        return sum(v for v in values if v is not None) if None not in values else None

    def rate(self, amount: float | None) -> float | None:
        """An amount per second of the launch's duration."""
        if amount is None or not self.duration_ns:
            return None
        return amount / self.duration_ns * NS_PER_S

    def per_second(self, metric: str, clock: float | None = None) -> float | None:
        """The rate of a counter: per cycle of this clock, else per second, else by its amount."""
        per_cycle = self.get(f"{metric}.per_cycle_elapsed")
        if per_cycle is not None and clock:
            return per_cycle * clock
        per_second = self.get(f"{metric}.per_second")
        return self.rate(self.get(metric)) if per_second is None else per_second

    @property
    def sm_hz(self) -> float | None:
        """The SM clock while profiling; never that of the GPC, which may differ."""
        measured = self.get(
            "sm__cycles_elapsed.avg.per_second", "smsp__cycles_elapsed.avg.per_second"
        )
        return measured or self.rate(self.get("sm__cycles_elapsed.avg"))

    @property
    def smsp_hz(self) -> float | None:
        return self.get("smsp__cycles_elapsed.avg.per_second") or self.sm_hz

    @property
    def sm_count(self) -> float | None:
        return self.get("device__attribute_multiprocessor_count", "launch__sm_count")

    @property
    def has_dram_roofline(self) -> bool:
        return self.capability not in _INTEGRATED

    @property
    def l1_writeback(self) -> str:
        """The counter of L1 read returns: what it counts changed with the generation."""
        if self.capability <= (7, 2):
            return "l1tex__lsu_writeback_active"
        suffix = "lg" if self.capability < (9, 0) else "lgds"
        return f"l1tex__lsu_writeback_active_mem_{suffix}"


def readings(launches: Frame, metrics: Frame) -> Iterator[tuple[int, Readings]]:
    """The number and the readings of each launch, in the order of the launches."""
    numbers: dict[int, dict[str, float]] = {}
    texts: dict[int, dict[str, str]] = {}
    for launch, name, value, text in metrics.tuples("launch", "metric", "value", "text"):
        if math.isnan(value):
            texts.setdefault(launch, {})[name] = text
        else:
            numbers.setdefault(launch, {})[name] = value
    about = ("launch", "duration_ns", "compute_major", "compute_minor")
    for launch, duration, *capability in launches.tuples(*about):
        known = duration if duration > 0 else None
        measured = numbers.get(launch, {}), texts.get(launch, {})
        yield launch, Readings(*measured, known, (capability[0], capability[1]))
