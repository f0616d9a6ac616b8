"""Selection: coverage, variants, representatives, launch order, ranks, what measuring takes."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from nsightpy.analysis.selection.coverage import ProfiledProcess, choose_kernels
from nsightpy.analysis.selection.launch_places import Portion, Variant, portions, variant_launches
from nsightpy.commands.select.command import select
from nsightpy.errors import MissingDataError, ReportError, UsageError
from nsightpy.reports.opening import open_report
from tests.support.ncu_stand_in import STEP_NS, Scripted, write_export
from tests.support.reports import ROOT


def chosen(path: Path, **wanted: object) -> list[tuple[object, ...]]:
    """name, skip and representative of each row."""
    made = select(path, **wanted)  # type: ignore[arg-type]
    return [(row[1], row[10], row[9]) for row in made.rows]


def test_the_fewest_that_cover(tmp_path: Path) -> None:
    report = write_export(
        tmp_path / "r.sqlite",
        [
            *[Scripted("big", duration_ns=500)] * 10,
            *[Scripted("half", duration_ns=300)] * 10,
            *[Scripted("small", duration_ns=200)] * 10,
        ],
    )
    assert [name for name, *_ in chosen(report)] == ["big", "half"]
    assert [name for name, *_ in chosen(report, coverage=0.5)] == ["big"]
    assert [name for name, *_ in chosen(report, coverage=0.51)] == ["big", "half"]
    assert [name for name, *_ in chosen(report, coverage=1.0)] == ["big", "half", "small"]
    assert [name for name, *_ in chosen(report, top=1)] == ["big"]
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
    made = select(report, coverage=1.0, whole=True)
    assert [(row[3], row[4], row[13], row[5], row[10]) for row in made.rows] == [
        ("1x1x1", "32x1x1", 0, 2, 4),
        ("2x1x1", "32x1x1", 0, 1, 1),
        ("1x1x1", "64x1x1", 0, 1, 2),
        ("1x1x1", "32x1x1", 1024, 1, 3),
    ]


def test_the_representative_is_warm_and_nearest_the_median(tmp_path: Path) -> None:
    times = [9000, 100, 110, 108, 400]
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
    assert chosen(report, whole=True) == [("k", 3, 250)]
    assert chosen(report, device=0, whole=True) == [("k", 2, 200)], "GPU 1 still counts"


def test_the_steady_state_weighs_and_the_process_counts() -> None:
    job = ROOT / "sample_reports" / "training_4rank"
    steady, whole = (select(job, coverage=1.0, whole=each) for each in (False, True))
    assert sum(int(str(row[5])) for row in steady.rows) == 0.75 * sum(
        int(str(row[5])) for row in whole.rows
    )
    kernels = open_report(job / "train_rank0.sqlite").frame("kernels")
    assert set(steady.column("rank")) == {0}
    for row in steady.rows:
        same = sum(kernels.labels("mangled_name").equals([str(row[2])]))
        assert 2 * same / 8 <= int(str(row[10])) < same, "never in a warm-up iteration"
    assert any("6 iterations" in note for note in steady.notes)


def test_a_stretch_of_time_weighs_but_counts_from_the_start(tmp_path: Path) -> None:
    launches = [Scripted("k", duration_ns=100 + n) for n in range(10)]
    report = write_export(tmp_path / "r.sqlite", launches)
    made = select(report, from_time=5 * STEP_NS, to_time=7 * STEP_NS)
    assert (made.rows[0][5], made.rows[0][10]) == (2, 5)


def test_processes_count_for_themselves(tmp_path: Path) -> None:
    launches = [Scripted("k", pid=1 + n % 2, duration_ns=100) for n in range(9)]
    report = write_export(tmp_path / "r.sqlite", launches)
    made = select(report, whole=True)
    assert made.rows[0][5] == 9
    assert made.rows[0][10] == 1


def test_names_that_kernels_share_are_counted_together(tmp_path: Path) -> None:
    launches = [
        *[Scripted("_Z1fIiE", "f", "f<int>", duration_ns=10)] * 3,
        *[Scripted("_Z1fIfE", "f", "f<float>", duration_ns=1000)] * 3,
    ]
    report = write_export(tmp_path / "r.sqlite", launches)
    assert select(report).rows[0][10] == 1
    bare = write_export(tmp_path / "old.sqlite", launches, mangled=False)
    made = select(bare)
    assert made.rows[0][2] is None
    assert made.rows[0][10] == 4
    assert "--kernel-name-base function -k f " in str(made.rows[0][12])


def test_communication_is_left_out_unless_asked_for(tmp_path: Path) -> None:
    report = write_export(
        tmp_path / "r.sqlite",
        [Scripted("ncclDevKernel_AllReduce_Sum_f32_RING_LL", duration_ns=9000), Scripted("k")],
    )
    made = select(report)
    assert [row[1] for row in made.rows] == ["k"]
    assert any("Communication kernels are left out (90.0 %" in note for note in made.notes)
    assert len(select(report, with_communication=True, coverage=1.0).rows) == 2
    nothing = select(report, communication=["^k$"])
    assert nothing.rows == ()
    assert "no kernels to choose from. All of them are communication" in str(nothing.notes[0])
    with pytest.raises(ReportError, match=r"nothing to measure\s.*--with-communication"):
        nothing.script("plain")


def test_ranks_are_weighed_together_and_profiled_in_few(tmp_path: Path) -> None:
    for rank in range(3):
        launches = [
            *[Scripted("everywhere", duration_ns=1000 * (rank + 1))] * 4,
            *([Scripted("only_on_2", duration_ns=5000)] * 3 if rank == 2 else []),
        ]
        write_export(tmp_path / f"job_rank{rank}.sqlite", launches)
    made = select(tmp_path, coverage=1.0, whole=True)
    assert [(row[1], row[5], row[6]) for row in made.rows] == [
        ("everywhere", 12, 24_000),
        ("only_on_2", 3, 15_000),
    ]
    assert set(made.column("rank")) == {2}
    narrow = select(tmp_path, rank="0", whole=True)
    assert narrow.rows[0][5] == 4


def test_it_says_what_measuring_takes(tmp_path: Path) -> None:
    launches = [Scripted(name, duration_ns=time) for name, time in (("a", 9000), ("b", 8000))] * 2
    report = write_export(tmp_path / "r.sqlite", launches)
    (said,) = (note for note in select(report, coverage=1.0).notes if "Measuring takes" in note)
    assert "2 runs of the application" in said
    assert "about 30 passes (--set roofline;" in said
    assert "30 x 17.0 us = 510 us" in said
    (said,) = (note for note in select(report, metric_set="full").notes if "Measuring" in note)
    assert "about 45 passes (--set full;" in said


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
        {"coverage": 0.0},
        {"coverage": 1.2},
        {"top": -1},
        {"metrics": "\u202e"},
        {"metric_set": "full\x1b[0m"},
        {"sections": ["SpeedOfLight", "é"]},
    ],
    ids=str,
)
def test_wrong_usage(tmp_path: Path, wrong: dict[str, object]) -> None:
    report = write_export(tmp_path / "r.sqlite", [Scripted("k")])
    with pytest.raises(UsageError):
        select(report, **wrong)  # type: ignore[arg-type]


def variant(name: str) -> Variant:
    return Variant(name, name, name, (1, 1, 1), (1, 1, 1))


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 50), min_size=1),
    st.floats(0.01, 1.0),
)
def test_no_smaller_set_covers(times: dict[str, int], coverage: float) -> None:
    unit = ProfiledProcess("r", 0, 1)
    found = [(unit, Portion(variant(n), 1, 1, t)) for n, t in times.items()]
    made = choose_kernels(found, coverage=coverage)
    wanted = len(made.choices) + len(made.unreachable)
    ranked = sorted(times.values(), reverse=True)
    whole = sum(ranked)
    assert sum(ranked[:wanted]) >= coverage * whole
    assert wanted == 0 or sum(ranked[: wanted - 1]) < coverage * whole


LAUNCHES = st.lists(
    st.builds(
        Scripted,
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["f", "g"]),
        grid=st.sampled_from([(1, 1, 1), (2, 1, 1)]),
        duration_ns=st.integers(1, 5),
        pid=st.integers(1, 2),
        device=st.integers(0, 1),
        gpu_start_ns=st.integers(0, 10**6),
    ),
    min_size=1,
    max_size=14,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(LAUNCHES)
def test_places_and_portions_against_plain_counting(
    tmp_path_factory: pytest.TempPathFactory, launches: list[Scripted]
) -> None:
    path = write_export(tmp_path_factory.mktemp("r") / "r.sqlite", launches)
    done = variant_launches(open_report(path).frame("kernels"))
    seen: dict[tuple[int, str], int] = defaultdict(int)
    expected = []
    for pid in (1, 2):
        for one in (one for one in launches if one.pid == pid):
            expected.append((pid, seen[pid, one.mangled]))
            seen[pid, one.mangled] += 1
    pids = done.frame.ints("pid").tolist()
    assert list(zip(pids, done.places.tolist(), strict=True)) == expected
    found = portions(done)
    assert sum(p.instances for p in found) == len(launches)
    assert sum(p.total_ns for p in found) == sum(one.duration_ns for one in launches)
    for portion in found:
        own = [
            one
            for one in launches
            if (one.pid, one.names, one.grid)
            == (portion.pid, (portion.variant.mangled, portion.variant.base, portion.variant.name),
                portion.variant.grid)
        ]  # fmt: skip
        warm = sorted(one.duration_ns for one in own[1:] or own)
        middle = (warm[(len(warm) - 1) // 2] + warm[len(warm) // 2]) / 2
        sample = portion.sample
        assert sample is not None
        nearest = min(abs(time - middle) for time in warm)
        assert abs(sample.duration_ns - middle) == nearest
