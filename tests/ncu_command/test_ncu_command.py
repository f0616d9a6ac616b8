"""Printed commands profile exactly the intended launches: in a shell, with a strict ncu."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from nsightpy.commands.select.command import select
from nsightpy.commands.select.plan import Plan
from nsightpy.errors import UsageError
from nsightpy.ncu_command.runs import Options, Run, argv, nvtx_filter
from tests.support.ncu_stand_in import Bench, Scripted, stand_in, write_export
from tests.support.reports import ask

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
    wanted = {"metric_set": "full", "sections": ["Occupancy"], "metrics": "a.sum,b.avg"}
    (line,) = lines(select(report, **wanted, extra=["--clock-control", "none"]))  # type: ignore[arg-type]
    assert (
        "--set full --section Occupancy --metrics a.sum,b.avg --clock-control none -o ncu_01 "
    ) in line
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
    assert os.access(tmp_path / "run.sh", os.X_OK)
    with pytest.raises(UsageError, match="script must be one of"):
        plan.script("lsf")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("train",), 2, "train: is no report; the application"),
        (("s.sqlite",), 1, "no such file"),
        (("--launcher", "srun"), 2, "--launcher is for"),
        (("--script", "plain", "--format", "json"), 2, "--script has one form"),
    ],
)
def test_wrong_command_lines(words: tuple[str, ...], code: int, said: str, tmp_path: Path) -> None:
    report = write_export(tmp_path / "r.sqlite", [Scripted("k")])
    assert said in ask("select", report, *words, expect=code).stderr
