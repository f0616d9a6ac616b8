"""Which rank each report and process is, on tiny exports; and many reports as one set."""

import shutil
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path

import pytest
from simulator import Export, schema

from nsightpy.commands.kernels import kernels
from nsightpy.errors import ReportError, UsageError
from nsightpy.report_sets.opening import find_ncu_reports, find_reports, open_ranks
from nsightpy.reports.one_file import MemorySnapshot
from nsightpy.reports.opening import natural, open_report
from nsightpy.reports.profiles import NsysReport
from tests.support.ranked_reports import join, write
from tests.support.reports import ROOT, ask, refused

SAMPLES = ROOT / "sample_reports"
OPEN_FILES = Path("/proc/self/fd")
Ranks = dict[str, dict[int, tuple[int | None, str]]]


def ranks(paths: Path | Sequence[Path], rank_regex: str | None = None) -> Ranks:
    found = open_ranks(paths, rank_regex=rank_regex)
    found.find_ranks()
    return {report.path.name: report.ranks for report in found}


def test_mpi_beats_nccl_beats_the_environment_beats_the_file_name(tmp_path: Path) -> None:
    evidence = {
        "mpi": ({1000: 5}, {1000: 6}),
        "named": ({1000: 4}, {1000: 3}),
        "nccl": ({1000: (2, 8)}, {1000: (1, 8)}),
        "environment": ({"RANK": "9"}, {"RANK": "8"}),
    }
    names = ("x_rank20.sqlite", "x_rank21.sqlite")
    decided = [("MPI_RANKS", 5, 6), ("MPI thread name", 4, 3), ("NCCL communicator", 2, 1)]
    decided += [("environment RANK", 9, 8), ("file name", 20, 21)]
    for source, one, two in decided:
        for place, name in enumerate(names):
            write(tmp_path / name, **{kind: pair[place] for kind, pair in evidence.items()})
        found = ranks(tmp_path)
        assert [found[name][1000] for name in names] == [(one, source), (two, source)]
        evidence.pop(next(iter(evidence), ""), None)  # the strongest that is left


@pytest.mark.parametrize("generation", [schema.NEW, schema.MID])  # older ones hold none
@pytest.mark.parametrize(
    ("environment", "decided"),
    [
        ({"PMI_RANK": "3", "SLURM_PROCID": "1"}, (3, "environment PMI_RANK")),
        ({"SLURM_PROCID": "1", "RANK": "2"}, (2, "environment RANK")),
        ({"MV2_COMM_WORLD_RANK": "7"}, (7, "environment MV2_COMM_WORLD_RANK")),
        ({"LOCAL_RANK": "4", "MY_RANK": "5", "RANK_ZERO": "6", "A": "RANK=3"}, (None, "")),
        ({"RANK": "none", "PMI_RANK": "99999999999999999999"}, (None, "")),
    ],
)
def test_only_rank_keys_of_the_environment_are_read(
    tmp_path: Path, environment: dict[str, str], decided: tuple[int | None, str], generation: str
) -> None:
    path = write(tmp_path / "report.sqlite", environment=environment, generation=generation)
    assert NsysReport(path).rank_of(1000) == decided


def test_an_outer_launcher_that_calls_all_alike_gives_way(tmp_path: Path) -> None:
    """mpirun inside one srun task: every report inherited SLURM_PROCID=0."""
    for stem in ("x_rank1", "x_rank2", "b", "a"):
        folder = tmp_path / ("named" if "_" in stem else "unnamed")
        folder.mkdir(exist_ok=True)
        write(folder / f"{stem}.sqlite", environment={"SLURM_PROCID": "0"})
    assert ranks(tmp_path / "named") == {
        f"x_rank{rank}.sqlite": {1000: (rank, "file name")} for rank in (1, 2)
    }
    guess, alone = "guess: order of files", tmp_path / "unnamed" / "a.sqlite"
    assert ranks(tmp_path / "unnamed") == {
        "a.sqlite": {1000: (0, guess)},
        "b.sqlite": {1000: (1, guess)},
    }
    assert ranks(alone) == {"a.sqlite": {1000: (0, "environment SLURM_PROCID")}}
    assert ranks(write(alone)) == {"a.sqlite": {1000: (None, "")}}


@pytest.mark.parametrize(
    "words", ["ranks", "findings", "summarize", "kernels --by rank", "kernels --rank 2"]
)
def test_what_shows_ranks_says_that_they_are_a_guess(words: str, tmp_path: Path) -> None:
    for number in (1, 2, 10):
        write(tmp_path / f"run{number}.sqlite")
    for regex, guessed in ((), True), (("--rank-regex", r"run(\d+)"), False):
        answer = ask(*words.split(), *regex, tmp_path, "--format", "json").json
        guess = "ranks are a guess, the order of the files"
        assert any(guess in note for note in answer["notes"]) == guessed


