"""breakdown: parts that add up, truths of simulated jobs, waits of streams, what people see."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulator import PRESETS, Export

import nsightpy
from nsightpy.analysis.intervals import Spans, spans_of, union
from nsightpy.commands.breakdown.command import CAUSES
from nsightpy.results import Table, Value, number
from tests.support.samples import TRAINING


def caused(table: Table) -> dict[str, int]:
    """Idle time by cause over all devices, ns."""
    records = table.records()
    sums = {cause.name: sum(int(number(row[cause.name])) for row in records) for cause in CAUSES}
    return {name: total for name, total in sums.items() if total}


@pytest.mark.slow
def test_breakdown_and_gaps_say_the_same() -> None:
    by_cause = nsightpy.gaps(TRAINING, by="cause")
    said = {str(row["cause"]): row["total_ns"] for row in by_cause.records()}
    assert {f"{cause.replace('-', '_')}_ns": total for cause, total in said.items()} == caused(
        nsightpy.breakdown(TRAINING)
    )
    places = nsightpy.gaps(TRAINING, by="cause,place,stream,before,call,range")
    assert sum(map(number, places.column("total_ns"))) == sum(said.values())
    assert len({row[:6] for row in places.rows}) == len(places)


def test_a_report_alone_does_not_know_who_waited() -> None:
    (alone,) = nsightpy.breakdown(sorted(TRAINING.glob("*.sqlite"))[0]).records()
    assert alone["exposed_wait_ns"] is alone["exposed_transfer_ns"] is None


@pytest.mark.parametrize("more", [{}, {"iteration": "steady"}, {"nvtx": "forward"}])
def test_parts_add_up_in_windows_with_holes_too(more: dict[str, Any]) -> None:
    for row in nsightpy.breakdown(TRAINING, **more).records():
        assert sum(number(row[cause.name]) for cause in CAUSES) == row["idle_ns"]
        parts = row["exposed_wait_ns"], row["exposed_transfer_ns"]
        assert sum(map(number, parts)) == row["exposed_communication_ns"]


def test_a_rank_alone_waited_as_long_as_among_all() -> None:
    every = nsightpy.breakdown(TRAINING).records()
    assert [nsightpy.breakdown(TRAINING, rank=rank).records()[0] for rank in range(4)] == every


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


# Start, end and launch of kernels of one stream; their waits for the host, for kernels, for others.
Kernel = tuple[int, int, tuple[Any, ...] | None]
WAITS: dict[str, tuple[Sequence[Kernel], list[int]]] = {
    "launched late": ([(100, 200, (50, 60)), (300, 400, (260, 270))], [100, 0, 0]),
    "early": ([(100, 200, (50, 60)), (210, 280, (61, 70)), (290, 400, (71, 80))], [0, 20, 0]),
    "long after": ([(100, 200, (50, 60)), (40_200, 40_300, (70, 80))], [0, 0, 40_000]),
    # the second ends inside the first: HTA would see a gap from 120 on
    "inside": ([(0, 200, (-50, -40)), (110, 120, (-30, -20)), (250, 300, (210, 220))], [50, 0, 0]),
    "not launched": ([(100, 200, (50, 60)), (230, 400, None)], [0, 30, 0]),
    "unusual": (
        [(100, 200, (50, 60)), (300, 400, (260, 270, 1000, "hipModuleRun_v1"))],
        [100, 0, 0],
    ),
}


def waits_of_streams(path: Path, kernels: Sequence[Kernel], **options: Any) -> list[Value]:
    """The waits before kernels; another process has a call of the same number as the second."""
    export = Export(path / "report.sqlite")
    first, second = export.process(1000), export.process(2000)
    for place, (start, end, launch) in enumerate(kernels, 1):
        export.kernel(
            start,
            end,
            f"k{place}",
            process=first,
            launch=launch,
            correlation=place if launch else 77,
        )
    export.api(5, 6, "cudaLaunchKernel_v7000", process=second, correlation=2)
    (row,) = nsightpy.breakdown(str(export.write()), **options).records()
    return [row[name] for name in ("host_wait_ns", "kernel_wait_ns", "other_wait_ns")]


@pytest.mark.parametrize("name", WAITS)
def test_gaps_of_a_stream(name: str, tmp_path: Path) -> None:
    kernels, expected = WAITS[name]
    assert waits_of_streams(tmp_path, kernels) == expected


def test_a_window_clips_them(tmp_path: Path) -> None:
    kernels, _ = WAITS["launched late"]
    assert waits_of_streams(tmp_path, kernels, from_time=240, to_time=280) == [40, 0, 0]
