"""The command line as a whole: its overview, its help, former names, files of another kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import nsightpy
from nsightpy.cli.main import cli
from nsightpy.command_table import COMMANDS, FORMER, GROUPS, Listed
from nsightpy.errors import UsageError
from tests.support.reports import ROOT, ask, refused

SAMPLES = ROOT / "sample_reports"
TRAINING = SAMPLES / "training_4rank"
TORCH = SAMPLES / "torch_2rank"
NCU = SAMPLES / "kernels_h100.ncu.csv"
SNAPSHOT = SAMPLES / "training_memory.pickle"
# What is typed at least beside a report.
WORDS_OF = {
    "headroom": ("--ncu", NCU),
    "stats": ("--report", "nvtx_sum"),
    "instances": ("--of", "step"),
    "compare": (TRAINING,),
}
READS_ANYTHING = ("info", "report", "compare", "roofline", "memory-usage")
each_command = pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))


def test_alone_it_fits_ten_lines_of_a_terminal() -> None:
    lines = ask().text.splitlines()
    assert len(lines) <= 10
    assert max(map(len, lines)) <= 80
    assert "nsightpy summarize REPORT" in lines[1]
    words = " ".join(lines).split()
    assert [name for name in COMMANDS if name not in words] == []


def test_help_lists_all_commands_in_the_order_of_the_work() -> None:
    lines = ask("--help").text.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ") and line.split()]
    assert [name for name in listed if name in COMMANDS] == list(COMMANDS)
    assert [line[:-1] for line in lines if line[:-1] in GROUPS] == list(GROUPS)


@pytest.mark.parametrize("name", FORMER)
def test_former_names_say_the_new_spelling(name: str) -> None:
    said = refused(name, TRAINING, code=2)
    assert f"{name} is now: nsightpy {FORMER[name]}" in said
    first, *words = FORMER[name].split()
    if first in COMMANDS:
        known = {option for each in command_of(first).params for option in each.opts}
        assert {word for word in words if word.startswith("-")} <= known


def command_of(name: str) -> Any:
    import click

    made = cli.get_command(click.Context(cli), name)
    assert made is not None
    return made


@each_command
def test_every_command_is_a_function_of_the_library(command: Listed) -> None:
    function = getattr(nsightpy, command.function)
    assert function is command.load()
    assert function.__name__ == command.function
    assert command.function in dir(nsightpy)


@each_command
def test_help_has_a_commands_own_options_in_a_section_of_their_own(command: Listed) -> None:
    declared = command.load()
    own, _, shared = ask(command.name, "--help").text.partition("Options of every command:")
    assert command.help in " ".join(own.split())
    for arguments, text in ((declared.own, own), (declared.shared, shared)):
        typed = [word for each in arguments.values() for word in each.typed.split("/")]
        assert [word for word in typed if word not in text] == []


@each_command
def test_the_schema_is_printed_of_what_answers_in_json(command: Listed) -> None:
    if command.answers:
        schema = ask(command.name, "--schema").json
        assert schema == command.load().schema
        assert schema["properties"]["schema"] == {"const": f"nsightpy.{command.name}/1"}


@pytest.mark.parametrize(
    "name", [each.name for each in COMMANDS.values() if each.name not in READS_ANYTHING]
)
@pytest.mark.parametrize(
    ("path", "answering"),
    [(NCU, "nsightpy roofline"), (SNAPSHOT, "nsightpy memory-usage")],
    ids=["ncu", "snapshot"],
)
def test_a_file_of_another_kind_names_the_command_that_answers_it(
    name: str, path: Path, answering: str, tmp_path: Path
) -> None:
    if not COMMANDS[name].load().positional:
        return
    words = WORDS_OF.get(name, ())
    if not COMMANDS[name].answers:
        words = ("-o", tmp_path / ("timeline.png" if name == "timeline" else "folder"))
    assert f"`{answering} {path}`" in refused(name, path, *words)


@pytest.mark.parametrize("top", [-1, "3"])
def test_top_is_a_number_of_rows(top: Any) -> None:
    for function in (nsightpy.kernels, nsightpy.findings, nsightpy.roofline, nsightpy.compare):
        with pytest.raises(UsageError, match="top must be a number"):
            function(TRAINING, top=top)


ALL_HEAVY = {"numpy", "pandas", "sqlalchemy", "matplotlib", "pyarrow", "rich"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        ([], ALL_HEAVY),
        (["--help"], ALL_HEAVY),
        (["trace"], ALL_HEAVY),
        (["info", str(TORCH), "--no-cache", "--format", "json"], ALL_HEAVY - {"numpy"}),
    ],
    ids=["alone", "help", "former name", "trace"],
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
    assert done.returncode == 0, done.stderr


FIGURES = {
    "roofline": ((NCU,), {}),
    "headroom": ((TRAINING,), {"ncu": SAMPLES / "training_4rank.ncu.csv"}),
    "instances": ((TRAINING,), {"of": "AllReduce"}),
    "launches": ((TRAINING,), {"by": "stream"}),
    "compare": ((TRAINING, TRAINING), {}),
    "memory-usage": ((SNAPSHOT,), {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [each.name for each in COMMANDS.values() if each.figure])
def test_every_picture_is_a_function_of_the_library(name: str) -> None:
    places, given = FIGURES.get(name, ((TRAINING,), {}))
    made = getattr(nsightpy, f"{COMMANDS[name].function}_figure")(*places, **given)
    assert made.axes
