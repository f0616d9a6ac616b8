"""Runs against runs: what changed is known, and must be what is said."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from simulator import PRESETS

import nsightpy
from nsightpy.errors import UsageError
from nsightpy.results.comparison import FASTER, SAME, SLOWER, ComparedQuantity, Comparison
from nsightpy.results.run_summary import PARTS
from nsightpy.units import format_time
from tests.support.compared_jobs import FLASH_BACKWARD, FLASH_DOT, FUSED, GELU, RENAMED, TILE, Jobs
from tests.support.jobs import simulate
from tests.support.reports import ask
from tests.support.samples import SINGLE, TRACES, TRAINING


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    return Jobs(tmp_path_factory.mktemp("compared"))


def compared(jobs: Jobs, what: str) -> Comparison:
    found = nsightpy.compare(jobs.runs("before"), jobs.runs(what), gate_ns=1_000)
    exact(found)
    assert (found.unit, found.spread) == ("step", "runs")
    return found


def exact(found: Comparison) -> None:
    for side in ("before_ns", "after_ns"):
        assert sum(getattr(one, side) for one in found.parts) == getattr(found.step, side)
    for side in ("before", "after"):
        for number, run in enumerate(getattr(found, side).runs):
            works = run.units[found.unit].works
            kernels = sum(work.total_ns for work in works if work.section == "kernel")
            times = [getattr(one, f"{side}_runs")[number] for one in found.categories]
            assert sum(times) == kernels


def kernel(found: Comparison, name: str) -> ComparedQuantity:
    return next(one for one in found.kernels if name in (one.name, one.before_name))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "name", "changed"),
    [
        ("slower 10 %", FLASH_BACKWARD.name, (SLOWER, "full name")),
        ("twice", GELU.name, (SLOWER, "full name")),
        ("renamed", RENAMED, (SAME, "name without arguments")),
        ("tile", TILE, (FASTER, "order of launches")),
        ("fused", FUSED, ("new", "")),
        ("fused", FLASH_DOT.name, ("gone", "")),
    ],
)
def test_what_became_of_a_kernel(
    jobs: Jobs, what: str, name: str, changed: tuple[str, str]
) -> None:
    found = compared(jobs, what)
    one = kernel(found, name)
    assert (one.verdict, one.matched_by) == changed
    fused = {"new", "gone"} if what == "fused" else set()
    assert {each.verdict for each in found.kernels} & {"new", "gone"} == fused
    ways = {each.matched_by for each in found.kernels}
    assert ways == {"full name", one.matched_by} | ({""} if fused else set())
    if what == "slower 10 %":
        assert (found.categories[0].name, found.parts[0].name) == ("attention", "compute")
    if what == "twice":
        assert one.after_count == 2 * (one.before_count or 0) > 0
        assert one.delta_from_count_ns == pytest.approx(one.delta_ns, rel=0.05)


@pytest.mark.slow
def test_a_straggler_is_waited_for_and_the_transfer_is_not_blamed(jobs: Jobs) -> None:
    ranks = {"tensor": 2, "ranks_per_node": 2}
    before = jobs.runs("before", **ranks)
    after = jobs.runs("before", **ranks, straggler=1, straggler_slowdown=1.15)
    found = nsightpy.compare(before, after)
    exact(found)
    assert found.step.verdict == SLOWER
    grew = {one.name: one.delta_ns for one in found.parts}
    assert max(grew, key=lambda name: grew[name]) == "exposed communication" or grew["compute"] > 0
    waits = [one for one in found.collectives if one.name.endswith(": wait")]
    transfers = [one for one in found.collectives if one.name.endswith(": transfer")]
    assert sum(one.delta_ns for one in waits) > 20 * abs(sum(one.delta_ns for one in transfers))
    assert max(waits, key=lambda one: one.delta_ns).verdict == SLOWER
    assert not [one for one in transfers if one.verdict in (SLOWER, FASTER)]
    assert any("waiting for the last rank changed by +" in note for note in found.notes)
    assert any(command.startswith("nsightpy ranks ") for command, _ in found.next_steps)


@pytest.mark.slow
def test_one_iteration_and_one_rank_narrow_both_sides(jobs: Jobs) -> None:
    ranks = {"tensor": 2, "ranks_per_node": 2}
    before = jobs.runs("before", **ranks)
    found = nsightpy.compare(before[0], before[1], rank=1, iteration="3-5")
    assert [run.circumstances["devices"] for run in found.before.runs] == ["1"]
    assert found.before.runs[0].units["step"].count == 3
    named = nsightpy.compare(before[0], before[1], nvtx="backward")
    table = nsightpy.iterations(before[0], nvtx="backward", rank=0)
    phases, lengths = table.column("phase"), table.column("duration_ns")
    steady = [length for phase, length in zip(phases, lengths, strict=True) if phase == "steady"]
    assert named.before.runs[0].units["step"].count == len(steady)
    assert named.step.before_ns == pytest.approx(sorted(steady)[len(steady) // 2], rel=0.05)


def test_the_step_is_the_median_of_the_steady_iterations(jobs: Jobs) -> None:
    run = jobs.runs("before")[0]
    found = nsightpy.compare(run, jobs.runs("again")[0])
    table = nsightpy.iterations(run)
    columns = ("phase", "duration_ns", "compute_ns", "idle_ns")
    rows = zip(*(table.column(name) for name in columns), strict=True)
    steady = [row[1:] for row in rows if row[0] == "steady"]
    samples = found.before.runs[0].units["step"].samples
    assert [row[0] for row in samples] == [row[0] for row in steady]
    assert [row[1] for row in samples] == [row[1] for row in steady]
    idle = [place for place, name in enumerate(PARTS) if name.startswith("idle")]
    assert [sum(row[1 + place] for place in idle) for row in samples] == [r[2] for r in steady]


@pytest.mark.slow
def test_a_baseline_is_as_good_as_its_runs(jobs: Jobs, tmp_path: Path) -> None:
    before, after = jobs.runs("before"), jobs.runs("slower 10 %")
    kept = nsightpy.compare(before, save_baseline=tmp_path / "base.json")
    assert (len(kept), len(kept.after.runs)) == (0, 5)
    found = nsightpy.compare(after, baseline=tmp_path / "base.json", gate="0.5%")
    direct = nsightpy.compare(before, after, gate=0.005)
    assert found.rows == direct.rows
    assert found.gate == direct.gate
    text = (tmp_path / "base.json").read_text()
    assert str(tmp_path.parent) not in text
    assert "node0" not in text


def test_numbers_that_programs_give_are_checked_as_texts_are() -> None:
    with pytest.raises(UsageError, match="names no iterations"):
        nsightpy.kernels(SINGLE, iteration=-1)
    with pytest.raises(UsageError, match="below 100 %"):
        nsightpy.compare(SINGLE, SINGLE, gate=10**400)


@pytest.mark.slow
def test_what_replay_promised_is_held_against_what_came(tmp_path: Path) -> None:
    job = replace(
        PRESETS["ranks_2"], iterations=8, layers=3, data_gap_ns=3_000_000, long_gap_every=0
    )
    for name, gap in (("before", job.data_gap_ns), ("after", 0)):
        simulate(replace(job, data_gap_ns=gap), tmp_path / name)
    found = nsightpy.compare(tmp_path / "before", tmp_path / "after")
    (row,) = (r for r in nsightpy.findings(tmp_path / "before").records() if r["id"] == "host-gap")
    assert -found.step.delta_ns == pytest.approx(row["gain_ns"], rel=0.1)
    (note,) = (note for note in found.notes if "without host-gap promised" in note)
    assert format_time(int(row["gain_ns"] or 0)) in note
    assert not any("promised" in note for note in nsightpy.compare(TRAINING, TRAINING).notes)


FIRST, OTHER = (TRAINING / f"train_rank{rank}.sqlite" for rank in (0, 2))
TRACE = TRACES / "train_rank0.pt.trace.json.gz"


def test_junit_is_for_compare_alone(tmp_path: Path) -> None:
    suites = ET.fromstring(ask("compare", "--format", "junit", FIRST, OTHER).stdout)
    assert suites.get("tests") == "1"
    assert "junit" in ask("kernels", "--format", "junit", FIRST, expect=2).stderr
    said_of = {each: f"kernels writes no {each}; it writes .csv" for each in (".xml", ".png")}
    for suffix, words in said_of.items():
        path = tmp_path / f"kernels{suffix}"
        said = ask("kernels", FIRST, "-o", path, expect=2).stderr
        assert words in said
        assert not path.exists()


@pytest.mark.parametrize("outside", [("--to", "-1"), ("--from", "1e18")])
def test_times_outside_of_a_capture_are_said(outside: tuple[str, str]) -> None:
    assert "there is nothing to compare" in ask("compare", *outside, TRACE, TRACE, expect=1).stderr


def test_top_is_of_each_section_in_every_format() -> None:
    document = ask("compare", "--format", "json", "--top", "1", FIRST, OTHER).json
    assert [row["section"] for row in document["rows"]][-3:] == ["collective", "range", "category"]
    names = [[row["name"] for row in document[which]] for which in ("rows", "details")]
    assert names[0] == names[1]
    assert len(names[0]) < document["total_rows"]
    assert document["truncated"]
    text = ask("compare", "--top", "1", FIRST, OTHER).text
    assert "AllReduce 33.6 MB" in text
    assert "AllReduce 10.5 MB" not in text
    text = ask("compare", FIRST, OTHER).text
    assert "flash::Flash_bwd_params)" in text
    assert "…" not in text
