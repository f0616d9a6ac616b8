"""select --run: ncu is found and run, its progress progress, its failures explained."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nsightpy.commands.select.command import select
from nsightpy.commands.select.run_plan import own_rank, run_plan
from nsightpy.errors import ToolFailedError, ToolNotFoundError
from nsightpy.readers.ncu.run import OutputReader, available, remedy
from nsightpy.readers.tools import nvidia_tools
from tests.support.ncu_stand_in import STAND_INS, Bench, Scripted, write_export
from tests.support.reports import ask

LAUNCHES = [Scripted("_Z1kIiEvv", "k", "void k<int>()", duration_ns=t) for t in (9, 5, 6, 7)]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A folder to run in, the stand-in as the only ncu, and a report."""
    for name in [
        n for n in os.environ if n.startswith(("STAND_IN_", "NSIGHTPY_", "SLURM_", "OMPI_"))
    ]:
        monkeypatch.delenv(name)
    for name in ("RANK", "PMI_RANK", "PMIX_RANK", "PALS_RANKID"):
        monkeypatch.delenv(name, raising=False)
    made = Bench(tmp_path, LAUNCHES)
    (tmp_path / "launches.json").write_text(json.dumps([one.for_ncu() for one in LAUNCHES]))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("NSIGHTPY_NCU", str(STAND_INS / "ncu"))
    monkeypatch.setenv("STAND_IN_NCU_LAUNCHES", str(tmp_path / "launches.json"))
    monkeypatch.setenv("STAND_IN_NCU_LOG", str(made.log))
    monkeypatch.chdir(tmp_path)
    write_export(tmp_path / "r.sqlite", LAUNCHES)
    return made


def test_a_plan_is_run_and_its_reports_named(bench: Bench) -> None:
    progress: list[str] = []
    plan = select("r.sqlite", application=bench.application())
    made = run_plan(plan, report_progress=progress.append)
    assert bench.profiled() == [[2]]
    assert made.records() == [
        {
            "order": "1",
            "name": "void k<int>()",
            "form": "mangled",
            "profiled": 1,
            "passes": 15,
            "report": str(bench.folder / "ncu_01.ncu-rep"),
        }
    ]
    assert made.reports == (bench.folder / "ncu_01.ncu-rep",)
    assert any("==PROF== Profiling" in line for line in progress)
    assert any("nsightpy headroom r.sqlite --ncu" in note for note in made.notes)


def test_the_command_line_runs_and_reads_csv_as_it_comes(bench: Bench) -> None:
    words = ("--", *bench.application())
    shown = ask("select", "r.sqlite", "--run", *words)
    assert "ncu_01.ncu-rep" in shown.text
    assert "==PROF== Profiling" in shown.stderr
    joined = ask("select", "r.sqlite", "--run", "--csv", "--format", "json", *words).json
    assert joined["schema"] == "nsightpy.headroom/1"
    assert [(row["name"], row["ncu_ns"]) for row in joined["rows"]] == [("void k<int>()", 1000)]
    assert sorted(path.name for path in bench.folder.glob("ncu_*")) == ["ncu_01.ncu-rep"]


