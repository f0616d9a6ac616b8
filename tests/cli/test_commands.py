"""The command line as a contract: columns, formats, help, options, former names, other files."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import click
import pytest

import nsightpy
from nsightpy.cli.declared import option_of
from nsightpy.cli.main import cli
from nsightpy.command_table import COMMANDS, FORMER, GROUPS, Listed
from nsightpy.errors import UsageError
from nsightpy.query.command import Argument
from nsightpy.query.options import Option
from tests.support.golden import FOLDER
from tests.support.reports import ask, refused
from tests.support.samples import MEASURED, NCU, SINGLE, SNAPSHOT, TRACES, TRAINING

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
def test_another_kind_of_file(name: str, path: Path, answering: str, tmp_path: Path) -> None:
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
        (["info", str(TRACES), "--no-cache", "--format", "json"], ALL_HEAVY - {"numpy"}),
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
    "headroom": ((TRAINING,), {"ncu": MEASURED}),
    "instances": ((TRAINING,), {"of": "AllReduce"}),
    "compare": ((TRAINING, TRAINING), {}),
    "memory-usage": ((SNAPSHOT,), {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [each.name for each in COMMANDS.values() if each.figure])
def test_every_picture_is_a_function_of_the_library(name: str) -> None:
    reports, given = FIGURES.get(name, ((TRAINING,), {}))
    assert getattr(nsightpy, f"{COMMANDS[name].function}_figure")(*reports, **given).axes


ARGUMENTS = (
    Argument.of("calls", Annotated[bool, Option("Off.")], True),
    Argument.of("tree", Annotated[bool, Option("On.")], False),
    Argument.of("fold", Annotated[bool | None, Option("Both.", typed="--fold/--unfold")], None),
    Argument.of("report", Annotated[str, Option("Which.", "NAME", typed="--report -r")], "a"),
    Argument.of("words", Annotated[tuple[str, ...], Option("Some.", "RE", several=True)], ()),
    Argument.of("progress", Annotated[object, Option("Told.", typed="")], None),
)
NOTHING = {a.name: a.default for a in ARGUMENTS if a.typed}


def parsed(*words: str) -> dict[str, Any]:
    options = [option for argument in ARGUMENTS if (option := option_of(argument))]
    command = click.Command("x", params=options, callback=lambda **given: given)
    taken: dict[str, Any] = command.main(list(words), standalone_mode=False)
    return taken


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        *(((), {}), (("--no-calls",), {"calls": False}), (("--tree",), {"tree": True})),
        *((("--fold",), {"fold": True}), (("--unfold",), {"fold": False})),
        *(((name, "b"), {"report": "b"}) for name in ("-r", "--report")),
        (("--words", "b", "--words", "c"), {"words": ("b", "c")}),
    ],
)
def test_what_is_typed(words: tuple[str, ...], changed: dict[str, Any]) -> None:
    assert parsed(*words) == {**NOTHING, **changed}


@pytest.mark.parametrize("words", [("--progress", "x"), ("--calls",)])
def test_what_cannot_be_typed(words: tuple[str, ...]) -> None:
    with pytest.raises(click.UsageError):
        parsed(*words)


# What scripts rely on: these columns come first, in this order. By what a command is split, or
# the columns that it has without.
COLUMNS = dict(
    line.split(": ", maxsplit=1)
    for line in (FOLDER / "columns.txt").read_text(encoding="utf-8").splitlines()
)


@pytest.mark.parametrize("columns", COLUMNS)
def test_the_columns_of_the_contract_come_first(columns: str) -> None:
    layouts = COMMANDS[columns.split(maxsplit=1)[0]].load().layouts
    found = [",".join(field.name for field in layout) for layout in layouts]
    wanted = COLUMNS[columns]
    assert any(each.startswith(wanted) for each in (found if " --" in columns else found[:1]))
    known = {name.split()[0] for name in COLUMNS} | {"stats", "export"}
    assert {name for name, each in COMMANDS.items() if each.load().layouts} == known


def test_piped_output_is_whole_and_plain() -> None:
    answer = ask("summarize", TRAINING)
    assert "\x1b" not in answer.text
    assert "…" not in answer.text
    assert "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<" in answer.text
    assert answer.stderr == ""


@pytest.mark.parametrize(
    ("suffix", "given", "format_"),
    [
        (".csv", (), "csv"),
        (".json", (), "json"),
        (".md", (), "markdown"),
        (".MARKDOWN", (), "markdown"),
        (".parquet", (), "parquet"),
        (".txt", (), "table"),
        (".csv", ("--format", "json"), "json"),
    ],
)
def test_the_suffix_of_the_output_says_the_format_unless_it_is_given(
    tmp_path: Path, suffix: str, given: tuple[str, ...], format_: str
) -> None:
    by_suffix, by_name = tmp_path / f"by_suffix{suffix}", tmp_path / "by_name"
    ask("kernels", SINGLE, "-o", by_suffix, *given)
    ask("kernels", SINGLE, "--format", format_, "-o", by_name)
    assert by_suffix.read_bytes() == by_name.read_bytes()
