"""Every command is a function of the library with the same parameters, explained once."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

import nsightpy
from nsightpy.command_table import COMMANDS, FIGURES, FUNCTIONS, Command
from nsightpy.errors import UsageError
from nsightpy.query.parameters import COMMON, SHARED
from nsightpy.query.request import Common
from tests.support.reports import ask

ROOT = Path(__file__).parent.parent.parent
SAMPLES = ROOT / "sample_reports"
TRAINING = SAMPLES / "training_4rank"
TORCH = SAMPLES / "torch_2rank"
# How a result is shown and where it goes; the library hands it back instead.
PRESENTATION = {"format_", "output", "force", "quiet", "verbose"}
PRESENTATION_OF = {
    "select": {"lines", "script", "launcher", "run", "csv"},
    "compare": {"top"},
    "timeline": {"marked"},
}
OLD_FLAGS = {"usage", "queue", "sync", "metrics"}
# What is typed otherwise: an option that takes away, a name that -o or --force has already.
NAMES = {"no_cache": "use_cache", "no_calls": "calls"}
NAMES_OF = {
    "select": {"ncu_output": "output", "ncu_force": "overwrite"},
    "compare": {"reports": "before"},
}
# What a program can say and a command line has no option for: the suffix of -o decides over
# `detail` and `counters`, words after -- are the `application`, ncu itself says its `version`,
# where the files of export go is part of the question, and what stands on both sides of -- are
# `before` and `after`.
LIBRARY_ONLY = {"progress"}
LIBRARY_ONLY_OF = {
    "timeline": {"detail", "counters"},
    "select": {"application", "version"},
    "export": {"output", "file_format", "force"},
    "compare": {"after", "overwrite"},
    "report": {"before"},
}

# What is typed at least.
WORDS_OF = {
    "cache": [],
    "schema": [],
    "skill": [],
    "mcp": ["--root", "DIR"],
    "headroom": ["REPORT", "--ncu", "NCU"],
    "stats": ["REPORT", "--report", "NAME"],
    "export": ["REPORT", "-o", "DIR"],
    "pace": ["REPORT", "--of", "NAME"],
    "compare": ["BEFORE", "AFTER"],
}

each_command = pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))


def options_of(command: Command) -> dict[str, click.Parameter]:
    """What is typed for a command, by the parameter of the function that it stands for."""
    typed = importlib.import_module(command.cli_module).command.params
    left_out = PRESENTATION | PRESENTATION_OF.get(command.name, set())
    names = NAMES | NAMES_OF.get(command.name, {})
    return {
        names.get(each.name, each.name): each
        for each in typed
        if each.name not in left_out and not getattr(each, "hidden", False)
    }


def function_of(command: Command) -> Callable[..., Any]:
    function = getattr(nsightpy, command.function)
    assert callable(function)
    return function


@each_command
def test_every_command_is_a_function_of_the_library(command: Command) -> None:
    assert function_of(command).__name__ == command.function
    assert command.function in dir(nsightpy)
    assert command.function in nsightpy.__all__


@each_command
def test_command_and_function_have_the_same_parameters(command: Command) -> None:
    function = inspect.signature(function_of(command)).parameters
    cli = importlib.import_module(command.cli_module).command
    words = WORDS_OF.get(command.name, ["REPORT"])
    given = cli.make_context(command.name, words).params
    only = LIBRARY_ONLY | LIBRARY_ONLY_OF.get(command.name, set())
    typed = options_of(command)
    assert set(typed) == set(function) - only
    for name, option in typed.items():
        if option.required or name == "reports":
            assert function[name].default is inspect.Parameter.empty
        elif name in NAMES.values():
            assert function[name].default is True
        else:
            assert (given[option.name] or None) == (function[name].default or None), name


@each_command
def test_every_parameter_is_explained(command: Command) -> None:
    function = function_of(command)
    own, _, shared = (function.__doc__ or "").partition("Parameters that commands share:")
    for name in inspect.signature(function).parameters:
        if name in SHARED:
            assert f"    {name}{SHARED[name].typed}: {SHARED[name].meaning}" in shared.splitlines()
        elif name != "reports":
            assert f"`{name}`" in own, name


def test_common_parameters_are_those_of_every_request() -> None:
    assert {each.name for each in COMMON} == set(Common.__annotations__)


@each_command
def test_help_explains_shared_options_in_the_same_words(command: Command) -> None:
    for name, option in options_of(command).items():
        if name in SHARED:
            assert isinstance(option, click.Option)
            assert option.help == SHARED[name].meaning
            assert option.opts == [SHARED[name].option]


def test_a_wrong_keyword_names_the_nearest_one() -> None:
    with pytest.raises(TypeError, match=r"kernels\(\).*'tpo'; did you mean 'top'\?"):
        nsightpy.kernels(TRAINING, tpo=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="did you mean 'from_time'"):
        nsightpy.breakdown_figure(TRAINING, fromtime=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"roofline_figure\(\).*'clocks'; did you mean 'clock'"):
        nsightpy.roofline_figure(TRAINING, clocks="max")


@pytest.mark.parametrize(
    "name", [name for name in nsightpy.__all__ if inspect.isfunction(getattr(nsightpy, name))]
)
def test_a_wrong_keyword_is_said_of_the_function_that_was_called(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword"):
        getattr(nsightpy, name)(TRAINING, nothing=1)


def test_parameters_of_a_function_itself_are_not_explained_as_shared_ones() -> None:
    explained = inspect.getdoc(nsightpy.aligned_frame) or ""
    assert "--jobs N" in explained
    assert "--name" not in explained


@pytest.mark.parametrize("top", [-1, 1.5, "3"])
def test_top_is_a_number_of_rows(top: Any) -> None:
    for function in (nsightpy.kernels, nsightpy.findings, nsightpy.roofline, nsightpy.trace):
        with pytest.raises(UsageError, match="top must be a number of rows"):
            function(TRAINING, top=top)


def test_type_checkers_see_the_same_functions() -> None:
    tree = ast.parse((ROOT / "nsightpy" / "__init__.py").read_text(encoding="utf-8"))
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {**FIGURES, **FUNCTIONS}.items() <= seen.items()


ALL_HEAVY = {"numpy", "pandas", "sqlalchemy", "matplotlib", "pyarrow", "rich"}


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--help"], ALL_HEAVY),
        (["kernels", "--help"], ALL_HEAVY),
        (["cache"], ALL_HEAVY),
        (["info", str(TORCH), "--no-cache", "--format", "json"], ALL_HEAVY - {"numpy"}),
    ],
    ids=["help", "help of a command", "cache", "trace"],
)
def test_what_is_not_needed_is_not_imported(arguments: list[str], heavy: set[str]) -> None:
    """The words are known without the readers, the analyses and what they import."""
    script = (
        "import sys\nfrom nsightpy.cli.main import run\n"
        f"run({arguments!r})\n"
        f"heavy = {heavy!r}\n"
        "sys.exit(', '.join(heavy & sys.modules.keys()) or None)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("command", "old", "flag"),
    [
        ("memory-usage", "memory", "--usage"),
        ("launch-queues", "launches", "--queue"),
        ("sync-waits", "launches", "--sync"),
        ("nvtx-metrics", "nvtx", "--metrics"),
    ],
)
def test_old_flags_are_hidden_synonyms(command: str, old: str, flag: str) -> None:
    for form in ("json", "table"):
        new, same = (
            ask(*words, TRAINING, "--format", form, "--top", "2")
            for words in ([command], [old, flag])
        )
        assert (new.stdout, new.stderr) == (same.stdout, same.stderr)
    assert ask(command, TRAINING, "--format", "json").json["schema"] == f"nsightpy.{command}/1"
    assert flag not in ask(old, "--help").text


@pytest.mark.parametrize("name", FIGURES)
def test_every_picture_is_a_function_of_the_library(name: str) -> None:
    made = getattr(nsightpy, name)
    assert (made.__module__, made.__name__) == ("nsightpy.figures", name)
    if name == "roofline_figure":
        assert made(SAMPLES / "kernels_h100.ncu.csv").axes
    elif name == "headroom_figure":
        assert made(TRAINING, ncu=SAMPLES / "training_4rank.ncu.csv").axes
    elif name == "pace_figure":
        assert made(TRAINING, of="AllReduce").axes
    elif name == "comparison_figure":
        assert made(TRAINING, TRAINING).axes
    elif name != "memory_figure":
        assert made(TRAINING).axes
