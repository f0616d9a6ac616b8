"""Skips on real captures, against launches counted with SQL of their own, in order of the calls."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nsightpy.commands.select.command import select
from nsightpy.ncu_command import Run
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


def counted(run: Run, pid: int, every: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """The launches of a process that ncu profiles, when it counts those whose name matches."""
    wanted = run.kernels.expression()
    pattern = re.compile(wanted.removeprefix("regex:"))
    place = BASES[run.kernels.base]
    mine = [
        one
        for one in every
        if one[0] == pid
        and (
            pattern.search(str(one[place])) if wanted.startswith("regex:") else one[place] == wanted
        )
    ]
    return mine[run.skip : run.skip + run.count]


@pytest.mark.parametrize("name", CASES)
def test_every_way_to_name_a_kernel_finds_its_launch(name: str) -> None:
    plan = select(NSYS / name, coverage=0.95)
    every = launches(NSYS / name)
    assert len(plan.runs) > 3
    for planned in plan.runs:
        variant, duration = planned.expected[0]
        shape = ["x".join(map(str, size)) for size in (variant.grid, variant.block)]
        for run in (planned.run, *planned.fallbacks):
            (hit,) = counted(run, planned.unit.pid, every)
            assert [hit[1], *hit[5:]] == [duration, *shape], run


def test_one_stretch_holds_one_of_each() -> None:
    """A single run on the real job of two processes: skip and count over all names together."""
    plan = select(NSYS / DDP, top=3, one_run=True)
    (planned,) = plan.runs
    hits = counted(planned.run, planned.unit.pid, launches(NSYS / DDP))
    for variant, duration in planned.expected:
        shape = ["x".join(map(str, size)) for size in (variant.grid, variant.block)]
        assert [duration, *shape] in [[hit[1], *hit[5:]] for hit in hits]
