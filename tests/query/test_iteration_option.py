"""`--iteration 4|2-5|steady` narrows every command to what began in those iterations."""

from pathlib import Path

import pytest
from simulator import Export

from tests.support.reports import NSYS, ask, needs_reports, refused, rows_of
from tests.support.samples import TRAINING as JOB


def instances(*part: str) -> int:
    return sum(int(row["Instances"]) for row in rows_of("kernels", JOB, *part))


def test_all_iterations_together_hold_each_kernel_once() -> None:
    """The sample job launches nothing outside of its eight iterations."""
    each = instances("--iteration", "3")
    assert instances("--iteration", "0-7") == instances() == 8 * each
    assert instances("--iteration", "2-4,7") == 4 * each


def test_budgets_are_those_of_the_iterations() -> None:
    """Windows, busy and compute time add up over the iterations chosen, on every rank."""
    listed = rows_of("iterations", JOB, "--iteration", "3-5")
    assert {row["iteration"] for row in listed} == {3, 4, 5}
    for row in rows_of("breakdown", JOB, "--iteration", "3-5"):
        mine = [one for one in listed if one["rank"] == row["rank"]]
        assert row["window_ns"] == sum(one["duration_ns"] for one in mine)
        for name in ("busy_ns", "compute_ns", "idle_ns"):
            assert row[name] == sum(one[name] for one in mine)


@pytest.mark.slow
@pytest.mark.parametrize("part", [("--iteration", "3"), ("--from", "579ms", "--to", "592ms")])
def test_every_command_has_the_same_kernels(part: tuple[str, ...], tmp_path: Path) -> None:
    """Of two ranks, by rank: what ranks them, lists them, follows them and writes them."""
    wanted = (JOB, "--rank", "0,2", *part, "--jobs", "1")

    def counted(command: str, *more: str, column: str = "", if_any: str = "") -> dict[int, int]:
        found: dict[int, int] = dict.fromkeys((0, 2), 0)
        for row in rows_of(command, *wanted, *more):
            if not if_any or row[if_any] is not None:
                found[row["rank"]] += row[column] if column else 1
        return found

    kernels = counted("kernels", "--by", "rank", column="Instances")
    assert min(kernels.values()) >= 168
    assert counted("launches", column="count") == kernels
    assert counted("stats", "-r", "cuda_gpu_trace", if_any="GrdX") == kernels
    assert counted("instances", "--of", "*", "--kind", "kernel") == kernels
    ask("export", *wanted, "-o", tmp_path / "out", "--format", "csv")
    written = [len(f.read_text().splitlines()) - 1 for f in (tmp_path / "out/kernels").iterdir()]
    assert sorted(written) == sorted(kernels.values())


@pytest.mark.slow
def test_steady_iterations_are_chosen_by_their_phase() -> None:
    every = rows_of("iterations", JOB)
    chosen = rows_of("iterations", JOB, "--iteration", "steady")
    assert chosen == [row for row in every if row["phase"] == "steady"]
    numbers = sorted({row["iteration"] for row in chosen})
    spec = f"{numbers[0]}-{numbers[-1]}"
    for command in ("kernels", "collectives"):
        steady, numbered = (rows_of(command, JOB, "--iteration", each) for each in ("steady", spec))
        assert steady == numbered


@pytest.mark.slow
def test_the_summary_speaks_of_them() -> None:
    summary = ask("summarize", JOB, "--iteration", "4", "--format", "json").json
    assert any("iteration 4" in note for note in summary["notes"])


@pytest.mark.parametrize(("spec", "code"), [("99", 1), ("x", 2), ("5-2", 2), ("-1", 2)])
def test_what_cannot_be_is_said(spec: str, code: int) -> None:
    refusal = refused("kernels", JOB / "train_rank0.sqlite", f"--iteration={spec}", code=code)
    assert "iteration" in refusal


@needs_reports
def test_a_report_without_iterations_says_why() -> None:
    path = NSYS / "train_nvtx_a100_2026.3.sqlite"
    answer = ask("kernels", path, "--iteration", "steady", expect=1)
    assert "has no iterations to choose from" in answer.stderr
    assert "no step of the program" in answer.stderr


def test_operations_without_a_length_have_no_steady_state(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    for at in range(1_000, 20_000, 1_000):
        export.kernel(at, at, "k", launch=(at - 500, at - 400))
    assert rows_of("findings", export.write()) is not None
