"""SKILL.md and docs/agents.md name only what there is."""

from __future__ import annotations

import re
from pathlib import Path

import click

from nsightpy.cli.main import cli
from nsightpy.command_table import COMMANDS
from nsightpy.commands.mcp.tools import guide
from tests.support.documents import ENVELOPE
from tests.support.reports import ask

ROOT = Path(__file__).parent.parent.parent
ANSWERING = [name for name, each in COMMANDS.items() if each.answers]
AGENTS = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")


def options(command: str) -> set[str]:
    declared = cli.get_command(click.Context(cli), command)
    assert declared is not None
    return {word for each in declared.params for word in each.opts}


def spans(text: str) -> list[str]:
    """What stands in code marks or blocks."""
    return re.findall(r"`([^`\n]+)`", text) + re.findall(r"^ {4}(.+)$", text, re.MULTILINE)


def test_it_is_printed_and_short() -> None:
    text = guide()
    assert ask("mcp", "--skill").text == text
    assert text.startswith("---\nname: nsightpy\n")
    assert len(text.splitlines()) < 200


def test_commands_and_options_exist() -> None:
    every = {option for command in COMMANDS for option in options(command)}
    for text in (guide(), AGENTS):
        for span in spans(text):
            words = span.split(" -- ")[0].split()
            typed = [word.partition("=")[0] for word in words if word.startswith("--")]
            if words[0] == "nsightpy" and len(words) > 1:
                assert words[1] in {*COMMANDS, "COMMAND"}, span
                if words[1] in COMMANDS:
                    assert set(typed) <= options(words[1]), span
            elif words[0] not in ("nsys", "ncu"):
                assert set(typed) <= every, span


def test_every_command_that_answers_is_explained() -> None:
    text = guide()
    marked = " ".join(spans(text)).split()
    assert [name for name in ANSWERING if name not in marked] == []


def test_figures_that_are_explained_are_columns() -> None:
    """Every name in code marks with an underscore is a column, a member or a parameter."""
    known = {*ENVELOPE, "variant_key", "what_would_help", "next_steps", "from_time", "to_time"}
    for command in ANSWERING:
        known |= set(re.findall(r"'([a-z0-9_]+)'", str(COMMANDS[command].load().schema)))
    for span in spans(guide()):
        if re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", span):
            assert span in known, span


def test_ids_are_those_of_the_findings() -> None:
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    table = guide().partition("| `id` | what is lost")[2].partition("\n\n")[0]
    ids = [one for row in table.splitlines()[2:] for one in row.split("|")[1].split(",")]
    assert len(ids) > 20
    for each in ids:
        assert f"`{each.strip()}`" in page, each


def test_documented_members_are_those_of_the_documents() -> None:
    for member in ENVELOPE:
        assert f"`{member}`" in AGENTS
    for kind in {key.kind for name in ANSWERING for key in COMMANDS[name].load().keys}:
        assert f"| `{kind}`" in AGENTS
