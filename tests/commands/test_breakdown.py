"""breakdown: parts that add up, truths of simulated jobs, waits of streams, what people see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulator import PRESETS, Export

import nsightpy
from nsightpy.analysis.intervals import Spans, spans_of, union
from nsightpy.commands.breakdown.command import CAUSES
from nsightpy.results import Table, Value, number
from tests.support.reports import ROOT, ask

JOB = ROOT / "sample_reports" / "training_4rank"


def caused(table: Table) -> dict[str, int]:
    """Idle time by cause over all devices, ns."""
    records = table.records()
    sums = {cause.name: sum(int(number(row[cause.name])) for row in records) for cause in CAUSES}
    return {name: total for name, total in sums.items() if total}


@pytest.mark.slow
def test_breakdown_and_gaps_say_the_same() -> None:
    by_cause = nsightpy.gaps(JOB, by="cause")
    said = {str(row["cause"]): row["total_ns"] for row in by_cause.records()}
    assert {f"{cause.replace('-', '_')}_ns": total for cause, total in said.items()} == caused(
        nsightpy.breakdown(JOB)
    )
    places = nsightpy.gaps(JOB, by="cause,place,stream,before,call,range")
    assert sum(map(number, places.column("total_ns"))) == sum(said.values())
    assert len({row[:6] for row in places.rows}) == len(places)


def test_a_report_alone_does_not_know_who_waited() -> None:
    (alone,) = nsightpy.breakdown(sorted(JOB.glob("*.sqlite"))[0]).records()
    assert alone["exposed_wait_ns"] is alone["exposed_transfer_ns"] is None


def test_people_see_the_causes_that_matter() -> None:
    shown = ask("breakdown", JOB).everything.decode()
    assert "host-gap" in shown
    assert "allocation" not in shown
    assert "host wait" not in shown


@pytest.mark.parametrize("more", [{}, {"iteration": "steady"}, {"nvtx": "forward"}])
def test_parts_add_up_in_windows_with_holes_too(more: dict[str, Any]) -> None:
    for row in nsightpy.breakdown(JOB, **more).records():
        assert sum(number(row[cause.name]) for cause in CAUSES) == row["idle_ns"]
        parts = row["exposed_wait_ns"], row["exposed_transfer_ns"]
        assert sum(map(number, parts)) == row["exposed_communication_ns"]


def test_a_rank_alone_waited_as_long_as_among_all() -> None:
    every = nsightpy.breakdown(JOB).records()
    assert [nsightpy.breakdown(JOB, rank=rank).records()[0] for rank in range(4)] == every


def exposed(path: Path) -> Spans:
    """When NCCL's kernels of a report's one device ran with nothing beside them."""
    report = nsightpy.open_report(path)
    kernels = report.frame("kernels")
    communicates = kernels.labels("name").where(lambda name: name.startswith("nccl"))
    others = spans_of(kernels.take(~communicates)) | spans_of(report.frame("memory_operations"))
    return spans_of(kernels.take(communicates)) - others


def waits(truth: dict[str, Any], rank: int) -> Spans:
    """When a rank waited for others in collectives, in its report's time."""
    times = [
        (one["start_ns"][at], one["start_ns"][at] + one["wait_ns"][at])
        for one in truth["collectives"]
        for at, member in enumerate(one["ranks"])
        if member == rank
    ]
    begun, ended = np.asarray(times, dtype=np.int64).T
    return union(begun, ended)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ranks_2", "ranks_8", "pipeline_4"])
def test_waiting_for_late_ranks_is_told_from_moving_data(name: str, tmp_path: Path) -> None:
    _, truth = PRESETS[name].write(tmp_path)
    rows = {row["rank"]: row for row in nsightpy.breakdown(tmp_path).records()}
    for rank in truth["ranks"]:
        row, alone = rows[rank["rank"]], exposed(tmp_path / rank["report"])
        assert row["exposed_communication_ns"] == alone.total
        wanted = (alone & waits(truth, rank["rank"])).total
        assert row["exposed_wait_ns"] == pytest.approx(wanted, rel=0.01, abs=20_000)
        assert row["exposed_wait_ns"] + row["exposed_transfer_ns"] == alone.total


JOBS = ("small", "ranks_2", "pipeline_4", "one_report_2rank", "edges", "graph_nodes", "no_nvtx")


@pytest.mark.parametrize("name", JOBS)
def test_the_waits_of_streams_are_the_truth(name: str, tmp_path: Path) -> None:
    job = replace(PRESETS[name], graph_replays=2)
    paths, truth = job.write(tmp_path)
    rows = nsightpy.breakdown([str(path) for path in paths]).records()
    rows.sort(key=lambda row: (row["rank"] is None, row["rank"], row["device"]))
    ranks = truth["ranks"]
    assert isinstance(ranks, list)
    for row, rank in zip(rows, ranks, strict=True):
        assert {name: row[name] for name in rank["idle"]} == rank["idle"]


NAMES = ("host_wait_ns", "kernel_wait_ns", "other_wait_ns")
Build = Callable[[Export], None]


def waits_of_streams(path: Path, build: Build, **options: object) -> list[Value]:
    export = Export(path / "report.sqlite")
    build(export)
    (row,) = nsightpy.breakdown(str(export.write()), **options).records()
    return [row[name] for name in NAMES]


def launched_late(export: Export) -> None:
    export.kernel(100, 200, "a", launch=(50, 60))
    export.kernel(300, 400, "b", launch=(260, 270))


def launched_early(export: Export) -> None:
    export.kernel(100, 200, "a", launch=(50, 60))
    export.memcpy(210, 280, 1000, launch=(61, 70))
    export.kernel(290, 400, "b", launch=(71, 80))


def long_behind_an_early_launch(export: Export) -> None:
    export.kernel(100, 200, "a", launch=(50, 60))
    export.kernel(40_200, 40_300, "b", launch=(70, 80))


def inside_another(export: Export) -> None:
    # the second kernel ends inside the first: HTA would see a gap from 120 on
    export.kernel(0, 200, "a", launch=(-50, -40))
    export.kernel(110, 120, "b", launch=(-30, -20))
    export.kernel(250, 300, "c", launch=(210, 220))


def not_launched(export: Export) -> None:
    export.kernel(100, 200, "a", launch=(50, 60))
    export.kernel(230, 400, "b", correlation=77)


def launched_by_another_process(export: Export) -> None:
    one, two = export.process(1000), export.process(2000)
    export.kernel(100, 200, "a", process=one, correlation=1, launch=(50, 60))
    export.kernel(300, 400, "b", process=one, correlation=2, launch=(260, 270))
    export.api(5, 6, "cudaLaunchKernel_v7000", process=two, correlation=2)


def launched_by_an_unusual_call(export: Export) -> None:
    export.kernel(100, 200, "a", launch=(50, 60))
    export.kernel(300, 400, "b", launch=(260, 270, 1000, "hipModuleRun_v1"))


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (launched_late, [100, 0, 0]),
        (launched_early, [0, 20, 0]),
        (long_behind_an_early_launch, [0, 0, 40_000]),
        (inside_another, [50, 0, 0]),
        (not_launched, [0, 30, 0]),
        (launched_by_another_process, [100, 0, 0]),
        (launched_by_an_unusual_call, [100, 0, 0]),
    ],
)
def test_gaps_of_a_stream(build: Build, expected: list[Value], tmp_path: Path) -> None:
    assert waits_of_streams(tmp_path, build) == expected


def test_a_window_clips_them(tmp_path: Path) -> None:
    assert waits_of_streams(tmp_path, launched_late, from_time=240, to_time=280) == [40, 0, 0]
