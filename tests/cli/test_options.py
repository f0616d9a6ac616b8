"""What is typed becomes the arguments of a command."""

from __future__ import annotations

from typing import Annotated, Any

import click
import pytest

from nsightpy.cli.options import option_of
from nsightpy.query.command import Argument
from nsightpy.query.options import Option

ARGUMENTS = (
    Argument.of("use_cache", Annotated[bool, Option("Off.", typed="--no-cache")], True),
    Argument.of("calls", Annotated[bool, Option("Off.")], True),
    Argument.of("tree", Annotated[bool, Option("On.")], False),
    Argument.of("fold", Annotated[bool | None, Option("Both.", typed="--fold/--unfold")], None),
    Argument.of("jobs", Annotated[int | None, Option("N.", "N", least=1)], None),
    Argument.of("report", Annotated[str, Option("Which.", "NAME", typed="--report -r")], "a"),
    Argument.of("words", Annotated[tuple[str, ...], Option("Some.", "RE", several=True)], ()),
    Argument.of("by", Annotated[str, Option("How.", choices=("gap", "call"))], "gap"),
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
        ((), {}),
        (("--no-cache",), {"use_cache": False}),
        (("--no-calls",), {"calls": False}),
        (("--tree",), {"tree": True}),
        (("--fold",), {"fold": True}),
        (("--unfold",), {"fold": False}),
        (("--jobs", "2"), {"jobs": 2}),
        (("-r", "b"), {"report": "b"}),
        (("--words", "b", "--words", "c"), {"words": ("b", "c")}),
        (("--by", "call"), {"by": "call"}),
    ],
)
def test_what_is_typed(words: tuple[str, ...], changed: dict[str, Any]) -> None:
    assert parsed(*words) == {**NOTHING, **changed}


@pytest.mark.parametrize(
    "words", [("--jobs", "x"), ("--by", "x"), ("--progress", "x"), ("--calls",)]
)
def test_what_cannot_be_typed(words: tuple[str, ...]) -> None:
    with pytest.raises(click.UsageError):
        parsed(*words)
