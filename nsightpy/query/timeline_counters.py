"""Counters of a timeline: live memory and sampled GPU metrics of each process and device."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.memory.allocations import usage
from nsightpy.frames import Frame, Ints
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
    whole = report.frame("memory_usage")
    whole = whole.take(np.argsort(whole.ints("start_ns"), kind="stable"))
    placed = Frame({**whole, "end_ns": whole["start_ns"]})
    everything = replace(scope, from_ns=None, to_ns=None, nvtx=None, iteration=None)
    events = everything.within(report, placed)
    groups = group_by(events, ("pid", "device", "memory"))
    for code, (pid, device, memory) in enumerate(groups.keys):
        mine = np.flatnonzero(groups.codes == code)
        if not isinstance(pid, int) or not isinstance(device, int) or not len(mine):
            continue
        used = usage(events.take(mine))
        label = f"{memory} memory, live".lstrip()
        yield pid, device, Counter(label, BYTES, *_changes(used.times, used.live))


def _metrics(report: SystemReport) -> Iterator[tuple[int, int, Counter]]:
    """The metrics of `utilization`, in % of their peak, each sample until the next."""
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
    behind = gpus_of(report)
    owners: dict[int, tuple[int, int]] = {}
    for pid, device in sorted(report.extent.places):
        gpu = behind.get((pid, device), behind.get((0, device), device))
        owners.setdefault(gpu, (pid, device))
    return owners


def _changes(times: Ints, values: Ints) -> tuple[Ints, Ints]:
    """The moments at which a quantity changes."""
    keep = np.append(True, values[1:] != values[:-1]) if len(values) else np.empty(0, dtype=bool)
    return times[keep], values[keep]
