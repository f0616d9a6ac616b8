"""The page of the documentation about the library: every public name of `nsightpy`."""

from __future__ import annotations

import inspect
from types import ModuleType

from docs_commands import command_names

import nsightpy

INTRODUCTION = """\
# Python

```python
import nsightpy

report = nsightpy.open_report("sample_reports/single_process.sqlite")
report.kernels  # a pandas DataFrame
nsightpy.kernels("sample_reports/training_4rank", by="rank", top=10).to_pandas()
```

Every command is a function of the same name with the same parameters. The columns of the frames
are on the page [Frames](frames.md).
"""


def api_page() -> str:
    """The page as Markdown; mkdocstrings fills in signatures and docstrings."""
    public = [name for name in dir(nsightpy) if not name.startswith("_")]
    things = {name: getattr(nsightpy, name) for name in public}
    commands = [name.replace("-", "_") for name in command_names()]
    functions = [name for name in commands if inspect.isroutine(things.get(name))]
    others = [
        name
        for name, thing in things.items()
        if name not in functions
        and getattr(thing, "__module__", "").startswith("nsightpy")
        and (inspect.isroutine(thing) or inspect.isclass(thing))
    ]
    sections = {
        "Opening reports, and figures": [n for n in others if inspect.isroutine(things[n])],
        "Commands as functions": functions,
        "Classes": [n for n in others if inspect.isclass(things[n])],
    }
    parts = [INTRODUCTION]
    for title, names in sections.items():
        parts.append(f"\n## {title}\n")
        parts += [_entry(f"nsightpy.{name}", _path_of(things[name])) for name in names]
    parts.append("\n## Errors\n")
    parts += [_entry(f"nsightpy.errors.{n}", f"nsightpy.errors.{n}") for n in _errors()]
    return "\n".join(parts)


def _path_of(thing: object) -> str:
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"


def _errors() -> list[str]:
    module: ModuleType = nsightpy.errors
    return [name for name, thing in vars(module).items() if _is_error(module, thing)]


def _is_error(module: ModuleType, thing: object) -> bool:
    return inspect.isclass(thing) and thing.__module__ == module.__name__


def _entry(heading: str, path: str) -> str:
    return f"\n::: {path}\n    options:\n      heading: {heading}\n      toc_label: {heading}\n"
