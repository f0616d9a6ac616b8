"""Selection: coverage, variants, representatives, launch order, ranks, what measuring takes."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from nsightpy.analysis.selection.coverage import choose_kernels
from nsightpy.analysis.selection.launch_places import Portion, Variant
from nsightpy.analysis.selection.thresholds import MOST_CHOSEN
from nsightpy.commands.select.command import select
from nsightpy.errors import MissingDataError, ReportError, UsageError
from nsightpy.reports.opening import open_report
from nsightpy.results import number
from tests.support.ncu_stand_in import STEP_NS, Scripted, write_export
from tests.support.reports import DDP, NSYS, needs_reports, opened
from tests.support.samples import TRAINING


def chosen(path: Path, **wanted: object) -> list[tuple[object, ...]]:
    """name, skip and representative of each row."""
    made = select(path, **wanted)  # type: ignore[arg-type]
    return [(row[1], row[10], row[9]) for row in made.rows]


def test_the_fewest_that_cover(tmp_path: Path) -> None:
    sizes = {"big": 500, "half": 300, "small": 200}
    launches = [Scripted(name, duration_ns=time) for name, time in sizes.items() for _ in range(10)]
    report = write_export(tmp_path / "r.sqlite", launches)
    for options, count in (({}, 2), ({"coverage": 0.5}, 1), ({"top": 1}, 1)):
        assert [name for name, *_ in chosen(report, **options)] == list(sizes)[:count]
    shares = [row[7:9] for row in select(report, coverage=1.0).rows]
    assert shares == [(0.5, 0.5), (0.3, 0.8), (0.2, 1.0)]


def test_variants_differ_by_grid_block_and_shared_memory(tmp_path: Path) -> None:
    report = write_export(
        tmp_path / "r.sqlite",
        [
            Scripted("k", duration_ns=900),
            Scripted("k", grid=(2, 1, 1), duration_ns=800),
            Scripted("k", block=(64, 1, 1), duration_ns=700),
            Scripted("k", shared=1024, duration_ns=600),
            Scripted("k", duration_ns=900),
        ],
    )
    made = select(report, coverage=1.0, from_time=0)
    assert [(row[3], row[4], row[13], row[5], row[10]) for row in made.rows] == [
        ("1x1x1", "32x1x1", 0, 2, 4),
        ("2x1x1", "32x1x1", 0, 1, 1),
        ("1x1x1", "64x1x1", 0, 1, 2),
        ("1x1x1", "32x1x1", 1024, 1, 3),
    ]


def test_the_representative_is_warm_and_nearest_the_median(tmp_path: Path) -> None:
    times = [109, 100, 110, 108, 400]
    report = write_export(tmp_path / "r.sqlite", [Scripted("k", duration_ns=t) for t in times])
    # the median of the four warm ones is 109: 110 and 108 are as near, the earlier is taken
    assert chosen(report) == [("k", 2, 110)]
    alone = write_export(tmp_path / "one.sqlite", [Scripted("k", duration_ns=400)])
    assert chosen(alone) == [("k", 0, 400)], "where there is no other"


def test_launches_count_in_the_order_of_calls_over_all_gpus(tmp_path: Path) -> None:
    """The GPU begins with the last call first, and two GPUs share one count."""
    launches = [
        Scripted("k", duration_ns=100, device=0, gpu_start_ns=9 * STEP_NS),
        Scripted("k", duration_ns=300, device=1, gpu_start_ns=2 * STEP_NS),
        Scripted("k", duration_ns=200, device=0, gpu_start_ns=3 * STEP_NS),
        Scripted("k", duration_ns=250, device=1, gpu_start_ns=1 * STEP_NS),
    ]
    report = write_export(tmp_path / "r.sqlite", launches)
    assert chosen(report, from_time=0) == [("k", 3, 250)]
    assert chosen(report, device=0, from_time=0) == [("k", 2, 200)], "GPU 1 still counts"


def test_the_steady_state_weighs_and_the_process_counts() -> None:
    steady, whole = (select(TRAINING, coverage=1.0, from_time=each) for each in (None, 0))
    assert sum(map(number, steady.column("instances"))) == 0.75 * sum(
        map(number, whole.column("instances"))
    )
    kernels = open_report(TRAINING / "train_rank0.sqlite").frame("kernels")
    assert set(steady.column("rank")) == {0}
    for row in steady.rows:
        same = sum(kernels.labels("mangled_name").equals([str(row[2])]))
        assert 2 * same / 8 <= number(row[10]) < same, "never in a warm-up iteration"
    assert any("6 steady iterations" in note for note in steady.notes)


def test_a_stretch_of_time_weighs_but_counts_from_the_start(tmp_path: Path) -> None:
    launches = [Scripted("k", duration_ns=100 + n) for n in range(10)]
    report = write_export(tmp_path / "r.sqlite", launches)
    made = select(report, from_time=5 * STEP_NS, to_time=7 * STEP_NS)
    assert (made.rows[0][5], made.rows[0][10]) == (2, 5)


def test_communication_is_left_out_unless_asked_for(tmp_path: Path) -> None:
    talks = Scripted("ncclDevKernel_AllReduce_Sum_f32_RING_LL", duration_ns=9000)
    report = write_export(tmp_path / "r.sqlite", [talks, Scripted("k")])
    made = select(report)
    assert made.column("name") == ["k"]
    assert any("Communication kernels are left out (90.0 %" in note for note in made.notes)
    assert len(select(report, with_communication=True, coverage=1.0).rows) == 2
    nothing = select(report, communication=["^k$"])
    assert "no kernels to choose from. Those of communication" in str(nothing.notes[0])
    with pytest.raises(ReportError, match=r"nothing to measure\s.*--with-communication"):
        nothing.script("plain")


def test_ranks_are_weighed_together_and_profiled_in_few(tmp_path: Path) -> None:
    for rank in range(3):
        launches = [Scripted("everywhere", duration_ns=1000 * (rank + 1))] * 4
        launches += [Scripted("only_on_2", duration_ns=5000)] * 3 if rank == 2 else []
        write_export(tmp_path / f"job_rank{rank}.sqlite", launches)
    made = select(tmp_path, coverage=1.0, from_time=0)
    assert [(row[1], row[5], row[6]) for row in made.rows] == [
        *(("everywhere", 12, 24_000), ("only_on_2", 3, 15_000))
    ]
    assert set(made.column("rank")) == {2}
    assert select(tmp_path, rank="0", from_time=0).column("instances") == [4]


def test_it_says_what_measuring_takes(tmp_path: Path) -> None:
    launches = [Scripted(name, duration_ns=time) for name, time in (("a", 9000), ("b", 8000))] * 2
    report = write_export(tmp_path / "r.sqlite", launches)
    for options, said in (
        ({}, ("2 runs of the application", "about 30 passes (--set roofline;", "= 510 us")),
        ({"metric_set": "full"}, ("about 45 passes (--set full;", "45 x 17.0 us")),
    ):
        (note,) = (n for n in select(report, coverage=1.0, **options).notes if "Measuring" in n)
        assert all(part in note for part in said)


def test_an_nvtx_range_narrows_weights_and_counts(tmp_path: Path) -> None:
    inside, other = (("", "step"),), (("", "warm"),)
    launches = [
        *[Scripted("k", nvtx=other)] * 4,
        *[Scripted("k", nvtx=inside, duration_ns=t) for t in (50, 60, 70)],
        *[Scripted("j", nvtx=(("lib", "step"),), duration_ns=t) for t in (5, 6)],
    ]
    report = write_export(tmp_path / "r.sqlite", launches)
    made = select(report, nvtx="step", coverage=1.0)
    assert [(row[1], row[5], row[10]) for row in made.rows] == [("k", 3, 1), ("j", 2, 1)]
    assert made.options.nvtx == ("lib@step/", "step/")
    with pytest.raises(MissingDataError, match="no range"):
        select(report, nvtx="nowhere")


@pytest.mark.parametrize(
    "wrong",
    [
        *({"coverage": 0.0}, {"coverage": 1.2}, {"top": -1}, {"metric_set": "é"}),
        *({"metric_set": "full\x1b[0m"}, {"application": "mpirun -n 4 app"}),
    ],
    ids=str,
)
def test_wrong_usage(tmp_path: Path, wrong: dict[str, object]) -> None:
    report = write_export(tmp_path / "r.sqlite", [Scripted("k")])
    with pytest.raises(UsageError):
        select(report, **wrong)  # type: ignore[arg-type]


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 50), min_size=1),
    st.floats(0.01, 1.0),
)
def test_no_smaller_set_covers(times: dict[str, int], coverage: float) -> None:
    size = (1, 1, 1)
    found = [Portion(Variant(n, n, n, size, size), 1, 1, t) for n, t in times.items()]
    made = choose_kernels(found, coverage=coverage)
    wanted = len(made.choices) + len(made.unreachable)
    ranked = sorted(times.values(), reverse=True)
    assert sum(ranked[:wanted]) >= coverage * sum(ranked)
    assert wanted == 0 or sum(ranked[: wanted - 1]) < coverage * sum(ranked)


def grids(count: int) -> list[Scripted]:
    """Three launches under each of so many grids, blocks of one size."""
    return [Scripted("kernel", grid=(grid, 1, 1)) for grid in range(1, count + 1) for _ in range(3)]


def test_many_grids_are_grouped_by_powers_of_two(tmp_path: Path) -> None:
    few = select(write_export(tmp_path / "few.sqlite", grids(20)), coverage=1.0, from_time=0)
    assert len(few) == 20
    plan = select(write_export(tmp_path / "r.sqlite", grids(100)), coverage=1.0, from_time=0)
    sizes = {3: (1, 1), 6: (2, 3), 12: (4, 7), 24: (8, 15), 48: (16, 31), 96: (32, 63)}
    sizes[111] = (64, 100)
    assert sorted(map(number, plan.column("instances"))) == list(sizes)
    assert sum(map(number, plan.column("share"))) == pytest.approx(1.0)
    for record in plan.records():
        grid = int(str(record["grid"]).split("x")[0])
        low, high = sizes[int(number(record["instances"]))]
        assert low <= grid <= high
        # the launches are in the order of their grids, three of each
        assert number(record["launch_skip"]) // 3 == grid - 1
    assert any(
        "Launches of one size, by powers of two of their threads: 7 rows" in note
        for note in plan.notes
    )


def test_a_plan_is_no_longer_than_people_run_unless_asked(tmp_path: Path) -> None:
    names = [Scripted(f"kernel{n}") for n in range(60) for _ in range(2)]
    report = write_export(tmp_path / "r.sqlite", names)
    plan = select(report, from_time=0)
    assert len(plan) == MOST_CHOSEN
    assert "23 more variants would be needed for the usual 80 %" in " ".join(plan.notes)
    assert len(select(report, coverage=0.8, from_time=0)) == 48
    assert len(select(report, top=60, from_time=0)) == 60


# Both processes of one report, several threads, several streams of one thread, one device of four.
CAPTURES = (
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


@needs_reports
@pytest.mark.parametrize("name", CAPTURES)
def test_every_command_finds_its_launch_among_those_that_sql_counts(name: str) -> None:
    report = open_report(NSYS / name)
    plan = select(report, coverage=0.95)
    with opened(NSYS / name) as connection:
        launches = connection.execute(QUERY).fetchall()
    processes = {report.rank_of(pid)[0]: pid for pid in report.pids}
    assert len(plan.runs) > 3
    for run, row in zip(plan.runs, plan.records(), strict=True):
        place = {"mangled": 2, "function": 3, "demangled": 4}[run.base]
        # ncu counts the launches of a process whose name matches
        matching = [n for n in launches if (n[0], n[place]) == (processes[run.rank], run.name)]
        hit = matching[run.skip]
        assert [hit[1], *hit[5:]] == [row["representative_ns"], row["grid"], row["block"]], run
