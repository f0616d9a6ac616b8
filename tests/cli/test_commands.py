"""The command line as a whole: its overview, its help, former names, files of another kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import click
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


def test_the_overview_and_the_help_list_all_commands_in_the_order_of_the_work() -> None:
    lines = ask().text.splitlines()
    assert len(lines) <= 10
    assert max(map(len, lines)) <= 80
    assert "nsightpy summarize REPORT" in lines[1]
    assert COMMANDS.keys() <= set(" ".join(lines).split())
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
        command: Any = cli.get_command(click.Context(cli), first)
        options = {option for each in command.params for option in each.opts}
        assert {word for word in words if word.startswith("-")} <= options


@each_command
def test_every_command_is_a_function_and_has_help_and_a_schema(command: Listed) -> None:
    declared = getattr(nsightpy, command.function)
    assert declared is command.load()
    assert command.function == declared.__name__
    assert command.function in dir(nsightpy)
    own, _, shared = ask(command.name, "--help").text.partition("Options of every command:")
    assert command.help in " ".join(own.split())
    for arguments, text in ((declared.own, own), (declared.shared, shared)):
        typed = [word for each in arguments.values() for word in each.typed.split("/")]
        assert [word for word in typed if word not in text] == []

    if command.answers:
        schema = ask(command.name, "--schema").json
        assert schema == declared.schema
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
        f"import sys\nfrom nsightpy.cli.main import run\nrun({arguments!r})\n"
        f"sys.exit(', '.join({heavy!r} & sys.modules.keys()) or None)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr


FIGURES = {
    "roofline": ((NCU,), {}),
    "headroom": ((TRAINING,), {"ncu": SAMPLES / "training_4rank.ncu.csv"}),
    "instances": ((TRAINING,), {"of": "AllReduce"}),
    "compare": ((TRAINING, TRAINING), {}),
    "memory-usage": ((SNAPSHOT,), {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [each.name for each in COMMANDS.values() if each.figure])
def test_every_picture_is_a_function_of_the_library(name: str) -> None:
    reports, given = FIGURES.get(name, ((TRAINING,), {}))
    assert getattr(nsightpy, f"{COMMANDS[name].function}_figure")(*reports, **given).axes
