"""Counters of a timeline: live memory and sampled GPU metrics of each process and device."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from nsightpy.analysis.memory.allocations import usages
from nsightpy.frames import Ints
from nsightpy.query.device_time import memory_events
from nsightpy.query.sampled_metrics import SHARES, gpus_of
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.results.tracks import Counter

BYTES, PER_CENT = "bytes", "%"


def counters_of(report: SystemReport, scope: Scope) -> list[tuple[int, int, Counter]]:
    """The counters of a report with their pid and device, in its own time.

    GPU metrics are of a GPU, whoever used it: they are given once, to the first process on it.
    """
    return [*_memory(report, scope), *_metrics(report)]


def _memory(report: SystemReport, scope: Scope) -> Iterator[tuple[int, int, Counter]]:
    """Live bytes of each kind of memory; the definition is that of memory-usage."""
    if not report.has_memory_usage:
        return
    for pid, device, memory, _, used in usages(memory_events(report, scope)):
        label = f"{memory} memory, live".lstrip()
        yield pid, device, Counter(label, BYTES, *_changes(used.times, used.live))


def _metrics(report: SystemReport) -> Iterator[tuple[int, int, Counter]]:
    """The sampled metrics of `breakdown --bins`, in % of their peak, each sample until the next."""
    samples = report.frame("gpu_metrics")
    if not samples.rows:
        return
    owners = _owners(report)
    names = samples.labels("metric").merged()
    for code, name in enumerate(names.values):
        if not any(re.fullmatch(pattern, name) for pattern in SHARES.values()):
            continue
        for gpu in np.unique(samples.ints("gpu_id")[names.codes == code]).tolist():
            mine = np.flatnonzero((names.codes == code) & (samples.ints("gpu_id") == gpu))
            if gpu not in owners or len(mine) < 2:
                continue
            times, values = samples.ints("time_ns")[mine], samples.ints("value")[mine]
            order = np.argsort(times, kind="stable")
            pause = int(np.median(np.diff(times[order])))
            times = np.append(times[order], times[order[-1]] + pause)
            values = np.append(values[order], 0)
            label = name.removesuffix(" [Throughput %]")
            yield *owners[gpu], Counter(label, PER_CENT, *_changes(times, values))


def _owners(report: SystemReport) -> dict[int, tuple[int, int]]:
    """The first process and CUDA device that used each GPU of the host."""
    owners: dict[int, tuple[int, int]] = {}
    for place, gpu in sorted(gpus_of(report).items()):
        owners.setdefault(gpu, place)
    return owners


def _changes(times: Ints, values: Ints) -> tuple[Ints, Ints]:
    """The moments at which a quantity changes."""
    keep = np.append(True, values[1:] != values[:-1]) if len(values) else np.empty(0, dtype=bool)
    return times[keep], values[keep]
