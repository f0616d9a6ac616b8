"""Printed commands profile exactly the intended launches: in a shell, with a strict ncu."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from nsightpy.commands.select.command import select
from nsightpy.commands.select.plan import Plan
from nsightpy.errors import UsageError
from nsightpy.ncu_command import NameFilter, Options, Run, argv, response_file, shell_line
from nsightpy.ncu_command.filters import bare_regex, nvtx_filter
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
MANGLED = st.text("_Zabfk0123$.", min_size=1, max_size=8)
GRIDS = st.sampled_from([(1, 1, 1), (8, 1, 1), (8, 2, 1)])


def launch_lists(names: st.SearchStrategy[str]) -> st.SearchStrategy[list[Scripted]]:
    """Launch sequences over few names, so that they repeat and overload one another."""
    pool = st.lists(
        st.tuples(names, names, names), min_size=1, max_size=4, unique_by=lambda n: n[0]
    )

    def launches(pool: list[tuple[str, str, str]]) -> st.SearchStrategy[list[Scripted]]:
        one = st.builds(
            lambda own, grid, shared, time, device: Scripted(
                *own, grid=grid, shared=shared, duration_ns=time, device=device
            ),
            st.sampled_from(pool),
            GRIDS,
            st.sampled_from([0, 512]),
            st.integers(1, 50),
            st.integers(0, 1),
        )
        return st.lists(one, min_size=1, max_size=25)

    return pool.flatmap(launches)


def assert_profiles(plan: Plan, launches: list[Scripted], profiled: list[list[int]]) -> None:
    """Each run profiled as many launches as it says, its own variants with their durations."""
    assert len(profiled) == len(plan.runs)
    for planned, places in zip(plan.runs, profiled, strict=True):
        assert len(places) == planned.run.count
        got = {(launches[p].names, launches[p].grid, launches[p].shared) for p in places}
        times = [launches[p].duration_ns for p in places]
        for variant, duration in planned.expected:
            own = ((variant.mangled, variant.base, variant.name), variant.grid)
            assert (*own, variant.dynamic_shared) in got
            assert duration in times


def through_parser(plan: Plan, launches: list[Scripted]) -> list[list[int]]:
    """What the stand-in's parser and filters make of the lines, cut by a shell's rules."""
    found = []
    for line in plan.lines():
        given, application = NCU.parse(shlex.split(line)[1:])
        assert tuple(application) == plan.options.application
        found.append(NCU.profiled(given, [one.for_ncu() for one in launches]))
    return found


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(launch_lists(NAMES), st.sampled_from(["auto", "function", "demangled"]))
@example([Scripted("regex:.*"), Scripted("x")], "auto")
@example([Scripted("-k"), Scripted("@file"), Scripted("--")], "auto")
@example([Scripted("a\nb"), Scripted("a"), Scripted("a\n"), Scripted("a\n\n")], "auto")
def test_every_run_profiles_its_launch_and_no_other(
    tmp_path_factory: pytest.TempPathFactory, launches: list[Scripted], form: str
) -> None:
    path = write_export(tmp_path_factory.mktemp("r") / "r.sqlite", launches)
    plan = select(path, coverage=1.0, form=form, outlier=True, application=("./app", "a b"))
    assert_profiles(plan, launches, through_parser(plan, launches))
    assert all(line.isascii() for line in plan.lines())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(launch_lists(MANGLED), st.integers(0, 2))
@example([*[Scripted("0", device=1)] * 4, Scripted("0", grid=(8, 1, 1), device=1)], 1)
@example(
    [
        *[Scripted("0", device=1)] * 4,
        Scripted("0", grid=(8, 1, 1), device=1),
        Scripted("0", grid=(8, 1, 1), device=0),
    ],
    1,
)
def test_one_run_profiles_one_of_each(
    tmp_path_factory: pytest.TempPathFactory, launches: list[Scripted], warm_up: int
) -> None:
    path = write_export(tmp_path_factory.mktemp("r") / "r.sqlite", launches)
    plan = select(path, coverage=1.0, one_run=True, warm_up=warm_up, application=("app",))
    assert len(plan.runs) == 1
    assert plan.selection is not None
    profiled = through_parser(plan, launches)
    assert_profiles(plan, launches, profiled)
    names = {choice.variant.mangled for choice in plan.selection.choices}
    matching = [p for p, one in enumerate(launches) if one.mangled in names]
    skip, count = plan.runs[0].run.skip, plan.runs[0].run.count
    assert profiled == [matching[skip : skip + count]]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(launch_lists(NAMES))
def test_lines_run_as_printed_in_a_real_shell(
    tmp_path_factory: pytest.TempPathFactory, launches: list[Scripted]
) -> None:
    bench = Bench(tmp_path_factory.mktemp("b"), launches)
    words = ("it's", "$HOME `x`", "a\nb", "--", "é", "*")
    plan = select(
        write_export(bench.folder / "r.sqlite", launches),
        application=(*bench.application(), *words),
    )
    done = bench.shell("\n".join(plan.lines()))
    assert "ERROR" not in done.stdout + done.stderr
    assert_profiles(plan, launches, bench.profiled())
    asked = shlex.join(words)
    shown = bench.shell(f"set -- {asked}; printf '|%q' \"$@\"").stdout
    assert bench.applications() == [shown] * len(plan.runs)


def test_the_words_that_every_command_has(tmp_path: Path) -> None:
    report = write_export(tmp_path / "r.sqlite", [Scripted("_Z1kv", "k", "k()")] * 3)
    (line,) = select(report, application=("python", "train.py")).lines()
    assert line == (
        "ncu --config-file off --target-processes all --kernel-name-base mangled -k _Z1kv "
        "--launch-skip 1 --launch-count 1 --set roofline -o ncu_01 -- python train.py"
    )
    (line,) = select(
        report,
        metric_set="full",
        sections=["Occupancy"],
        metrics=["a.sum", "b.avg"],
        kill=True,
        overwrite=True,
        capture_range="cudaProfilerApi",
        extra=["--clock-control", "none"],
        output="out/k",
        rank_variable="SLURM_PROCID",
    ).lines()
    assert "--profile-from-start off --kill yes --set full --section Occupancy" in line
    assert "--metrics a.sum,b.avg --clock-control none -f -o 'out/k_01_%q{SLURM_PROCID}'" in line


def test_texts_mean_what_a_shell_would_make_of_them(tmp_path: Path) -> None:
    report = write_export(tmp_path / "r.sqlite", [Scripted("k")] * 3)
    words = select(
        report,
        application=["python", "a b.py"],
        sections=["Occupancy"],
        metrics=["a.sum"],
        extra=["--clock-control", "none"],
    )
    texts = select(
        report,
        application="python 'a b.py'",
        sections="Occupancy",
        metrics="a.sum",
        extra="--clock-control none",
    )
    assert texts.lines() == words.lines()


def test_fallbacks_name_the_kernel_by_function_and_by_demangled_regex(tmp_path: Path) -> None:
    launches = [Scripted("_Z1kIiEvv", "k", "void k<(int)1>()")] * 3
    report = write_export(tmp_path / "r.sqlite", launches)
    plan = select(report, application=("app",))
    document = plan.members()["runs"][0]
    forms = [document["argv"], *document["fallbacks"]]
    assert [form[form.index("--kernel-name-base") + 1] for form in forms] == [
        *("mangled", "function", "demangled"),
    ]
    assert [("--rename-kernels" in form) for form in forms] == [False, False, True]
    for form in forms:
        given_, _ = NCU.parse(form[1:])
        assert NCU.profiled(given_, [one.for_ncu() for one in launches]) == [1]
    older = select(report, application=("app",), version=(2024, 1))
    assert "--rename-kernels" not in older.members()["runs"][0]["fallbacks"][1]


def test_a_rank_goes_into_the_name_where_there_are_several(tmp_path: Path) -> None:
    for rank in range(2):
        write_export(tmp_path / f"r_rank{rank}.sqlite", [Scripted("k")])
    assert "-o 'ncu_01_%q{RANK}'" in select(tmp_path).lines()[0]


def test_long_commands_use_a_response_file(tmp_path: Path) -> None:
    names = [f"_Z{n:03d}{'long' * 60}.$x" for n in range(60)]
    launches = [Scripted(name) for name in names * 2]
    bench = Bench(tmp_path, launches)
    plan = select(
        write_export(tmp_path / "r.sqlite", launches),
        coverage=1.0,
        one_run=True,
        application=bench.application(),
        output="a b",
    )
    (line,) = plan.lines()
    assert "'@a b.args'" in line
    done = bench.shell(line)
    assert done.returncode == 0, done.stdout
    assert bench.profiled() == [list(range(60, 120))]
    record = plan.members()["runs"][0]["response_file"]
    assert (tmp_path / record["name"]).read_text() == record["text"]
    assert response_file(Run(NameFilter("mangled", ("k",)), 0, 1, "x"), Options()) is None


@given(NAMES)
def test_bare_regexes_depend_on_no_quoting(name: str) -> None:
    text = bare_regex(name)
    assert shlex.split(text) == [text]
    assert NCU.name_test(f"regex:^{text}$")(name)


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
    done = bench.shell(plan.lines()[0])
    assert "No kernels" not in done.stdout, done.stdout
    assert plan.rows[0][5] == 5
    assert_profiles(plan, launches, bench.profiled())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-k", "a", "-k", "b"], "'--kernel-name' cannot be specified more than once"),
        (["-k", "regex:(a"], "Invalid regex provided to --kernel option. Unmatched marking"),
        (["--kernel-id", "::a::b:1"], "Invalid kernel identifier"),
        (["--output", "x"], "unrecognised option '--output'"),
        (["--launch-count", "many"], "is invalid"),
        (["--launch-count"], "the required argument for option '--launch-count' is missing"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_stand_in_is_strict(words: list[str], said: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, [Scripted("a")])
    done = bench.shell(shlex.join(["ncu", *words, "--", *bench.application()]))
    assert done.returncode == 1
    assert f"==ERROR== {said}" in done.stdout or said in done.stdout
    assert bench.applications() == []


def test_the_stand_in_counts_as_ncu_does() -> None:
    launches: list[dict[str, Any]] = [
        Scripted("a", grid=grid, device=device).for_ncu()
        for grid, device in [((1, 1, 1), 0), ((2, 1, 1), 1), ((1, 1, 1), 1), ((2, 1, 1), 0)] * 2
    ]

    def profiled(*words: str) -> list[int]:
        found: list[int] = NCU.profiled(NCU.parse([*words, "app"])[0], launches)
        return found

    assert profiled("-s", "1", "-c", "2") == [1, 2]
    assert profiled("-s", "1", "-c", "1", "--filter-mode", "per-gpu") == [2, 3]
    assert profiled("-s", "1", "-c", "1", "--filter-mode", "per-launch-config") == [2, 3]
    assert profiled("--kernel-id", "::a:2") == [2, 3]
    assert profiled("--kernel-id", "::regex:^a$:1|3") == [0, 1, 4, 5]
    assert profiled("--launch-skip-before-match", "6") == [6, 7]


def test_the_command_line_prints_what_the_library_plans(tmp_path: Path) -> None:
    report = write_export(tmp_path / "r.sqlite", [Scripted("_Z1kv", "k", "k()")] * 3)
    plan = select(report, application=("app", "--flag", "--", "x"))
    words = ("select", report)
    application = ("--", "app", "--flag", "--", "x")
    assert ask(*words, "--lines", *application).text == plan.lines()[0] + "\n"
    assert plan.lines()[0] in ask(*words, *application).text.splitlines()
    document = json.loads(ask(*words, "--format", "json", *application).stdout)
    assert document["runs"] == plan.members()["runs"]
    assert document["rows"][0]["command"] == plan.lines()[0]
    assert ask(*words, "--script", "plain", *application).text == plan.script("plain")
    assert "--lines exclude each other" in ask(
        *words, "--lines", "--script", "mpi", *application, expect=2
    ).stderr  # fmt: skip
    assert "after --" in ask(*words, "--run", expect=2).stderr
    assert "train: is no report; the application" in ask(*words, "train", expect=2).stderr
    assert "no such file" in ask(*words, tmp_path / "s.sqlite", expect=1).stderr
    assert "--launcher is for" in ask(*words, "--launcher", "srun", expect=2).stderr
    with pytest.raises(UsageError, match="script must be one of"):
        plan.script("lsf")


def test_the_words_are_the_line() -> None:
    run, options = Run(NameFilter("function", ("a b",)), 3, 1, "out"), Options()
    assert shlex.split(shell_line(run, options)) == argv(run, options)