def test_the_users_expression_beats_all_evidence(tmp_path: Path) -> None:
    for name, rank in (("node7-1.sqlite", 5), ("node7-0.sqlite", 6)):
        write(tmp_path / name, mpi={1000: rank})
    found = ranks(tmp_path, rank_regex=r"-(\d+)\.")
    write(tmp_path / "silent.sqlite")
    assert ranks(tmp_path)["silent.sqlite"] == {1000: (None, "")}
    (tmp_path / "silent.sqlite").unlink()
    assert found["node7-0.sqlite"] == {1000: (0, "--rank-regex")}
    assert found["node7-1.sqlite"] == {1000: (1, "--rank-regex")}
    # without a group the whole match counts; files that do not match keep their evidence
    assert ranks(tmp_path, rank_regex=r"(?<=-)0")["node7-1.sqlite"] == {1000: (5, "MPI_RANKS")}
    with pytest.raises(UsageError, match="no regular expression"):
        ranks(tmp_path, rank_regex="(")
    with pytest.raises(UsageError, match=r"'node' in node7-0\.sqlite, which is no rank"):
        ranks(tmp_path, rank_regex="[a-z]+")


def test_the_processes_of_one_report_are_told_apart(tmp_path: Path) -> None:
    mpi = write(tmp_path / "rank9.sqlite", mpi={10: 1, 20: 0}, pids=(10, 20))
    assert ranks(mpi)["rank9.sqlite"] == {10: (1, "MPI_RANKS"), 20: (0, "MPI_RANKS")}
    # environment and file name speak of the report, so of neither process alone
    env = write(tmp_path / "rank8.sqlite", environment={"RANK": "3"}, pids=(20, 10))
    guess = "guess: order of processes"
    assert ranks(env)["rank8.sqlite"] == {10: (0, guess), 20: (1, guess)}


def test_nccl_ranks_are_those_of_the_largest_communicator(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.kernel(0, 10, "gemm(float *)")
    for rank, size in ((1, 2), (5, 8), (0, 4)):
        join(export, rank, size)
    assert ranks(export.write())["a.sqlite"] == {1000: (5, "NCCL communicator")}


NAMES = {"rank_3": 3, "RANK-12": 12, "train.rank=4.h100": 4, "run_r3": 3, "r07.x": 7}
NAMES |= {"model-3-of-8": 3, "llama.0-of-2.pt.trace": 0, "rank123456": 123456}
NO_NAMES = ("report3", "ranks", "carr3", "rank12345678901234567890", "part-8-of-8", "2-of-many")
# dates are no ranks
NO_NAMES += ("bench_r20240131", "bench_r240131", "run.rank=99999999", "rank_1700000000")


@pytest.mark.parametrize(("name", "rank"), [*NAMES.items(), *((name, None) for name in NO_NAMES)])
def test_ranks_in_file_names(tmp_path: Path, name: str, rank: int | None) -> None:
    report = NsysReport(write(tmp_path / f"{name}.sqlite"))
    assert report.rank_of(1000) == (rank, "file name" if rank is not None else "")
    assert report.processes["rank"].tolist() == [-1 if rank is None else rank]


def test_missing_ranks_are_counted_not_listed(tmp_path: Path) -> None:
    for rank in (3, 999_998):
        write(tmp_path / f"rank{rank}.sqlite", took=rank)
    found = open_ranks(tmp_path, rank_regex=r"rank(\d+)")
    found.find_ranks()
    missing = "0, 1, 2, 4, 5, 6, 7, 8 and 999,989 more"
    assert f"ranks without a report here: {missing}" in map(str, found.notes)


def test_directories_and_globs(tmp_path: Path) -> None:
    wanted = ["2", "10", "a/rank3", "rank", "rank02", "rank2", "rank2b", "rank10"]
    for names in (sorted(wanted), sorted(wanted, reverse=True)):
        assert sorted(names, key=natural) == wanted
    for name in ("run_10.sqlite", "run_2.nsys-rep", "run_2.sqlite", "run_1.db", "x.txt", "y.json"):
        (tmp_path / name).touch()
    reports = ["run_1.db", "run_2.nsys-rep", "run_10.sqlite"]
    for pattern, found in (("", reports), ("run_*", reports), ("run_?.sqlite", ["run_2.sqlite"])):
        assert [path.name for path in find_reports(tmp_path / pattern)] == found
    with pytest.raises(ReportError, match="matches no file"):
        find_reports(tmp_path / "*.none")
    (tmp_path / "[1].sqlite").touch()  # a name that looks like a pattern, but exists
    assert find_reports(tmp_path / "[1].sqlite") == [tmp_path / "[1].sqlite"]
    (tmp_path / "deep" / "er").mkdir(parents=True)
    with pytest.raises(ReportError, match="holds no Nsight Systems report"):
        find_reports(tmp_path / "deep")


def test_a_report_counts_once_however_it_is_named(tmp_path: Path) -> None:
    for name in ("a.sqlite", "b.nsys-rep", "b.sqlite"):
        (tmp_path / name).touch()
    detour = tmp_path / "x" / ".." / "a.sqlite"
    detour.parent.parent.mkdir()
    given = [*sorted(tmp_path.glob("*.*")), detour, tmp_path, NsysReport(tmp_path / "a.sqlite")]
    assert [report.path.name for report in open_ranks(given)] == ["a.sqlite", "b.nsys-rep"]
    with pytest.raises(UsageError, match="no reports given"):
        open_ranks([])
    with pytest.raises(ReportError, match="no such file"):
        open_ranks([tmp_path, tmp_path / "absent.sqlite"])


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_broken_reports_among_good_ones_are_left_out_and_named(tmp_path: Path, jobs: int) -> None:
    paths = [write(tmp_path / f"rank{rank}.sqlite", took=100 + rank) for rank in (0, 1, 2, 3)]
    paths[1].write_bytes(b"no database" * 1000)
    paths[2].write_bytes(paths[2].read_bytes()[:10_000])
    found = open_ranks(tmp_path, jobs=jobs)
    table = kernels(found, by="rank")
    assert [(row[0], row[2]) for row in table.rows] == [(3, 103), (0, 100)]
    assert [Path(one.path).name for one in found.failures] == ["rank1.sqlite", "rank2.sqlite"]
    assert sum(note.startswith("left out: ") for note in table.notes) == 2
    with pytest.raises(ReportError, match=r"rank1\.sqlite"):
        kernels(tmp_path, by="rank", on_error="raise", jobs=jobs)
    with pytest.raises(ReportError, match=r"rank2\.sqlite"):
        kernels(paths[2], jobs=jobs)
    with pytest.raises(ReportError, match=r"rank1\.sqlite"):
        kernels(paths[1:3], jobs=jobs)


def test_failures_come_in_the_order_of_the_reports(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"rank{rank}.sqlite") for rank in (0, 1, 2)]
    paths[1].write_bytes(b"")
    found = open_ranks(paths)

    def refuse(report: NsysReport) -> None:
        raise ReportError(report.path, "refused")

    with pytest.raises(ReportError, match="refused"):
        found.map(refuse, ranked=True)
    assert [one.path for one in found.failures] == [str(path) for path in paths]


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="the system does not list open files")
def test_a_set_holds_no_file_open_for_each_report(tmp_path: Path) -> None:
    for rank in range(12):
        write(tmp_path / f"rank{rank}.sqlite", took=rank)
    found = open_ranks(tmp_path)
    kernels(found.reports[:1])  # what is imported and opened once
    host = attrgetter("session.host")
    before = len(list(OPEN_FILES.iterdir()))
    for step in (found.find_ranks, lambda: found.map(host), lambda: found.notes):
        step()
        assert len(list(OPEN_FILES.iterdir())) - before < 6


