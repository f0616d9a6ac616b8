"""What is declared of a command is what its call, its help and its schema say."""

import inspect
import re

import pytest

import nsightpy
from nsightpy.command_table import COMMANDS
from nsightpy.query.command import Command
from nsightpy.query.options import Common
from tests.support.samples import SINGLE

EVERY = [pytest.param(listed.load(), id=listed.name) for listed in COMMANDS.values()]


@pytest.mark.parametrize("command", EVERY)
def test_help_names_every_parameter_once(command: Command[object]) -> None:
    text = str(command.__doc__)
    assert text.startswith(command.help)
    described = text.partition("Parameters:")[2].splitlines()
    for name, argument in (command.own | command.shared).items():
        assert argument.option is not None, f"{name} has no Option"
        assert [line for line in described if line.startswith(f"    {name}")]
        assert re.search(r"\.(?:  \[.+\])?$", argument.option.help), name


@pytest.mark.parametrize("command", EVERY)
def test_columns_are_declared_once(command: Command[object]) -> None:
    for layout in command.layouts:
        names = [field.name for field in layout]
        assert len(names) == len(set(names))
    if command.layouts:
        assert command.schema["properties"]["schema"]["const"] == f"nsightpy.{command.name}/1"


def test_the_shared_parameters_are_those_of_every_question() -> None:
    questions = [listed.load() for listed in COMMANDS.values() if listed.load().asks]
    assert len(questions) > 10
    for command in questions:
        assert set(command.shared) | set(command.own) >= set(Common.__annotations__)
        assert next(iter(inspect.signature(command).parameters)) == "reports"


def test_a_parameter_that_there_is_not_is_named() -> None:
    with pytest.raises(TypeError, match="'devices'"):
        nsightpy.kernels(SINGLE, devices=1)
