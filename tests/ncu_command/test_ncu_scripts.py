"""Batch scripts under stand-in launchers: ncu in the chosen ranks, the application elsewhere."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from nsightpy.commands.select.command import select
from nsightpy.commands.select.plan import Plan
from nsightpy.errors import UsageError
from nsightpy.ncu_command.scripts import Job
from tests.support.ncu_stand_in import Bench, Scripted, write_export
from tests.support.reports import ROOT

SAMPLE_JOB = ROOT / "sample_reports" / "training_4rank"
LAUNCHES = [
    *[Scripted("_Z1aIiEvv", "a", "void a<int>()", duration_ns=900)] * 4,
    *[Scripted("it's $HOME", duration_ns=800)] * 3,
]
LAUNCHER = """#!/bin/bash
# A stand-in for {name}: starts the command once per rank, as the real one does.
ranks=3
while [ $# -gt 0 ]; do
  case "$1" in
    -n|-np) ranks=$2; shift 2 ;;
    --nproc-per-node=*) ranks=${{1#*=}}; shift ;;
    --no-python|--nnodes=2|--rdzv-backend=c10d|--rdzv-endpoint=node7:29500) shift ;;
    -*) echo "{name}: unknown option $1" >&2; exit 2 ;;
    *) break ;;
  esac
done
case "$3" in *$'\\n'*) echo "{name}: cannot hand on line ends" >&2; exit 2 ;; esac
for rank in $(seq 0 $((ranks - 1))); do {variable}=$rank "$@" || failed=1; done
exit ${{failed:-0}}
"""
VARIABLES = {
    "srun": "SLURM_PROCID",
    "mpirun": "OMPI_COMM_WORLD_RANK",
    "mpiexec": "PALS_RANKID",
    "torchrun": "RANK",
}


def job(tmp_path: Path, **wanted: object) -> tuple[Bench, Plan]:
    """Three ranks; rank 1 has most of the kernel that only it runs."""
    for rank in range(3):
        more = [Scripted("only_on_1", duration_ns=5000)] * 2 if rank == 1 else []
        write_export(tmp_path / f"job_rank{rank}.sqlite", [*LAUNCHES, *more])
    folder = tmp_path / "work"
    folder.mkdir()
    bench = Bench(folder, LAUNCHES)
    binaries = folder / "bin"
    binaries.mkdir()
    for name, variable in VARIABLES.items():
        (binaries / name).write_text(LAUNCHER.format(name=name, variable=variable))
        (binaries / name).chmod(0o755)
    plan = select(
        tmp_path,
        coverage=1.0,
        application=(*bench.application(), "it's", "--", "$x"),
        **wanted,  # type: ignore[arg-type]
    )
    return bench, plan


def started(bench: Bench, script: str) -> subprocess.CompletedProcess[str]:
    return bench.shell(f'PATH={bench.folder}/bin:$PATH\nbash -c "$1"', script)


@pytest.mark.parametrize("kind", ["slurm", "mpi", "torchrun"])
def test_only_the_chosen_rank_runs_under_ncu(kind: str, tmp_path: Path) -> None:
    bench, plan = job(tmp_path, rank=2)
    assert [row[1] for row in plan.rows] == ["void a<int>()", "it's $HOME"]
    done = started(bench, plan.script(kind))
    assert done.returncode == 0, done.stderr
    assert bench.profiled() == [[1], [5]]
    words = "|it\\'s|--|\\$x"
    assert bench.applications() == [f"{rank}{words}" for rank in range(3)] * 2
    written = sorted(path.name for path in bench.folder.glob("*.ncu-rep"))
    assert written == ["ncu_01_2.ncu-rep", "ncu_02_2.ncu-rep"]


def test_what_pbs_asks_for_stands_before_the_first_command_to_be_filled_in() -> None:
    made = select(SAMPLE_JOB, application=("app",)).script("mpi")
    header = made[: made.index("set -u")].splitlines()
    assert "#PBS -N ncu" in header
    assert "##PBS -l select=2:mpiprocs=2" in header
    for wanted in ("-l walltime=", "-l filesystems=", "-q "):
        assert sum(line.startswith(f"##PBS {wanted}") for line in header) == 1, wanted


def test_a_launcher_of_ones_own_that_sets_no_rank_runs_nothing(tmp_path: Path) -> None:
    bench, plan = job(tmp_path, top=1)
    done = started(bench, plan.script("mpi", "mpiexec -n 2"))
    assert (done.returncode, len(bench.applications())) == (0, 2)
    done = started(bench, plan.script("mpi", "env -u SLURM_PROCID"))
    assert done.returncode == 1
    assert "no rank: none of OMPI_COMM_WORLD_RANK" in done.stderr
    assert len(bench.applications()) == 2


def test_one_failing_run_does_not_stop_the_others(tmp_path: Path) -> None:
    bench, plan = job(tmp_path, rank=2)
    (bench.folder / "ncu_01_2.ncu-rep").touch()
    done = started(bench, plan.script("slurm"))
    assert done.returncode == 1
    assert "already exists" in done.stdout
    assert bench.profiled() == [[5]]


def test_plain_scripts_run_the_commands_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path, LAUNCHES)
    report = write_export(tmp_path / "r.sqlite", LAUNCHES)
    words = ("it's", "$HOME `x`", "a\nb", "--", "é", "*")
    plan = select(report, coverage=1.0, application=(*bench.application(), *words))
    done = bench.shell(plan.script("plain"))
    assert done.returncode == 0, done.stderr
    assert bench.profiled() == [[1], [5]]
    shown = bench.shell(f"set -- {shlex.join(words)}; printf '|%q' \"$@\"").stdout
    assert bench.applications() == [shown] * 2
    written = sorted(path.name for path in tmp_path.glob("*.ncu-rep"))
    assert written == ["ncu_01.ncu-rep", "ncu_02.ncu-rep"]


def test_scripts_are_valid_and_start_jobs_themselves(tmp_path: Path) -> None:
    bench, plan = job(tmp_path)
    starts = {
        "slurm": "#SBATCH --ntasks=3",
        "mpi": "mpirun -n 3",
        "torchrun": "torchrun --nproc-per-node=3 --no-python",
        "plain": "",
    }
    for kind, start in starts.items():
        assert bench.shell('bash -n <<<"$1"', plan.script(kind)).returncode == 0
        assert start in plan.script(kind)
    wrapped = select(tmp_path, application=("torchrun", "train.py"))
    with pytest.raises(UsageError, match="starts the job itself"):
        wrapped.script("slurm")


def test_jobs_of_several_nodes(tmp_path: Path) -> None:
    """The sample job ran as two ranks on each of two nodes, and is started so again."""
    bench, _ = job(tmp_path)
    plan = select(SAMPLE_JOB, top=1, application=bench.application())
    slurm = plan.script("slurm").splitlines()
    assert slurm[2:5] == [
        "#SBATCH --ntasks=4", "#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=2",
    ]  # fmt: skip
    missing = started(bench, plan.script("torchrun"))
    assert missing.returncode != 0
    assert "MASTER_ADDR: is to name the first node" in missing.stderr
    done = bench.shell(
        f'PATH={bench.folder}/bin:$PATH\nMASTER_ADDR=node7 bash -c "$1"', plan.script("torchrun")
    )
    assert done.returncode == 0, done.stderr
    assert bench.applications() == ["0|''", "1|''"], "what one node starts"
    one_rank = select(SAMPLE_JOB / "train_rank3.sqlite", top=1, application=("app",))
    assert one_rank.job == Job(4, 1), "rank 3 is one of four at least; on how many nodes is unknown"
