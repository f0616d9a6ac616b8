"""ranks --by call: simulated jobs whose waits are known, a real capture of one rank."""

from pathlib import Path

import pandas as pd
import pytest
from simulator import Export
from simulator.mpi_job import MpiRun, MpiSettings, simulate_mpi, write_mpi_reports

import nsightpy
from nsightpy.reports.opening import open_report
from nsightpy.results import Table
from tests.support.reports import NSYS, ask, needs_reports

pytestmark = pytest.mark.slow

SAXPY = NSYS / "saxpy_mpi_rank0_a100_2022.2.sqlite"
# Waits are known to within one part of ten; those shorter than this per step are noise of clocks.
NOISE_NS = 3_000


def by_call(run: MpiRun, folder: Path) -> Table:
    return nsightpy.ranks([str(path) for path in write_mpi_reports(run, folder)], by="call")


def waits_of(
    settings: MpiSettings, folder: Path
) -> tuple[pd.DataFrame, dict[tuple[int, str], int]]:
    run = simulate_mpi(settings)
    return by_call(run, folder).to_pandas(), dict(run.waits)


@pytest.mark.parametrize(
    "settings",
    [
        MpiSettings(seed=11, ranks=2, late_sender=0, late_ns=500_000, steps=20),
        MpiSettings(seed=12, ranks=4, slow=1, slow_ns=400_000, steps=30, recorded="members"),
        MpiSettings(seed=13, ranks=10, ranks_per_node=4, slow=5, slow_ns=200_000, steps=12),
    ],
    ids=lambda settings: f"{settings.ranks}-{settings.recorded}",
)
def test_waits_are_those_of_the_job(settings: MpiSettings, tmp_path: Path) -> None:
    found, true = waits_of(settings, tmp_path)
    sums = found.groupby(["rank", "state"])["wait_ns"].sum()
    least = NOISE_NS * settings.steps
    assert sum(wait > least for wait in true.values()) >= settings.ranks
    for place, wait in true.items():
        assert sums.get(place, 0) == pytest.approx(wait, rel=0.1, abs=least)
    assert set(found["range"]) == {"step"}
    assert (found["longest_ns"] <= found["wait_ns"]).all()
    assert (found["gpu_idle_ns"] <= found["wait_ns"]).all()
    assert not (found["rank"] == found["caused_by"]).any()


def test_nccl_places_the_clocks_where_a_job_has_both(tmp_path: Path) -> None:
    """Its ends agree to a microsecond."""
    run = simulate_mpi(MpiSettings(seed=18, ranks=4, ranks_per_node=2, steps=20, nccl=True))
    ranks = nsightpy.ranks([str(path) for path in write_mpi_reports(run, tmp_path)])
    for row in ranks.to_pandas().itertuples():
        if row.rank:
            assert row.alignment == "collectives"
            assert abs(row.offset_ns - run.offset_ns(row.rank)) < 1_500
    assert not any("clock condition" in note for note in ranks.notes)


def test_the_late_sender_is_named_and_the_gpu_time_that_it_cost(tmp_path: Path) -> None:
    settings = MpiSettings(seed=14, ranks=4, late_sender=2, late_ns=800_000, steps=15)
    found, true = waits_of(settings, tmp_path)
    first = found.iloc[0]
    assert (first["rank"], first["state"], first["function"]) == (3, "late sender", "MPI_Recv")
    assert first["caused_by"] == 2
    assert first["wait_ns"] == pytest.approx(true[3, "late sender"], rel=0.01)
    # its kernel has ended before it asks for the message
    assert first["gpu_idle_ns"] == first["wait_ns"]
    assert set(found["rank"]) >= {0, 1, 2, 3}


def test_options_narrow_who_waited_not_who_was_waited_for(tmp_path: Path) -> None:
    run = simulate_mpi(MpiSettings(seed=15, ranks=3, slow=2, slow_ns=300_000, steps=8))
    paths = [str(path) for path in write_mpi_reports(run, tmp_path)]
    whole = nsightpy.ranks(paths, by="call").to_pandas()
    one = nsightpy.ranks(paths, by="call", rank=0).to_pandas()
    assert one.to_dict("records") == whole[whole["rank"] == 0].to_dict("records")
    assert 2 in set(one["caused_by"])
    inside = nsightpy.ranks(paths, by="call", nvtx="step").to_pandas()
    assert inside["wait_ns"].sum() == whole["wait_ns"].sum()
    half = nsightpy.ranks(paths, by="call", to_time="54ms").to_pandas()
    assert 0 < half["wait_ns"].sum() < whole["wait_ns"].sum()
    cut = ask("ranks", "--by", "call", *paths, "--top", "2", "--format", "json").json
    assert (len(cut["rows"]), cut["total_rows"], cut["truncated"]) == (2, len(whole), True)


