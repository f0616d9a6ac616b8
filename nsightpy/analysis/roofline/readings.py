"""The metrics of one launch, by name; what was not measured is None."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from nsightpy.frames import Frame

NS_PER_S = 1e9


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

    def product(self, *names: str) -> float | None:
        """The product of metrics that were all measured."""
        values = [self.numbers.get(name) for name in names]
        return math.prod(v for v in values if v is not None) if None not in values else None

    def total(self, *names: str) -> float | None:
        """The sum of metrics that were all measured."""
        values = [self.numbers.get(name) for name in names]
        return sum(v for v in values if v is not None) if None not in values else None

    def rate(self, amount: float | None) -> float | None:
        """An amount per second of the launch's duration."""
        if amount is None or not self.duration_ns:
            return None
        return amount / self.duration_ns * NS_PER_S

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


def readings(launches: Frame, metrics: Frame) -> Iterator[Readings]:
    """The readings of each launch, in the order of the launches."""
    numbers: dict[int, dict[str, float]] = {}
    texts: dict[int, dict[str, str]] = {}
    for launch, name, value, text in metrics.tuples("launch", "metric", "value", "text"):
        if math.isnan(value):
            texts.setdefault(launch, {})[name] = text
        else:
            numbers.setdefault(launch, {})[name] = value
    about = ("launch", "duration_ns", "compute_major", "compute_minor")
    for launch, duration, *capability in launches.tuples(*about):
        yield Readings(
            numbers.get(launch, {}),
            texts.get(launch, {}),
            duration if duration > 0 else None,
            (capability[0], capability[1]),
        )
