"""GPU metrics over stretches of time: how many samples lie in them, and what they say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.intervals import Spans
from nsightpy.frames import Frame


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """The samples of one metric of one GPU inside a window, in the metric's unit."""

    gpu_id: int
    metric: str
    samples: int
    total: int
    minimum: int
    maximum: int

    @property
    def mean(self) -> float | None:
        """The mean of the samples: that of the time, as they are taken at a fixed rate."""
        return self.total / self.samples if self.samples else None


def summaries(samples: Frame, windows: dict[int, Spans]) -> Iterator[MetricSummary]:
    """Every metric of each GPU inside its window, by GPU and name; none without samples there.

    samples: the gpu_metrics frame. A sample lies in a span when start <= time < end.
    """
    names = samples.labels("metric").merged()
    for gpu, window in sorted(windows.items()):
        mine = (samples.ints("gpu_id") == gpu) & window.holds(samples.ints("time_ns"))
        chosen, values = names.codes[mine], samples.ints("value")[mine]
        for code in np.unique(chosen).tolist():
            sampled = values[chosen == code]
            yield MetricSummary(
                gpu,
                names.values[code],
                len(sampled),
                int(sampled.sum()),
                int(sampled.min()),
                int(sampled.max()),
            )
