"""Findings about several ranks: who is waited for, and next commands that run as printed."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from simulator import PRESETS, Export
from simulator.mpi_job import MpiSettings, simulate_mpi, write_mpi_reports

from nsightpy.analysis.findings.engine import judge
from nsightpy.analysis.findings.evidence import Evidence, Group, JobEvidence
from nsightpy.analysis.intervals import Spans
from nsightpy.analysis.time_budget import TimeBudget
from nsightpy.commands.findings.command import findings, typed_again
from nsightpy.commands.findings.rank_evidence import with_peers
from nsightpy.commands.ranks.command import ranks
from nsightpy.commands.summarize.command import summarize
from nsightpy.errors import UsageError
from tests.support.full_export import changed
from tests.support.jobs import simulate
from tests.support.reports import DDP, NSYS, ask, exports, findings_of, needs_reports, rows_of
from tests.support.samples import SAMPLES, TRAINING

MS = 1_000_000


def test_a_straggler_is_named_with_what_the_other_waited(tmp_path: Path) -> None:
    more: dict[str, Any] = {"straggler": 1, "straggler_slowdown": 1.3}
    made = simulate(replace(PRESETS["ranks_2"], iterations=8, layers=3, **more), tmp_path)
    row = findings_of(tmp_path, from_time=0)["straggler"]
    assert row["rank"] == 1
    assert "its kernels take" in row["evidence"]
    assert shlex.split(row["next_command"]) == ["nsightpy", "ranks", str(tmp_path), "--from=0"]
    # what the other waited, as the simulator knows it; never more than it communicated alone
    waited = made.rank_truth("wait_ns")[0]
    exposed = made.rank_truth("budget")[0]["exposed_communication_ns"]
    assert row["recoverable_ns"] == pytest.approx(min(waited, exposed), rel=0.06)
    assert row["recoverable_ns"] <= min(waited, exposed)


def test_findings_and_ranks_tell_the_same_straggler() -> None:
    finding, table = findings_of(TRAINING)["straggler"], ranks(TRAINING)
    (late,) = [row for row in table.records() if row["straggler"]]
    assert (finding["rank"], late["rank"]) == (2, 2)
    told = "comes last to 98 % of the collectives in which ranks wait"
    assert told in finding["evidence"]


# What the same job without the cause is shorter by, simulated with the same seed (ns per step).
TRUE_GAINS = {
    "host-gap": 2_010_000,
    "exposed-communication": 1_140_000,
    "straggler": 670_000,
    "exposed-h2d": 470_000,
}


def test_gains_are_what_the_job_without_the_cause_is_shorter_by() -> None:
    rows = findings_of(TRAINING)
    assert next(iter(rows)) == "host-gap"
    for cause, gain in TRUE_GAINS.items():
        assert rows[cause]["gain_ns"] == pytest.approx(gain, rel=0.05)
        assert rows[cause]["gain_ns"] <= rows[cause]["recoverable_ns"]
    table = findings(TRAINING)
    assert any("6 of 6 iterations: without a change it is off by 0.0%" in n for n in table.notes)
    assert table.replay["identity_share"] == table.replay["alone_share"] == 0
    assert 0 < table.replay["unexplained_share"] < 0.01


@pytest.mark.slow
def test_changes_are_replayed_together() -> None:
    def gain(*changes: str) -> int:
        name, row = next(iter(findings_of(TRAINING, what_if=changes).items()))
        assert name == "what-if"
        return int(row["gain_ns"])

    assert gain("network=0") == pytest.approx(TRUE_GAINS["exposed-communication"], rel=0.05)
    assert gain("host=1") == 0
    assert gain("copies=0", "network=0") > max(gain("copies=0"), gain("network=0"))
    assert gain("rank 2=0.5") > gain("rank 2=0.9") > 0
    assert gain("*flash*=0.5") > 0
    for wrong in ("network", "network=-1", "no such kernel=0.5"):
        with pytest.raises(UsageError):
            findings(TRAINING, what_if=[wrong])


@pytest.mark.parametrize(
    ("part", "iterations"),
    [
        ({"iteration": "3-5"}, 3),
        ({"iteration": "steady"}, 6),
        ({"iteration": "2,4,6"}, 3),
        ({"from_time": "551.185ms", "to_time": "592.006ms"}, 3),
    ],
)
def test_a_part_of_the_time_is_replayed(part: dict[str, Any], iterations: int) -> None:
    row = findings_of(TRAINING, **part)["host-gap"]
    assert row["gain_ns"] == pytest.approx(iterations * TRUE_GAINS["host-gap"], rel=0.05)


@pytest.mark.slow
def test_instances_of_a_range_are_replayed_one_by_one() -> None:
    table = findings(TRAINING, nvtx="forward")
    assert table.replay["iterations"] == table.replay["of_iterations"] == 8
    row = findings_of(TRAINING, nvtx="forward")["straggler"]
    # the straggler's kernels take 1.1 times as long, and collectives come after them
    assert 0.5 * row["recoverable_ns"] < row["gain_ns"] < row["recoverable_ns"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "lost", "why"),
    [
        ("*_rank0*", "", "ranks that are not captured"),
        ("*", "DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME", "the launching call is not known"),
    ],
)
def test_why_no_gain_is_sure(pattern: str, lost: str, why: str, tmp_path: Path) -> None:
    for path in TRAINING.glob(f"{pattern}.sqlite"):
        changed(path, tmp_path / path.name, [lost] if lost else [])
    table = findings(tmp_path, what_if=["network=0.5"])
    assert set(table.column("gain_ns")) == {None}
    assert why in table.column("evidence")[0]
    assert any(why in note for note in table.notes)
    assert why in table.replay["reason"]
    assert summarize(tmp_path).header["critical_path"]


def test_no_gain_is_known_where_the_only_report_with_work_is_damaged(tmp_path: Path) -> None:
    ranges = Export(tmp_path / "rank1.sqlite")
    damage = "UPDATE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION SET streamId = '7th'"
    changed(TRAINING / "train_rank0.sqlite", tmp_path / "rank0.sqlite", [damage])
    ranges.nvtx_push_pop(10, 20, "step")
    ranges.write()
    table = findings(tmp_path)
    assert set(table.column("gain_ns")) <= {None}
    assert "cannot be read whole" in table.replay["reason"]


@needs_reports
def test_what_is_first_launched_gains_its_calls_and_leads() -> None:
    rows = findings_of(NSYS.parent / "kineto/mi250_train_rocm.json.gz")
    assert next(iter(rows)) == "first-launch"
    assert rows["first-launch"]["gain_share"] == pytest.approx(0.734, abs=0.005)


@pytest.mark.slow
def test_mpi_calls_that_wait_for_a_late_rank_gain_what_they_move_alone(tmp_path: Path) -> None:
    write_mpi_reports(simulate_mpi(MpiSettings(slow=2, slow_ns=400_000)), tmp_path)
    assert str(summarize(tmp_path).header["critical_path"]).endswith("(rank 2)")
    row = findings_of(tmp_path)["exposed-communication"]
    # a message and three collectives a step, which end 2 and 3 us after all are there
    assert row["gain_ns"] == pytest.approx(2_000 + 3 * 3_000, rel=0.1)
    assert row["recoverable_ns"] > 400_000


@needs_reports
def test_one_collective_has_one_duration_everywhere() -> None:
    """132 ms on rank 0, as its kernel row says; rank 1 came that much later."""
    rows = findings_of(NSYS / DDP)
    told = rows["slow-collectives"]["evidence"]
    # the same Broadcast, and the 0.6 ms until rank 1 has it, too
    assert rows["slow-collectives"]["start_ns"] == rows["straggler"]["start_ns"] == 5_782_467_258
    lengths = [rows[name]["duration_ns"] for name in ("slow-collectives", "straggler")]
    assert lengths == [132_338_285, 132_930_038]
    assert "Broadcast of 1.18 MB in 0-1 took 132 ms, 1470 times its median" in told
    assert "it waited for rank 1" in told


@pytest.mark.slow
def test_reports_that_are_missing_or_twice_are_problems_of_the_capture(tmp_path: Path) -> None:
    def lose(paths: list[Path]) -> None:
        (tmp_path / "again.sqlite").write_bytes(paths[0].read_bytes())
        paths[1].unlink()
        (tmp_path / "broken.sqlite").write_bytes(b"")

    simulate(replace(PRESETS["ranks_8"], straggler=None), tmp_path, lose)
    rows = findings_of(tmp_path, from_time=0)
    assert "straggler" not in rows
    said = rows["capture-incomplete"]["evidence"]
    assert "broken.sqlite: is empty" in said
    assert "repeats the capture of" in said
    assert "ranks without a report here: 1" in said


@needs_reports
def test_captures_of_other_times_are_no_job() -> None:
    """Both of one host and GPU, eleven minutes apart."""
    names = ("gpt2.7b_a100_2024.6.sqlite", "cudagraph_a100_2024.6.sqlite")
    told = findings_of([NSYS / name for name in names])["capture-incomplete"]["evidence"]
    assert "cannot be one job: the second began 11 minutes" in told
    assert "cannot be one job" in ask("summarize", *(NSYS / name for name in names)).text
    assert not any("one job" in row["evidence"] for row in findings_of(TRAINING).values())


def test_what_is_typed_again_finds_the_same_reports(tmp_path: Path) -> None:
    for name in ("a/r0", "a/r1", "a/r2", "b/r0", "b/x 1", "b/z"):
        path = tmp_path / f"{name}.sqlite"
        path.parent.mkdir(exist_ok=True)
        path.touch()

    def typed(*names: str) -> str:
        return typed_again([str(tmp_path / f"{name}.sqlite") for name in names])

    a, b = tmp_path / "a", tmp_path / "b"
    assert typed("a/r0") == f"{a}/r0.sqlite"
    assert typed("b/r0", "b/x 1") == f"{b}/r0.sqlite '{b}/x 1.sqlite'"
    assert typed("a/r0", "a/r1", "a/r2") == str(a)
    (a / "r3.sqlite").touch()
    assert typed("a/r0", "a/r1", "a/r2") == f"{a}/r0.sqlite {a}/r1.sqlite {a}/r2.sqlite"
    assert typed("a/r0", "a/r1", "b/r0") == f"{a}/r0.sqlite {a}/r1.sqlite {b}/r0.sqlite"


# What is said of a capture as a whole has no place.
OF_CAPTURES = {"healthy", "no-steady-state", "no-gpu-work", "host-gap", "capture-incomplete"}


def run_all(reports: Path, *options: str) -> set[str]:
    """Type every next command again: it runs, and what it prints has rows; the commands."""
    rows = rows_of("findings", reports, *options)
    assert {row["id"] for row in rows if row["start_ns"] is None} <= OF_CAPTURES
    commands = {row["next_command"] for row in rows}
    for command in sorted(commands):
        program, *arguments = shlex.split(command)
        assert program == "nsightpy"
        answer = ask(*arguments)
        assert len(answer.text.splitlines()) > 2, command
    return commands


@needs_reports
def test_a_capture_without_gpu_work_is_blind() -> None:
    rows = findings_of(NSYS / "no_kernels_a100_2026.2.sqlite")
    assert [(name, row["severity"]) for name, row in rows.items()] == [
        *(("no-gpu-work", "error"), ("host-gap", "info"))
    ]
    said = rows["no-gpu-work"]["evidence"]
    assert said.startswith("The capture holds no GPU work: no kernel, copy")
    # 5,094 CPU samples, most of them of Julia's garbage collection
    assert "gc_mark" in rows["host-gap"]["evidence"]


@pytest.mark.slow
@exports
def test_next_commands_run_on_real_reports(path: Path) -> None:
    run_all(path)


TRACE = NSYS.parent / "kineto" / "rank0_of8_b200.json.gz"


@pytest.mark.slow
@needs_reports
@pytest.mark.parametrize(
    ("report", "options", "shown"),
    [
        ("single_process.sqlite", "--iteration 2-3", "--iteration=2-3"),
        ("single_process.sqlite", "--from 20ms --to 45ms", "--from=20ms"),
        ("single_process.sqlite", "--from 30ms", "--from=30ms"),
        ("training_4rank", "--nvtx iteration --rank 0-2", "--nvtx=iteration"),
        # its one collective of NCCL is outside; those of symmetric memory count as well
        (TRACE, "--from 5277048 --to 40446673", "--from=5277048"),
    ],
)
def test_next_commands_keep_the_part_that_was_asked_for(
    report: str, options: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(SAMPLES)
    commands = run_all(Path(report), *options.split())
    assert all(shown in command for command in commands)
    assert report != TRACE or any("collectives" in command for command in commands)


def test_next_commands_of_copies_or_graphs_alone_show_something(tmp_path: Path) -> None:
    """No kernel was recorded one by one: no command about kernels is worth typing."""
    for name in ("copies", "graphs"):
        export = Export(tmp_path / f"{name}.sqlite")
        for number in range(2):
            start = 1_000_000 + number * 2_100_000
            call = export.api(start - 50_000, start - 40_000, "cudaGraphLaunch_v10000")
            if name == "copies":
                export.memcpy(start, start + 2_000_000, 9_000_000, correlation=call)
            else:
                export.graph_trace(start, start + 2_000_000, correlation=call)
        run_all(export.write())


@pytest.mark.parametrize(
    ("iterations", "compute", "says"),
    [
        ((10, 10, 10), (30, 90, 30), "rank 1 computes 90.0 ms (9.00 ms per iteration), 1.80 times"),
        # one rank of equal work has no iterations that are known
        ((8, None, 8), (80, 90, 80), ""),
        (
            (8, 8, 8),
            (80, 160, 80),
            "its kernels take 80.0 ms longer, 2.00 times the others' median",
        ),
    ],
)
def test_ranks_are_compared_by_what_they_compute_alike(
    iterations: tuple[int | None, ...], compute: tuple[int, ...], says: str
) -> None:
    late, rows = {"straggler": Group(alone_ns=5 * MS, name="100 %")}, []
    for rank, (count, lasts) in enumerate(zip(iterations, compute, strict=True)):
        busy, exposed = lasts * MS, 0 if rank == 1 else 5 * MS
        budget = TimeBudget(Spans.of(0, 200 * MS), busy, busy, exposed, 0, 0, exposed, 0, 0)
        groups = late if rank == 1 else {}
        rows.append(Evidence(rank, 0, budget, groups=groups, iterations=count))
    found = {finding.id: finding for finding in judge(JobEvidence(with_peers(rows)))}
    texts = found["straggler"].text + (found["imbalance"].text if says else "")
    assert ("imbalance" in found) == bool(says)
    assert says in texts
    assert says or "times the others' median" not in texts
    assert "per iteration" not in says or found["imbalance"].recoverable_ns == 4 * MS
