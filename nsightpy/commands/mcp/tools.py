"""The tools that agents get: the commands that answer in json, as their functions declare them."""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nsightpy.command_table import COMMANDS, Command
from nsightpy.commands.mcp.bounds import ROWS, bounded, row_count
from nsightpy.commands.mcp.roots import Roots
from nsightpy.errors import UsageError
from nsightpy.output.formats import document_of, summary_document
from nsightpy.query.parameters import SHARED
from nsightpy.results import Summary, Table

Json = dict[str, Any]

# No tool takes these: where work is done, what is kept or written, what only a program can give.
WITHHELD = frozenset(
    (
        *("dask", "jobs", "progress", "use_cache", "version"),
        *("output", "overwrite", "force", "save_baseline"),
    )
)
# Annotations of paths of several files, and of one.
_PATHS = re.compile(r"\b(?:\w*Paths|Runs)\b")
_PATH = re.compile(r"\bPath\b")
_SHARED_WORDS = "Parameters that commands share:"
# What a function raises is the message of a tool that failed.
_RAISES = re.compile(r"\s*\bRaises [^.]*\.(?=\s|$)")
_TOP = f"First N rows: {ROWS.usual} without it, {ROWS.most} at most; total_rows says how many."
_TYPES = {"boolean": bool, "integer": int, "number": int | float, "string": str, "array": list}


@dataclass(frozen=True)
class Tool:
    """A command as a tool: name, description and parameters come from its function."""

    command: Command

    @property
    def name(self) -> str:
        return self.command.name

    @cached_property
    def function(self) -> Callable[..., Any]:
        module = importlib.import_module(self.command.module)
        function: Callable[..., Any] = getattr(module, self.command.function)
        return function

    @property
    def description(self) -> str:
        """What it answers: the line of the help, then the function's own words."""
        text = inspect.cleandoc(self.function.__doc__ or "").partition(_SHARED_WORDS)[0]
        return f"{self.command.help}\n\n{_RAISES.sub('', text).strip()}"

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters of the function that agents may give."""
        every = inspect.signature(self.function).parameters
        return {name: parameter for name, parameter in every.items() if name not in WITHHELD}

    @property
    def input_schema(self) -> Json:
        """A JSON Schema of the arguments."""
        properties = {
            name: _property(name, parameter) for name, parameter in self.parameters.items()
        }
        properties["top"] = {"type": "integer", "minimum": 1, "description": _TOP}
        required = [
            n for n, parameter in self.parameters.items() if parameter.default is parameter.empty
        ]
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }

    def answer(self, arguments: Mapping[str, Any], roots: Roots, *, use_cache: bool = True) -> Json:
        """The json document of the command, with a bounded number of rows.

        Raises UsageError for arguments that it does not take and files outside of the roots, and
        what the command raises.
        """
        given = self._checked(arguments)
        rows = row_count(given.get("top"))
        if "top" not in self.parameters:
            given.pop("top", None)
        for name, parameter in self.parameters.items():
            if name in given and _is_path(name, parameter):
                several = _are_paths(name, parameter)
                given[name] = _allowed(given[name], roots, several=several)
        if "use_cache" in inspect.signature(self.function).parameters:
            given["use_cache"] = use_cache
        counted = "top" in given  # by the command: of each rank where it splits by it
        document = _document(self.function(**given), ROWS.most if counted else rows)
        return bounded(document, max(len(document.get("rows", ())), rows, ROWS.usual))

    def _checked(self, arguments: Mapping[str, Any]) -> Json:
        """The arguments that are given, each of the right type. Raises UsageError."""
        schema = self.input_schema
        for name in arguments:
            if name not in schema["properties"]:
                close = difflib.get_close_matches(name, schema["properties"], n=1)
                hint = f"; did you mean {close[0]}?" if close else ""
                raise UsageError(f"{self.name} takes no {name}{hint}")
        given = {name: value for name, value in arguments.items() if value is not None}
        for name, value in given.items():
            _require_type(name, value, schema["properties"][name])
        for name in schema["required"]:
            if not given.get(name):
                raise UsageError(f"{self.name} needs {name}")
        return given


def tools() -> dict[str, Tool]:
    """Every command that answers in json, by name, in the order of the help."""
    return {command.name: Tool(command) for command in COMMANDS.values() if command.answers}


def _document(result: object, rows: int) -> Json:
    if isinstance(result, Summary):
        return summary_document(result)
    if not isinstance(result, Table):
        raise TypeError(f"{type(result).__name__} is no answer in rows")
    return document_of(result.first(rows))


def _property(name: str, parameter: inspect.Parameter) -> Json:
    """The JSON Schema of one parameter, by its annotation."""
    made: Json = {"type": _types(name, parameter)}
    if "array" in made["type"]:
        made["items"] = {"type": "string"}
    if name in SHARED:
        made["description"] = SHARED[name].meaning
        if SHARED[name].choices:
            made["enum"] = list(SHARED[name].choices)
    elif _is_path(name, parameter):
        made["description"] = "Paths in the allowed folders: reports, folders of them, or globs."
    if isinstance(parameter.default, bool | int | float | str) and parameter.default != "":
        made["default"] = parameter.default
    return made


def _types(name: str, parameter: inspect.Parameter) -> list[str]:
    words = str(parameter.annotation)
    if _is_path(name, parameter):
        return ["array", "string"] if _are_paths(name, parameter) else ["string"]
    types = [
        kind
        for kind, python in (
            ("boolean", "bool"),
            ("integer", "int"),
            ("number", "float"),
            ("string", "str"),
            ("array", ("Iterable", "Sequence")),
        )
        if any(word in words for word in ([python] if isinstance(python, str) else python))
    ]
    return types or ["string"]


def _is_path(name: str, parameter: inspect.Parameter) -> bool:
    return _are_paths(name, parameter) or bool(_PATH.search(str(parameter.annotation)))


def _are_paths(name: str, parameter: inspect.Parameter) -> bool:
    return name == "reports" or bool(_PATHS.search(str(parameter.annotation)))


def _allowed(given: Any, roots: Roots, *, several: bool) -> Any:
    """The files behind what was given, all of them in the roots."""
    if not several:
        return roots.allowed(given)[0]
    texts = [given] if isinstance(given, str) else given
    return [path for text in texts for path in roots.allowed(text)]


def _require_type(name: str, value: Any, schema: Json) -> None:
    wanted = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    fits = any(
        isinstance(value, _TYPES[kind]) and (kind == "boolean") == isinstance(value, bool)
        for kind in wanted
    )
    if not fits or (isinstance(value, list) and not all(isinstance(item, str) for item in value)):
        raise UsageError(f"{name} must be {' or '.join(wanted)}, not {value!r:.80}")
