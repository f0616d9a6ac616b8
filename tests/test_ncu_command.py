"""Printed commands and batch scripts profile exactly the intended launches: with a strict ncu."""

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from nsightpy.commands.select.command import select
from nsightpy.commands.select.plan import Plan
from nsightpy.errors import UsageError
from nsightpy.ncu_command import Job, Options, Run, argv, nvtx_filter
from tests.support.ncu_stand_in import Bench, Scripted, stand_in, write_export
from tests.support.reports import ask
from tests.support.samples import TRAINING

NCU = stand_in()
# Names as they are, and as bad as they can be; NUL cannot be part of an argument.
NAMES = st.text(
    st.one_of(
        st.sampled_from("abk_Z$.0:<>(){}[]|*+?^\\/'\"`!&;#%@=,~- \t\n\réβ☃\u202e\U0001f600"),
        st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
    ),
    min_size=1,
    max_size=12,
)
GRIDS = st.sampled_from([(1, 1, 1), (8, 1, 1), (8, 2, 1)])


@st.composite
def launch_lists(draw: st.DrawFn) -> list[Scripted]:
    """Launch sequences over few names, so that they repeat and overload one another."""
    names = st.tuples(NAMES, NAMES, NAMES)
    pool = draw(st.lists(names, min_size=1, max_size=4, unique_by=lambda n: n[0]))
    one = st.builds(
        lambda own, grid, shared, time, device: Scripted(
            *own, grid=grid, shared=shared, duration_ns=time, device=device
        ),
        *(st.sampled_from(pool), GRIDS, st.sampled_from([0, 512])),
        *(st.integers(1, 50), st.integers(0, 1)),
    )
    return draw(st.lists(one, min_size=1, max_size=25))


def lines(plan: Plan) -> list[str]:
    return [str(line) for line in plan.column("command")]


def assert_profiles(plan: Plan, launches: list[Scripted], profiled: list[list[int]]) -> None:
    """Each run profiled the one launch of its row."""
    for row, (place,) in zip(plan.records(), profiled, strict=True):
        one = launches[place]
        assert one.names[0] == row["mangled"] or row["mangled"] is None
        assert one.duration_ns == row["representative_ns"]
        assert "x".join(map(str, one.grid)) == row["grid"]


def through_parser(plan: Plan, launches: list[Scripted]) -> list[list[int]]:
    """What the stand-in's parser and filters make of the lines, cut by a shell's rules."""
    found = []
    for line in lines(plan):
        given, application = NCU.parse(shlex.split(line)[1:])
        assert tuple(application) == plan.options.application
        found.append(NCU.profiled(given, [one.for_ncu() for one in launches]))
    return found


@pytest.mark.slow
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(launch_lists(), st.booleans())
@example([Scripted("regex:.*"), Scripted("x")], True)
@example([Scripted("-k"), Scripted("@file"), Scripted("--")], True)
@example([Scripted("a\nb"), Scripted("a"), Scripted("a\n"), Scripted("a\n\n")], True)
def test_every_run_profiles_its_launch_and_no_other(
    tmp_path_factory: pytest.TempPathFactory, launches: list[Scripted], mangled: bool
) -> None:
    """By mangled names, or by those of functions, where the capture has no others."""
    path = write_export(tmp_path_factory.mktemp("r") / "r.sqlite", launches, mangled=mangled)
    plan = select(path, coverage=1.0, application=("./app", "a b"))
    assert_profiles(plan, launches, through_parser(plan, launches))
    assert all(line.isascii() for line in lines(plan))


def test_the_words_that_every_command_has(tmp_path: Path) -> None:
    report = write_export(tmp_path / "r.sqlite", [Scripted("_Z1kv", "k", "k()")] * 3)
    (line,) = lines(select(report, application="python 'a b.py'"))
    assert line == (
        "ncu --config-file off --target-processes all --kernel-name-base mangled -k _Z1kv "
        "--launch-skip 1 --launch-count 1 --set roofline -o ncu_01 -- python 'a b.py'"
    )
    extra = ["--section", "Occupancy", "--clock-control", "none"]
    (line,) = lines(select(report, metric_set="full", extra=extra))
    assert "--set full --section Occupancy --clock-control none -o ncu_01 " in line
    assert "--set" not in lines(select(report, metric_set=""))[0]
    write_export(tmp_path / "other_rank1.sqlite", [Scripted("k")])
    assert "-o 'ncu_01_%q{RANK}'" in lines(select(tmp_path))[0]