def test_what_a_pattern_of_the_shell_gives_beside_reports_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "a.sqlite")
    for name in ("a.csv", "notes.md", "a.json"):
        (tmp_path / name).write_text("[1]", "utf-8")
    table = kernels([tmp_path, *tmp_path.glob("*.*")])
    assert len(table) == 1
    assert sum("left out" in note for note in table.notes) == 3


# A suffix means the same in any case


@pytest.mark.parametrize("name", ["RUN.SQLITE", "Run.Db", "T.JSON.GZ"])
def test_files_of_any_case_are_read(name: str, tmp_path: Path) -> None:
    trace = SAMPLES / "torch_2rank" / "train_rank0.pt.trace.json.gz"
    sample = trace if name.endswith("GZ") else SAMPLES / "single_process.sqlite"
    path = Path(shutil.copy(sample, tmp_path / name))
    direct = ask("kernels", path, "--format", "csv").text
    assert ask("kernels", tmp_path, "--format", "csv").text == direct
    assert find_reports(tmp_path) == find_reports(tmp_path / "*") == [path]


@pytest.mark.parametrize("name", ["x.NSYS-REP", "x.QdRep"])
def test_binary_reports_of_any_case_are_reports(name: str, tmp_path: Path) -> None:
    """They are handed to nsys, and its export beside them is no second report."""
    path = tmp_path / name
    path.write_bytes(b"no such thing")
    shutil.copy(SAMPLES / "single_process.sqlite", tmp_path / "x.SQLITE")
    assert find_reports(tmp_path) == [path]
    assert "is no report of a kind" not in refused("kernels", path)


def test_measurements_and_snapshots_of_any_case(tmp_path: Path) -> None:
    csv = Path(shutil.copy(SAMPLES / "kernels_h100.ncu.csv", tmp_path / "K.CSV"))
    assert find_ncu_reports(tmp_path) == [csv]
    (tmp_path / "K.NCU-REP").write_bytes(b"")
    assert find_ncu_reports(tmp_path) == [tmp_path / "K.NCU-REP"]
    snapshot = shutil.copy(SAMPLES / "training_memory.pickle", tmp_path / "M.PICKLE")
    assert isinstance(open_report(snapshot), MemorySnapshot)
