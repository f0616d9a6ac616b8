"""Summaries of unified memory: um_sum, um_total_sum and um_cpu_page_faults_sum."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.ranking import MEGA, durations
from nsightpy.analysis.tally import Key, Statistics, Tally, tally
from nsightpy.commands.stats.summary import Shown, Summary, Tallies
from nsightpy.frames import Frame, Ints, Labels
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Row
from nsightpy.units import round_half_up

_COPIES = ("start_ns", "end_ns", "pid", "device", "correlation_id", "operation", "bytes", "address")
_FAULTS = ("start_ns", "end_ns", "pid", "device", "address", "faults", "instruction")
_MIGRATIONS = {
    "HtoD": "[CUDA memcpy Unified Host-to-Device]",
    "DtoH": "[CUDA memcpy Unified Device-to-Host]",
}
_SIDES = ("CPU", "GPU")
RECORDS = "--cuda-um-cpu-page-faults=true --cuda-um-gpu-page-faults=true"


def _by_place(report: SystemReport, scope: Scope, _: str, *, by: tuple[str, ...] = ()) -> Tallies:
    """Bytes moved in each direction, faults of each side, durations of what was moved."""
    copies = _of_report(report, scope, "memory_operations", _COPIES)
    moved = [
        copies.take(copies.labels("operation").equals([name])) for name in _MIGRATIONS.values()
    ]
    faults = _of_report(report, scope, "page_faults", _FAULTS)
    on_gpu = faults.ints("device") >= 0
    sides = [faults.take(~on_gpu), faults.take(on_gpu)]
    both = Frame.concatenate(moved)
    placed = [part.take(part.ints("address") != 0) for part in (both, faults)]
    return (
        *(_sizes(part, by) for part in moved),
        *(_tally(part, by, part.ints("faults")) for part in sides),
        _tally(both, by, durations(both)),
        *(_tally(part, (), part.ints("address")) for part in placed),
    )


def _of_report(report: SystemReport, scope: Scope, name: str, columns: tuple[str, ...]) -> Frame:
    """A frame in scope, with the report: addresses and numbers of processes are of one report."""
    frame = scope.narrow(report, report.frame(name, columns))
    return Frame({**frame, "report": Labels.constant(str(report.path), frame.rows)})


def _sizes(moved: Frame, by: tuple[str, ...]) -> Tally:
    """The sizes that are known; no group where there are none."""
    known = moved.take(moved.ints("bytes") >= 0)
    if moved.rows and not known.rows:
        return tally(np.zeros(0, dtype=np.int32), known.ints("bytes"), ())
    return _tally(known, by, known.ints("bytes"))


def _tally(frame: Frame, by: tuple[str, ...], values: Ints) -> Tally:
    if not by:
        return tally(np.zeros(frame.rows, dtype=np.int32), values, ((),))
    groups = group_by(frame, by)
    return tally(groups.codes, values, groups.keys)


def _pages_shown(parts: Sequence[Statistics]) -> Shown:
    """Pages by what was moved of them, then by faults, then by address."""
    totals = [_totals(part) for part in parts[:5]]
    rows: list[Row] = []
    every = set[Key]().union(*totals)
    figures = {key: [part.get(key) for part in totals] for key in every}
    moved = {key: (sums[0] or 0) + (sums[1] or 0) for key, sums in figures.items()}
    for key in sorted(every, key=lambda key: (-moved[key], *key)):
        *sizes, at_cpu, at_gpu, length = figures[key]
        rate = None
        if length and any(size is not None for size in sizes):
            rate = round_half_up(moved[key] * 1e9 / length / MEGA, 3)
        rows.append((_hex(key[0]), *map(_megabytes, sizes), at_cpu, at_gpu, rate, key[1]))
    fields = (
        Field("Virtual Address", "text"),
        *(Field(f"{way} Migration Size (MB)", "MB", 3) for way in _MIGRATIONS),
        *(Field(f"{side} Page Faults") for side in _SIDES),
        Field("Migration Throughput (MB/s)", "MB/s", 3),
        Field("PID", "id"),
    )
    return fields, rows


def _total_shown(parts: Sequence[Statistics]) -> Shown:
    fields = (
        *(Field(f"Total {way} Migration Size (MB)", "MB", 3) for way in _MIGRATIONS),
        # in NVIDIA's words
        *(Field(name) for name in ("Total CPU Page Faults", "Total GPU PageFaults")),
        *(Field(f"{which} Virtual Address", "text") for which in ("Minimum", "Maximum")),
    )
    *sizes, at_cpu, at_gpu, _ = (_totals(part).get(()) for part in parts[:5])
    ends = [part for part in parts[5:] if part.keys]
    if not ends:
        return fields, []
    low = min(int(part.minimum[0]) for part in ends)
    high = max(int(part.maximum[0]) for part in ends)
    return fields, [(*map(_megabytes, sizes), at_cpu, at_gpu, _hex(low), _hex(high))]


def _totals(part: Statistics) -> dict[Key, int]:
    return dict(zip(part.keys, part.total.tolist(), strict=True))


def _megabytes(size: int | None) -> float | None:
    return None if size is None else round_half_up(size / MEGA, 3)


def _hex(address: int | str | None) -> str | None:
    """An address as nsys writes it, None where it is not known; above 2^63 they are negative."""
    return f"0x{int(address) & 2**64 - 1:X}" if address else None


def _instructions(report: SystemReport, scope: Scope, _: str) -> Tallies:
    faults = scope.narrow(report, report.frame("page_faults", _FAULTS))
    mine = faults.take(faults.ints("device") < 0)
    return (_tally(mine, ("instruction",), mine.ints("faults")),)


def _instructions_shown(parts: Sequence[Statistics]) -> Shown:
    (statistics,) = parts
    rows: list[Row] = [
        (int(statistics.total[g]), _hex(statistics.keys[g][0])) for g in statistics.by_total()
    ]
    return (Field("CPU Page Faults"), Field("CPU Instruction Address", "text")), rows


_PAGES = partial(_by_place, by=("address", "pid", "report"))
SUMMARIES = {
    "um_sum": Summary("Unified memory by page.", _PAGES, _pages_shown, RECORDS, tallies=7),
    "um_total_sum": Summary(
        "Migrations of unified memory and page faults.", _by_place, _total_shown, RECORDS, tallies=7
    ),
    "um_cpu_page_faults_sum": Summary(
        "Page faults of processors by instruction.",
        _instructions,
        _instructions_shown,
        "--cuda-um-cpu-page-faults=true",
    ),
}
