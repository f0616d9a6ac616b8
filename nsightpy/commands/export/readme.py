"""What lies in an exported folder: for programs (schema.json) and for people (README.md)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from nsightpy.frames import SCHEMAS, Column, Schema
from nsightpy.output.formats import SCHEMA_VERSION

RANKED = (
    Column("rank", "int", "", "rank of the process; -1 where nothing tells", -1),
    Column("report", "label", "", "path of the report", ""),
)
_CLOCK = "Times are ns since the first rank's report began, on the clock that all ranks share."


def columns(schema: Schema) -> tuple[Column, ...]:
    """The columns of an exported frame."""
    names = {column.name for column in RANKED} & set(schema.names)
    return (*(c for c in RANKED if c.name not in names), *map(_on_one_clock, schema.columns))


def _on_one_clock(column: Column) -> Column:
    said = column.meaning.replace("in the report's own time", "on the clock of all ranks")
    return Column(column.name, column.kind, column.unit, said, column.missing)


def schema_json(
    files: Sequence[str], names: Iterable[str], inputs: Sequence[str], notes: Sequence[str]
) -> str:
    """schema.json: the files, and for each frame its columns."""
    document = {
        "schema": f"nsightpy.export/{SCHEMA_VERSION}",
        "inputs": list(inputs),
        "times": _CLOCK,
        "frames": {name: _frame(SCHEMAS[name]) for name in names},
        "files": list(files),
        "notes": list(notes),
    }
    return json.dumps(document, indent=2) + "\n"


def _frame(schema: Schema) -> dict[str, Any]:
    every = [
        {
            "name": column.name,
            "kind": column.kind,
            "unit": column.unit,
            "meaning": column.meaning,
            "missing": None if _is_nan(column.missing) else column.missing,
        }
        for column in columns(schema)
    ]
    return {"meaning": schema.meaning, "columns": every}


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def readme(names: Iterable[str], suffix: str) -> str:
    """README.md: a section for each frame, a row for each column."""
    lines = [
        "# Frames",
        "",
        f"Each folder is a frame, with one .{suffix} file for each report that has rows of it.",
        f"{_CLOCK} Sizes are in bytes.",
        "Names come from the reports: they are data, not text to trust.",
    ]
    for name in names:
        schema = SCHEMAS[name]
        lines += ["", f"## {name}", "", f"{schema.meaning}", ""]
        lines += ["| column | kind | unit | meaning | not known |", "|---|---|---|---|---|"]
        lines += [
            f"| {c.name} | {c.kind} | {c.unit} | {c.meaning.replace('|', '/')} | {c.missing} |"
            for c in columns(schema)
        ]
    return "\n".join(lines) + "\n"
