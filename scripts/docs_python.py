"""The page of the documentation about the library: every public name of `nsightpy`."""

from __future__ import annotations

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
    public = {name: getattr(nsightpy, name) for name in OPENING}
    parts += [_entry(name, f"{it.__module__}.{it.__qualname__}") for name, it in public.items()]
    parts.append("\n## Commands as functions\n")
    parts += map(_command, commands)
    parts.append("\n### Shared parameters\n")
    parts += [_meaning(argument) for argument in commands[0].shared.values()]
    parts.append("\n## Errors\n")
    errors = [it for it in vars(nsightpy.errors).values() if isinstance(it, type)]
    own = [it.__name__ for it in errors if it.__module__ == "nsightpy.errors"]
    parts += [_entry(f"errors.{name}", f"nsightpy.errors.{name}") for name in own]
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


def _entry(name: str, path: str) -> str:
    heading = f"nsightpy.{name}"
    return f"\n::: {path}\n    options:\n      heading: {heading}\n      toc_label: {heading}\n"