def test_names_that_match_nothing_are_tried_another_way(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another build has other mangled names, a renaming ncu other demangled ones."""
    other = [replace(one, mangled="_Z1k_other") for one in LAUNCHES]
    Path("launches.json").write_text(json.dumps([one.for_ncu() for one in other]))
    progress: list[str] = []
    made = run_plan(
        select("r.sqlite", application=bench.application()), report_progress=progress.append
    )
    assert made.column("form") == ["function"]
    assert bench.profiled() == [[], [2]]
    assert "no kernel matched by its mangled name" in progress
    Path("ncu_01.ncu-rep").unlink()
    strange = [Scripted("x", "y", "z")] * 4
    Path("launches.json").write_text(json.dumps([one.for_ncu() for one in strange]))
    with pytest.raises(ToolFailedError, match=r"No launch matched.*ncu saw 1 kernel: y\.") as error:
        run_plan(select("r.sqlite", application=bench.application()))
    assert "No kernels were profiled" in str(error.value)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("permission", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("busy", "dcgmi profq --pause"),
        ("old-driver", "update the driver"),
    ],
)
def test_failures_name_the_remedy(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, fault: str, said: str
) -> None:
    monkeypatch.setenv("STAND_IN_NCU_FAULT", fault)
    answer = ask("select", "r.sqlite", "--run", "--", *bench.application(), expect=1)
    assert said in answer.stderr
    assert "==ERROR==" in answer.stderr


def test_a_report_that_exists_is_not_written_over(bench: Bench) -> None:
    Path("ncu_01.ncu-rep").write_text("mine")
    words = ("--", *bench.application())
    answer = ask("select", "r.sqlite", "--run", *words, expect=1)
    assert "--ncu-force" in answer.stderr
    assert Path("ncu_01.ncu-rep").read_text() == "mine"
    ask("select", "r.sqlite", "--run", "--ncu-force", *words)
    assert Path("ncu_01.ncu-rep").read_text() != "mine"


def test_an_old_ncu_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_NCU_VERSION", "2020.3")
    answer = ask("select", "r.sqlite", "--run", "--", *bench.application(), expect=1)
    assert "2020.3.1.0" in answer.stderr
    assert "has no set roofline" in answer.stderr
    ask("select", "r.sqlite", "--run", "--set", "detailed", "--", *bench.application())
    answer = ask(
        *("select", "r.sqlite", "--run", "--set", "detailed", "--ncu-force"),
        *("--ncu-option", "--filter-mode=per-gpu"),
        *("--", *bench.application()),
        expect=1,
    )
    assert "too old for --filter-mode" in answer.stderr


def test_without_ncu_the_message_says_what_to_set(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NSIGHTPY_NCU")
    nowhere = replace(nvidia_tools.KINDS["ncu"], linux=(), windows=())
    monkeypatch.setitem(nvidia_tools.KINDS, "ncu", nowhere)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolNotFoundError, match="NSIGHTPY_NCU"):
        run_plan(select("r.sqlite", application=("app",)))


def test_an_application_that_fails_keeps_what_was_profiled(bench: Bench) -> None:
    failing = bench.folder / "failing"
    failing.write_text("#!/bin/sh\nexit 3\n")
    failing.chmod(0o755)
    made = run_plan(select("r.sqlite", application=(str(failing),)))
    assert made.column("profiled") == [1]
    assert any("ended with an error" in note for note in made.notes)


def test_other_ranks_run_the_application_untouched(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in range(2):
        write_export(bench.folder / f"job_rank{rank}.sqlite", LAUNCHES)
    plan = select(sorted(bench.folder.glob("job_*")), application=bench.application())
    monkeypatch.setenv("SLURM_PROCID", "1")
    made = run_plan(plan)
    assert made.rows == ()
    assert bench.profiled() == []
    assert bench.applications() == ["1|''"]
    monkeypatch.setenv("SLURM_PROCID", "0")
    assert [path.name for path in run_plan(plan).reports] == ["ncu_01_0.ncu-rep"]
    assert any(
        "RANK is in the names of ncu's reports: the launcher has to set it" in note
        for note in plan.notes
    )
    monkeypatch.setenv("RANK", "0")
    again = replace(plan, options=replace(plan.options, overwrite=True, rank_variable="RANK"))
    assert [path.name for path in run_plan(again).reports] == ["ncu_01_0.ncu-rep"]
    monkeypatch.delenv("RANK")
    strange = [replace(one, mangled="_Z1k_other") for one in LAUNCHES]
    Path("launches.json").write_text(json.dumps([one.for_ncu() for one in strange]))
    starts = len(bench.applications())
    with pytest.raises(ToolFailedError, match="--form function"):
        run_plan(again)
    assert len(bench.applications()) == starts + 1, "the other ranks are in their next run by then"
    assert own_rank({"SLURM_PROCID": "4", "OMPI_COMM_WORLD_RANK": "2"}) == 2
    assert own_rank({"RANK": "x"}) is None


def test_progress_of_all_versions_is_understood() -> None:
    progress: list[str] = []
    listener = OutputReader(progress.append)
    listener(b'noise\n==PROF== Profiling "a b": 0%....50%')
    listener(b'....100% - 9 passes\r\n==PROF== Profiling "c" - 12: 0%....50%....100% - 1 pass\n')
    listener(
        b'==PROF== Profiling "d" - 3 (4/9): 0%....50%....100% - 30 passes\n==PROF== Report: /x/y'
    )
    listener.finish()
    assert listener.profiled == [("a b", 9), ("c", 1), ("d", 30)]
    assert listener.report == Path("/x/y")
    assert len(progress) == 4
    assert available("Available Kernels:\n1. a(int)\n2. b\n\n") == ["a(int)", "b"]
    assert remedy("all is well") == ""