def test_ranges_show_barriers_and_reductions_only(tmp_path: Path) -> None:
    table = by_call(
        simulate_mpi(MpiSettings(seed=16, ranks=3, recorded="ranges", steps=12)), tmp_path
    )
    found = table.to_pandas()
    assert set(found["state"]) == {"wait at barrier", "wait at n-to-n"}
    assert set(found["range"]) == {"step"}


def test_waits_without_gpu_work_say_nothing_of_the_gpu(tmp_path: Path) -> None:
    run = simulate_mpi(MpiSettings(seed=17, ranks=2, steps=6))
    run.kernels = [kernel for kernel in run.kernels if kernel[0] == 0]
    found = by_call(run, tmp_path).to_pandas()
    known = found["gpu_idle_ns"].notna()
    assert set(found["rank"][known]) == {0}
    assert set(found["rank"][~known]) == {1}


def test_a_report_without_mpi_calls_among_others_is_no_hindrance(tmp_path: Path) -> None:
    run = simulate_mpi(MpiSettings(seed=18, ranks=3, steps=6))
    run.calls = [call for call in run.calls if call.rank != 0]
    run.calls = [call for call in run.calls if call.name not in ("MPI_Send", "MPI_Recv")]
    found = by_call(run, tmp_path)
    assert {row[0] for row in found.rows} == {1, 2}
    run.calls = []
    table = by_call(run, tmp_path)
    assert table.rows == ()
    assert any("nsys profile -t mpi" in note for note in table.notes)
    none = str(Export(tmp_path / "a.sqlite").write())
    assert nsightpy.ranks(none, by="call").rows == ()


@needs_reports
def test_one_rank_alone_is_answered() -> None:
    table = nsightpy.ranks(str(SAXPY), by="call")
    assert table.rows == ()
    assert any("several ranks" in note for note in table.notes)
    listed = ask("stats", "-r", "mpi_event_trace", SAXPY, "--format", "csv").csv
    assert {tuple(row[7:]) for row in listed[1:]} == {("0", *[""] * 5)}


def test_mpi_calls_are_listed_in_the_columns_of_nsys(tmp_path: Path) -> None:
    export = Export(tmp_path / "rank_3.sqlite")
    process = export.process(70)
    export.mpi_rank(3, process)
    export.mpi_communicator(3, 900, (1, 3), uid=5)
    export.mpi_communicator(3, 900, (3, 4), time=250)
    export.mpi_other(10, 20, "MPI_Init", process)
    export.mpi_message(100, 150, "MPI_Send", 64, 0, tag=8, communicator=900, process=process)
    export.mpi_collective(300, 400, "MPI_Bcast", 16, process, communicator=900, root=0, received=32)
    path = export.write()
    header, *rows = ask("stats", "-r", "mpi_event_trace", path, "--format", "csv").csv
    assert header == [
        *("Start (ns)", "End (ns)", "Duration (ns)", "Event", "Pid", "Tid", "Tag", "Rank"),
        *("PeerRank", "RootRank", "Size (B)", "CollSendSize (B)", "CollRecvSize (B)"),
    ]
    assert [row[3:4] + row[6:] for row in rows] == [
        ["MPI_Init", "", "3", "", "", "", "", ""],
        ["MPI_Send", "8", "3", "0", "", "64", "", ""],
        ["MPI_Bcast", "", "3", "", "0", "", "16", "32"],
    ]
    frame = open_report(path).frame("mpi_calls")
    names = frame.labels("communicator_id")
    # the handle was given to another communicator in between
    assert [names[row] for row in range(3)] == ["", "uid 5", "ranks 3,4"]
    assert frame.ints("communicator_rank").tolist() == [-1, 1, 0]
    assert frame.ints("communicator_size")[1:].tolist() == [2, 2]
