"""schema: what the json of a command holds, as a JSON Schema."""

from __future__ import annotations

import importlib
from typing import Any

from nsightpy.command_table import COMMANDS
from nsightpy.errors import require_choice
from nsightpy.output.json_schema import error_schema, summary_schema, table_schema

# What is said of a failure, which is the same of every command.
ERROR = "error"


def schema(command: str | None = None) -> dict[str, Any]:
    """The JSON Schema of the json answers of a `command`, derived from the columns it declares.

    Without one, those of all commands by name; `error` is what is said of a failure.

    Its module declares FIELDS (or LAYOUTS, where there are several sets of columns), MORE_FIELDS
    that some answers have beside, and MEMBERS of the document; summarize its SECTIONS. Raises
    UsageError for a command that does not answer in json.
    """
    if command is None:
        return {name: schema(name) for name in described()}
    require_choice("command", command, described())
    if command == ERROR:
        return error_schema()
    module = importlib.import_module(COMMANDS[command].module)
    if hasattr(module, "SECTIONS"):
        return summary_schema(module.HEADER, module.SECTIONS)
    layouts = getattr(module, "LAYOUTS", None) or (module.FIELDS,)
    more = getattr(module, "MORE_FIELDS", ())
    return table_schema(command, layouts, more, getattr(module, "MEMBERS", None))


def described() -> tuple[str, ...]:
    """What has a schema: the commands that answer in json, and failures."""
    return (*answering(), ERROR)


def answering() -> tuple[str, ...]:
    """The commands that answer in json."""
    return tuple(command.name for command in COMMANDS.values() if command.answers)
