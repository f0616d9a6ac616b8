"""Sums of unified memory: um_sum, um_total_sum and um_cpu_page_faults_sum."""

import numpy as np

from nsightpy.analysis.ranking import MEGA, Made, Ranking, durations
from nsightpy.commands.stats.reports import Reports, sum_of
from nsightpy.frames import Frame, Ints, Labels, constant
from nsightpy.query import Scope, SystemReport
from nsightpy.results import Value
from nsightpy.units import round_half_up

_COPIES = ("pid", "device", "correlation_id", "operation", "bytes", "address")
_FAULTS = ("pid", "device", "address", "faults", "instruction")
_MIGRATIONS = {
    "HtoD": "[CUDA memcpy Unified Host-to-Device]",
    "DtoH": "[CUDA memcpy Unified Device-to-Host]",
}
_SIDES = ("CPU", "GPU")
_MEASURES = ("moved", "length", *_MIGRATIONS, *_SIDES)
_CPU = "--cuda-um-cpu-page-faults=true"


def _pages(report: SystemReport, scope: Scope, _: str) -> Frame:
    """Migrations and page faults by address; what a row is not about is -1.

    HtoD, DtoH: bytes that moved so; moved: either; length: how long that took; CPU, GPU: faults of
    that side; placed: the address, where it is known.
    """
    copies = scope.read(report, "memory_operations", _COPIES)
    copies = copies.take(copies.labels("operation").equals(tuple(_MIGRATIONS.values())))
    faults = scope.read(report, "page_faults", _FAULTS)

    def part(frame: Frame, **measures: Ints) -> Frame:
        unknown = dict.fromkeys(_MEASURES, constant(-1, frame.rows))
        return Frame({**frame.select(("address", "pid")), **unknown, **measures})

    operation, sizes = copies.labels("operation"), copies.ints("bytes")
    ways = {way: np.where(operation.equals([n]), sizes, -1) for way, n in _MIGRATIONS.items()}
    on_gpu, count = faults.ints("device") >= 0, faults.ints("faults")
    sides = {"CPU": np.where(on_gpu, -1, count), "GPU": np.where(on_gpu, count, -1)}
    migrated = part(copies, moved=np.maximum(sizes, 0), length=durations(copies), **ways)
    both = Frame.concatenate([migrated, part(faults, moved=constant(0, faults.rows), **sides)])
    address = both.ints("address")
    placed = np.where(address != 0, address, -1)
    # addresses and numbers of processes are of one report
    return Frame({**both, "placed": placed, "report": Labels.constant(str(report.path), both.rows)})


def _instructions(report: SystemReport, scope: Scope, _: str) -> Frame:
    faults = scope.read(report, "page_faults", _FAULTS)
    return faults.take(faults.ints("device") < 0)


def _rate(ranking: Ranking) -> list[Value]:
    """MB/s of migrations, where a size is known."""
    totals = [ranking.values(f"total of {name}") for name in ("moved", "length", *_MIGRATIONS)]
    return [
        round_half_up(moved * 1e9 / length / MEGA, 3)
        if moved is not None and length and sizes != [None, None]
        else None
        for moved, length, *sizes in zip(*totals, strict=True)
    ]


def _address(source: str) -> Made:
    """Addresses as nsys writes them, None where not known; above 2^63 they are negative."""
    return lambda ranking: [f"0x{v & 2**64 - 1:X}" if v else None for v in ranking.values(source)]


_BOTH = f"{_CPU} --cuda-um-gpu-page-faults=true"
REPORTS: Reports = {
    "um_sum": sum_of(
        _pages,
        ("address", "pid", "report"),
        "Virtual Address, HtoD Migration Size (MB)=total of HtoD, "
        "DtoH Migration Size (MB)=total of DtoH, CPU Page Faults=total of CPU, "
        "GPU Page Faults=total of GPU, Migration Throughput (MB/s), PID=pid",
        {"Virtual Address": _address("address"), "Migration Throughput (MB/s)": _rate},
        records=_BOTH,
        measures=_MEASURES,
    ),
    "um_total_sum": sum_of(
        _pages,
        (),
        "Total HtoD Migration Size (MB)=total of HtoD, "
        "Total DtoH Migration Size (MB)=total of DtoH, Total CPU Page Faults=total of CPU, "
        "Total GPU PageFaults=total of GPU, Minimum Virtual Address, Maximum Virtual Address",
        {
            "Minimum Virtual Address": _address("minimum of placed"),
            "Maximum Virtual Address": _address("maximum of placed"),
        },
        records=_BOTH,
        measures=("placed", *_MIGRATIONS, *_SIDES),
    ),
    "um_cpu_page_faults_sum": sum_of(
        _instructions,
        ("instruction",),
        "CPU Page Faults=total of faults, CPU Instruction Address",
        {"CPU Instruction Address": _address("instruction")},
        records=_CPU,
        measures=("faults",),
    ),
}