def test_demangled_names_are_those_that_ncu_does_not_simplify() -> None:
    words = argv(Run("demangled", "void k<(int)1>()", 1, "out"), Options())
    assert words[words.index("--rename-kernels") + 1] == "off"
    given_, _ = NCU.parse(words[1:])
    launches = [Scripted("_Z1kIiEvv", "k", "void k<(int)1>()").for_ncu()] * 3
    assert NCU.profiled(given_, launches) == [1]


@settings(max_examples=80, deadline=None)
@given(NAMES, st.one_of(st.just(""), NAMES), st.booleans())
def test_nvtx_filters_mean_one_range(name: str, domain: str, pushed: bool) -> None:
    text = nvtx_filter(name, domain, style="PushPop" if pushed else "StartEnd")
    assert NCU.nvtx_test(text) == ("nvtx" if pushed else "ranges", [domain, name])


def test_a_range_narrows_the_command(tmp_path: Path) -> None:
    launches = [
        *[Scripted("k", nvtx=(("", "warm/up"),))] * 3,
        *[Scripted("k", nvtx=(("", "all"), ("", "a/b@c")), duration_ns=t) for t in (1, 2, 3)],
        *[Scripted("k", ranges=(("lib", "a/b@c"),), duration_ns=t) for t in (4, 5)],
        Scripted("k"),
    ]
    bench = Bench(tmp_path, launches)
    report = write_export(tmp_path / "r.sqlite", launches)
    plan = select(report, nvtx="a/b@c", application=bench.application())
    done = bench.shell(lines(plan)[0])
    assert "No kernels" not in done.stdout, done.stdout
    assert plan.rows[0][5] == 5
    assert_profiles(plan, launches, bench.profiled())


def test_the_command_line_prints_what_the_library_plans(tmp_path: Path) -> None:
    report = write_export(tmp_path / "r.sqlite", [Scripted("_Z1kv", "k", "k()")] * 3)
    plan = select(report, application=("app", "--flag", "--", "x"))
    (line,) = lines(plan)
    application = ("--", "app", "--flag", "--", "x")
    assert line in ask("select", report, *application).text.splitlines()
    script = ("--script", "plain", *application)
    assert ask("select", report, *script).text == plan.script("plain")
    ask("select", report, "-o", tmp_path / "run.sh", *script)
    with pytest.raises(UsageError, match="script must be one of"):
        plan.script("lsf")


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
    made = select(TRAINING, application=("app",)).script("mpi")
    header = made[: made.index("set -u")].splitlines()
    assert "#PBS -N ncu" in header
    assert "##PBS -l select=2:mpiprocs=2" in header
    for wanted in ("-l walltime=", "-l filesystems=", "-q "):
        assert sum(line.startswith(f"##PBS {wanted}") for line in header) == 1, wanted


def test_a_launcher_of_ones_own_that_sets_no_rank_runs_nothing(tmp_path: Path) -> None:
    bench, plan = job(tmp_path, top=1)
    script = plan.script("mpi")
    done = started(bench, script.replace("(mpirun -n 3)", "(mpiexec -n 2)"))
    assert (done.returncode, len(bench.applications())) == (0, 2)
    done = started(bench, script.replace("(mpirun -n 3)", "(env -u SLURM_PROCID)"))
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


def test_scripts_start_jobs_themselves() -> None:
    with pytest.raises(UsageError, match="what each rank runs"):
        select(TRAINING, application=("torchrun", "train.py"))


def test_jobs_of_several_nodes(tmp_path: Path) -> None:
    """The sample job ran as two ranks on each of two nodes, and is started so again."""
    bench, _ = job(tmp_path)
    plan = select(TRAINING, top=1, application=bench.application())
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
    one_rank = select(TRAINING / "train_rank3.sqlite", top=1, application=("app",))
    assert one_rank.job == Job(4, 1), "rank 3 is one of four at least; on how many nodes is unknown"
