"""Skips on real captures, against launches counted with SQL of their own, in order of the calls."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nsightpy.commands.select.command import select
from nsightpy.ncu_command import Run
from nsightpy.reports.opening import open_report
from tests.support.reports import DDP, NSYS, needs_reports

pytestmark = needs_reports
BASES = {"mangled": 2, "function": 3, "demangled": 4}
# Both processes of one report, several threads, several streams of one thread, one device of four.
CASES = (
    DDP,
    "mfu_2gpu_before_h100_2026.2.sqlite",
    "train_nvtx_a100_2026.3.sqlite",
    "memory_usage_windows_gtx1060_2022.1.sqlite",
    "cloverleaf_4gpu_a100_2024.5.sqlite",
)
QUERY = """
SELECT (k.globalPid >> 24) & 0xFFFFFF, k.end - k.start, m.value, s.value, d.value,
       k.gridX || 'x' || k.gridY || 'x' || k.gridZ, k.blockX || 'x' || k.blockY || 'x' || k.blockZ
FROM CUPTI_ACTIVITY_KIND_KERNEL k
LEFT JOIN (SELECT globalTid >> 24 AS process, correlationId, min(start) AS called
           FROM CUPTI_ACTIVITY_KIND_RUNTIME GROUP BY 1, 2) r
  ON r.correlationId = k.correlationId AND r.process = k.globalPid >> 24
LEFT JOIN StringIds m ON m.id = k.mangledName
LEFT JOIN StringIds s ON s.id = k.shortName
LEFT JOIN StringIds d ON d.id = k.demangledName
ORDER BY coalesce(r.called, k.correlationId), k.correlationId, k.start
"""


def launches(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        return connection.execute(QUERY).fetchall()


def counted(run: Run, pid: int, every: list[tuple[object, ...]]) -> tuple[object, ...]:
    """The launch of a process that ncu profiles, when it counts those whose name matches."""
    place = BASES[run.base]
    return [one for one in every if one[0] == pid and one[place] == run.name][run.skip]


@pytest.mark.parametrize("name", CASES)
def test_every_command_finds_its_launch(name: str) -> None:
    report = open_report(NSYS / name)
    plan = select(report, coverage=0.95)
    every = launches(NSYS / name)
    processes = {report.rank_of(pid)[0]: pid for pid in report.pids}
    assert len(plan.runs) > 3
    for run, row in zip(plan.runs, plan.records(), strict=True):
        hit = counted(run, processes[run.rank], every)
        assert [hit[1], *hit[5:]] == [row["representative_ns"], row["grid"], row["block"]], run
