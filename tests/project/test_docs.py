"""The documentation is true: its commands exist and run, its pages match the code."""

import re
import shlex
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import click
import make_docs
import pytest
from packaging.requirements import Requirement

from nsightpy.analysis.findings import engine
from nsightpy.analysis.findings.evidence import Evidence, JobEvidence
from nsightpy.analysis.findings.rule import Rule
from nsightpy.analysis.intervals import Spans
from nsightpy.analysis.time_budget import TimeBudget
from nsightpy.cli.main import cli
from nsightpy.command_table import COMMANDS, Listed
from nsightpy.commands.mcp.tools import guide
from tests.support.reports import ENVELOPE, ROOT, ask

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in PAGES}
README, LOOP, AGENTS = TEXTS["README.md"], TEXTS["loop.md"], TEXTS["agents.md"]
TRAINING = ROOT / "sample_reports" / "training_4rank"
ANSWERING = [name for name, each in COMMANDS.items() if each.answers]


def blocks(text: str, language: str = "bash") -> list[str]:
    """The code blocks of a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def spans(text: str) -> list[str]:
    """What stands in code marks, in blocks or after a prompt, line by line."""
    inline = re.findall(r"`([^`\n]+)`", text) + re.findall(r"^ {4}(.+)$", text, re.MULTILINE)
    fenced = "\n".join(blocks(text) + blocks(text, "yaml")).replace("\\\n", " ")
    return inline + re.findall(r"(?:^|\s)(nsightpy [^\n|`]*)", fenced)


def options(command: str) -> set[str]:
    declared = cli.get_command(click.Context(cli), command)
    assert declared is not None, command
    return {word for each in declared.params for word in each.opts}


# Pages


@pytest.mark.parametrize("page", [*TEXTS, "guide"])
def test_documented_commands_and_options_exist(page: str) -> None:
    every = {option for command in COMMANDS for option in options(command)}
    for span in spans(TEXTS.get(page) or guide()):
        words = span.split(" -- ")[0].split()
        typed = {word.partition("=")[0] for word in words if word.startswith("--")}
        if words[:1] == ["nsightpy"] and len(words) > 1 and words[1][0].isalpha():
            assert words[1] in {*COMMANDS, "COMMAND"}, span
            if words[1] in COMMANDS and page != "CHANGELOG.md":
                assert typed <= options(words[1]), span
        elif page in ("guide", "agents.md") and words[0] not in ("nsys", "ncu"):
            assert typed <= every, span


def test_every_command_is_on_the_first_page() -> None:
    assert [name for name in COMMANDS if f"| `{name}" not in README] == []


def test_frames_page_matches_the_schemas() -> None:
    assert TEXTS["frames.md"] == make_docs.frames_page(), "run scripts/make_docs.py"


def test_links_and_pictures_exist() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", TEXTS[page.name]):
            assert (page.parent / target).exists(), f"{page.name} -> {target}"


def test_every_dependency_has_a_bound_and_a_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    reasons = TEXTS["dependencies.md"]
    extras = [r for wanted in project["optional-dependencies"].values() for r in wanted]
    for text in [*project["dependencies"], *extras]:
        requirement = Requirement(text)
        bounds = {s.operator: s.version for s in requirement.specifier}
        assert ">=" in bounds, text
        assert requirement.name in reasons, text
        assert bounds[">="] in reasons, text


@pytest.mark.slow
def test_python_example_of_the_readme_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for example in blocks(README, "python"):
        exec(compile(example, "README.md", "exec"), {})


def test_the_command_and_the_rule_of_the_contributors_page_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command, rule = blocks(TEXTS["CONTRIBUTING.md"], "python")
    monkeypatch.setattr(engine, "RULES", [eval(rule, {"Rule": Rule})])
    budget = TimeBudget(Spans.of(0, 100), 100, 30, 70, 0, 0, 70, 0, 0)
    (finding, _) = engine.judge(JobEvidence([Evidence(3, 0, budget)]))
    assert finding.text.startswith("rank 3 waits for the network for 70.0 ns, 70 % of rank 3's")
    assert (finding.severity, finding.recoverable_ns) == ("warning", 70)

    assert len(command.splitlines()) < 60
    module = ModuleType("nsightpy.commands.registers")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(COMMANDS, "registers", Listed("registers", "GPU time by registers."))
    exec(compile(command, "CONTRIBUTING.md", "exec"), module.__dict__)
    times = [row["total_ns"] for row in module.registers(TRAINING, jobs=1).records()]
    assert times == sorted(times, reverse=True)
    assert len(times) > 1
    assert ask("registers", "--schema").json["title"] == "nsightpy registers"


# The tour of the loop runs as it is written

TOUR = [line for block in blocks(LOOP) for line in block.splitlines() if line]


@pytest.mark.slow
@pytest.mark.parametrize("line", TOUR)
def test_commands_of_the_tour_run(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sample_reports").symlink_to(ROOT / "sample_reports")
    monkeypatch.chdir(tmp_path)
    program, *words = shlex.split(line)
    assert program == "nsightpy"
    answer = ask(*words)
    if "-o" in words:
        assert (tmp_path / words[words.index("-o") + 1]).stat().st_size > 500
    else:
        assert answer.stdout


@pytest.mark.slow
def test_the_quoted_command_is_the_printed_one() -> None:
    (quoted,) = re.findall(r"^    (ncu .*?)\n\n", LOOP, re.DOTALL | re.MULTILINE)
    (line,) = (line for line in TOUR if "-- python train.py --steps" in line)
    printed = ask(*shlex.split(line)[1:]).text.splitlines()
    assert shlex.split(quoted.replace("\\\n", " ")) in [
        shlex.split(each) for each in printed if each.startswith("ncu ")
    ]


@pytest.mark.slow
def test_the_tour_quotes_the_figures_of_its_sample() -> None:
    measured = TRAINING.with_suffix(".ncu.csv")
    rows = ask("headroom", TRAINING, "--ncu", measured, "--format", "json").json["rows"]
    plain = " ".join(LOOP.replace("\n>", "\n").split())
    for figure in (
        f"is {100 * rows[0]['share']:.1f} % of the step",
        f"runs at {100 * rows[0]['roof_fraction']:.0f} % of its roof",
        f"at most {100 * rows[0]['ceiling_share']:.1f} % to gain",
    ):
        assert figure in plain
    assert all(row["matched_by"] == "function" for row in rows if row["matched_by"])


# What agents read: SKILL.md and docs/agents.md


def test_the_guide_is_printed_short_and_explains_every_command() -> None:
    text = guide()
    assert ask("mcp", "--skill").text == text
    assert text.startswith("---\nname: nsightpy\n")
    assert len(text.splitlines()) < 200
    marked = " ".join(spans(text)).split()
    assert [name for name in ANSWERING if name not in marked] == []


def test_figures_that_are_explained_are_columns() -> None:
    """Every name in code marks with an underscore is a column, a member or a parameter."""
    names = {*ENVELOPE, "variant_key", "what_would_help", "next_steps", "from_time", "to_time"}
    for command in ANSWERING:
        names |= set(re.findall(r"'([a-z0-9_]+)'", str(COMMANDS[command].load().schema)))
    for span in spans(guide()):
        if re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", span):
            assert span in names, span
