"""The tools that agents get: commands that answer in json, on files in the allowed folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from nsightpy.command_table import COMMANDS
from nsightpy.errors import UsageError
from nsightpy.output.formats import document_of
from nsightpy.query.command import UNWRAPPED, Argument, Command
from nsightpy.query.options import Option, Top
from nsightpy.report_sets.opening import find_snapshots
from nsightpy.reports.opening import is_ncu_file, is_system_report
from nsightpy.results import Table

MOST_LISTED = 1_000
Json = dict[str, Any]

# How many rows an agent gets unasked, and at most; how many characters of a text.
USUAL_ROWS, MOST_ROWS = 50, 1_000
MOST_TEXT = 2_000

# No tool takes these: where work is done, what is kept or written, what only a program can give.
WITHHELD = frozenset(("dask", "jobs", "progress", "use_cache", "overwrite", "save_baseline"))
_REPORTS = Option("Paths in the allowed folders: reports, or folders of them.")
_TOP = f"First N rows: {USUAL_ROWS} without it, {MOST_ROWS} at most; total_rows says how many."
_TYPES = {"boolean": bool, "integer": int, "number": int | float, "string": str, "array": list}
_PYTHON = {bool: "boolean", int: "integer", float: "number", str: "string", Path: "string"}
_CUT = "..."


@dataclass(frozen=True, slots=True)
class Roots:
    """The allowed folders, as their real paths."""

    folders: tuple[Path, ...]

    @classmethod
    def of(cls, given: Sequence[str | Path]) -> Roots:
        """Raises UsageError for none, or for what is no folder."""
        if not given:
            raise UsageError("give --root DIR: the folder whose reports may be read")
        for each in given:
            if not Path(each).is_dir():
                raise UsageError(f"--root {each}: is no folder")
        return cls(tuple(dict.fromkeys(Path(each).resolve() for each in given)))

    def allowed(self, given: str) -> list[str]:
        """The files and folders of this path, as real paths.

        A path that is not absolute is looked for in each folder. What lies outside, by name or
        behind a link, is refused before anything is said of it; so is a folder that holds a link
        out of the allowed ones. Raises UsageError.
        """
        named = given and "\0" not in given and ".." not in Path(given).parts
        paths = [root / given for root in self.folders if named]  # an absolute one is itself
        inside = [path for path in paths if self.holds(path)]
        found = [path for path in inside if path.exists()]
        # what may be read with it, or instead of a report
        beside = [path.resolve().with_suffix(".sqlite") for path in found if path.is_file()]
        beside += [each for path in found if path.is_dir() for each in path.iterdir()]
        if not inside or not all(map(self.holds, beside)):
            folders = ", ".join(map(str, self.folders))
            raise UsageError(f"{given}: is not in the allowed folders: {folders}")
        if not found:
            raise UsageError(f"{given}: there is no such file; list_reports names those there are")
        return list(dict.fromkeys(str(path.resolve()) for path in found))

    def holds(self, path: Path) -> bool:
        """Whether a path is, with all links followed, in an allowed folder."""
        real = path.resolve()
        return any(real.is_relative_to(root) for root in self.folders)

    def reports(self) -> list[Path]:
        """The reports in the allowed folders and below, sorted; none behind links out of them."""
        found = []
        for path in (path for root in self.folders for path in root.rglob("*")):
            with suppress(OSError):
                if path.is_file() and self.holds(path):
                    is_report = is_system_report(path) or is_ncu_file(path) or find_snapshots(path)
                    found += [path] if is_report else []
        return sorted(found)


@dataclass(frozen=True)
class Tool:
    """A command as a tool: its name, description and parameters."""

    command: Command[Any]

    @property
    def name(self) -> str:
        return self.command.name

    @property
    def description(self) -> str:
        words = self.command.words.replace(UNWRAPPED, "")
        return f"{self.command.help}\n\n{words}"

    @cached_property
    def arguments(self) -> dict[str, Argument]:
        """The arguments that agents may give."""
        given = {**self.command.positional, **self.command.own, **self.command.shared}
        return {name: each for name, each in given.items() if name not in WITHHELD}

    @cached_property
    def input_schema(self) -> Json:
        """A JSON Schema of the arguments."""
        properties = {name: _property(each) for name, each in self.arguments.items()}
        top = {**_property(Argument.of("top", Top)), "minimum": 1, "description": _TOP}
        return {
            "type": "object",
            "properties": {**properties, "top": top},
            "required": [n for n, each in self.arguments.items() if each.required],
            "additionalProperties": False,
        }

    def answer(self, arguments: Mapping[str, Any], roots: Roots, *, use_cache: bool = True) -> Json:
        """The json document of the command, with a bounded number of rows.

        Raises UsageError for arguments that it does not take and files outside of the roots, and
        what the command raises.
        """
        given = self._checked(arguments)
        rows = given.get("top", USUAL_ROWS)
        if not 1 <= rows <= MOST_ROWS:
            raise UsageError(f"top must be 1 to {MOST_ROWS}, not {rows}: narrow the question")
        if "top" not in self.arguments:
            given.pop("top", None)
        for name, value in given.items():
            types = _types(self.arguments[name].type) if name in self.arguments else []
            if Path in types:
                texts = [value] if isinstance(value, str) else value
                paths = [path for text in texts for path in roots.allowed(text)]
                given[name] = paths if Iterable in types else paths[0]
        if "use_cache" in self.command.shared:
            given["use_cache"] = use_cache
        answer = self.command(**given)
        counted = "top" in given  # by the command: of each rank where it splits by it
        if isinstance(answer, Table):
            answer = answer.first(MOST_ROWS if counted else rows)
        document: Json = bounded(document_of(answer))
        return document

    def _checked(self, arguments: Mapping[str, Any]) -> Json:
        """The arguments that are given, each of the right type. Raises UsageError."""
        schema = self.input_schema
        for name in sorted(arguments.keys() - schema["properties"].keys()):
            raise UsageError(f"{self.name} takes no {name}")
        given = {name: value for name, value in arguments.items() if value is not None}
        for name, value in given.items():
            wanted = schema["properties"][name]["type"]
            fits = any(
                isinstance(value, _TYPES[kind]) and (kind == "boolean") == isinstance(value, bool)
                for kind in wanted
            )
            plain = not isinstance(value, list) or all(isinstance(each, str) for each in value)
            if not (fits and plain):
                raise UsageError(f"{name} must be {' or '.join(wanted)}, not {value!r:.80}")
        for name in schema["required"]:
            if not given.get(name):
                raise UsageError(f"{self.name} needs {name}")
        return given


def tools() -> dict[str, Tool]:
    """Every command that answers in json, by name, in the order of the help."""
    return {name: Tool(each.load()) for name, each in COMMANDS.items() if each.answers}


def guide() -> str:
    """SKILL.md: which command answers what, and what must not be concluded."""
    return files("nsightpy").joinpath("SKILL.md").read_text(encoding="utf-8")


def _property(argument: Argument) -> Json:
    """The JSON Schema of one argument."""
    types = _types(argument.type)
    about = argument.option or (_REPORTS if Path in types else Option(""))
    several = ["array"] * (Iterable in types)
    schema: Json = {"type": [*dict.fromkeys(_PYTHON[t] for t in types if t in _PYTHON), *several]}
    if several:
        schema["items"] = {"type": "string"}
    if about.help:
        schema["description"] = about.help
    if about.choices:
        schema["enum"] = list(about.choices)
    if isinstance(argument.default, bool | int | float | str) and argument.default != "":
        schema["default"] = argument.default
    return schema


def _types(annotation: Any) -> list[Any]:
    """The types that it allows: plain ones, Iterable for several of something, Path for paths."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return [str]
    types = [kind for each in inner for kind in _types(each)] or [annotation]
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return [Iterable, *(kind for kind in types if kind is Path)]
    return types


def bounded(value: Any) -> Any:
    """A document with texts of at most 2,000 characters."""
    if isinstance(value, str):
        return value if len(value) <= MOST_TEXT else value[: MOST_TEXT - len(_CUT)] + _CUT
    if isinstance(value, dict):
        return {key: bounded(inner) for key, inner in value.items()}
    return list(map(bounded, value)) if isinstance(value, list) else value
