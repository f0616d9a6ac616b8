"""The page of the documentation about the library: every public name of `nsightpy`."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import nsightpy
from nsightpy.command_table import COMMANDS
from nsightpy.query.command import Argument, Command

OPENING = ("open", "Job", "open_report")
INTRODUCTION = """\
# Python

```python
import nsightpy

with nsightpy.open("sample_reports/training_4rank", iteration="steady") as job:
    job.kernels(by="rank", top=10).to_pandas()
    job.events("kernels")  # a DataFrame of all ranks on one clock
nsightpy.kernels("sample_reports/training_4rank", by="rank", top=10)
```

Every command is a function of the same name with the same parameters; `job` has it as a method.
What a command draws, `nsightpy.NAME_figure` makes with the same parameters. The columns of the
frames are on the page [Frames](frames.md).
"""


def api_page() -> str:
    """The page as Markdown; mkdocstrings fills in what is no command."""
    commands = [listed.load() for listed in COMMANDS.values()]
    parts = [INTRODUCTION, "\n## Opening reports\n"]
    parts += [_entry(name, _path_of(getattr(nsightpy, name))) for name in OPENING]
    parts.append("\n## Commands as functions\n")
    parts += map(_command, commands)
    parts.append("\n### Shared parameters\n")
    parts += [_meaning(argument) for argument in commands[0].shared.values()]
    parts.append("\n## Errors\n")
    parts += [_entry(f"errors.{n}", f"nsightpy.errors.{n}") for n in _errors()]
    return "\n".join(parts)


def _command(command: Command[Any]) -> str:
    """A command as it is called: its own parameters with what they mean."""
    own = ", ".join(str(each.parameter) for each in command.own.values())
    lines = "\n".join(map(_meaning, command.own.values()))
    shared = "\n\nIt takes the [shared parameters](#shared-parameters)." if command.shared else ""
    head = f"\n### nsightpy.{command.__name__}\n\n`{command.__name__}(reports, *, {own})`\n"
    return f"{head}\n{command.help}\n\n{command.words}\n\n{lines}{shared}\n"


def _meaning(argument: Argument) -> str:
    return f"- `{argument.name}`: {argument.option.help if argument.option else ''}"


def _path_of(thing: object) -> str:
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"


def _errors() -> list[str]:
    module: ModuleType = nsightpy.errors
    return [name for name, thing in vars(module).items() if _is_error(module, thing)]


def _is_error(module: ModuleType, thing: object) -> bool:
    return inspect.isclass(thing) and thing.__module__ == module.__name__


def _entry(name: str, path: str) -> str:
    heading = f"nsightpy.{name}"
    return f"\n::: {path}\n    options:\n      heading: {heading}\n      toc_label: {heading}\n"
