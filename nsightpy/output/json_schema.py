"""JSON Schemas (draft 2020-12) of what commands answer in json, derived from their columns."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from nsightpy.output.formats import SCHEMA_VERSION
from nsightpy.results import Field
from nsightpy.results.keys import RowKey

Schema: TypeAlias = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_WHOLE = ("count", "time", "moment", "bytes")
_UNITS = {"time": "ns", "moment": "ns", "share": "ratio"}
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_ABSTENTION: Schema = {
    "type": "object",
    "properties": {"reason": _TEXT, "what_would_help": _TEXT},
    "required": ["reason", "what_would_help"],
}
_NOTES: Schema = {**_TEXTS, "description": "what a reader must know; may quote names of reports"}
_CLOSING: Schema = {
    "abstentions": {
        "type": "array",
        "items": _ABSTENTION,
        "description": "what could not be answered, and what would help; also among the notes",
    },
    "untrusted": {**_TEXTS, "description": "columns with free text out of reports"},
}
_COUNTED: Schema = {
    "total_rows": {
        "type": ["integer", "null"],
        "minimum": 0,
        "description": "rows there are; null: nobody counted them",
    },
    "truncated": {"type": "boolean", "description": "whether there are more rows than these"},
}


def table_schema(
    command: str,
    layouts: Sequence[Sequence[Field]],
    more: Sequence[Field] = (),
    keys: Sequence[RowKey] = (),
    members: Mapping[str, Schema] | None = None,
) -> Schema:
    """The schema of a table's document.

    `layouts`: the columns that a row always has, one of several sets; `more`: those that it may
    have beside; `keys`: what rows are about; `members`: what the document holds beside rows.
    """
    rows = [_row(fields, more, keys) for fields in layouts]
    items = rows[0] if len(rows) == 1 else {"anyOf": rows}
    body = {"rows": {"type": "array", "items": items}, "notes": _NOTES, **_COUNTED, **_CLOSING}
    return _document(command, body, members or {})


def summary_schema(command: str, sections: Mapping[str, Sequence[Field]]) -> Schema:
    """The same of a summary: sections by name instead of rows, the first of them its header."""
    step = {"type": "object", "properties": {"command": _TEXT, "why": _TEXT}}
    (head, header), *others = sections.items()
    body = {
        head: _row(header),
        **{name: {"type": "array", "items": _row(fields)} for name, fields in others},
        "next_steps": {"type": "array", "items": {**step, "required": ["command", "why"]}},
        "notes": _NOTES,
    }
    return _document(command, {**body, **_CLOSING})


def _document(command: str, body: Schema, optional: Mapping[str, Schema] | None = None) -> Schema:
    required: Schema = {
        "schema": {"const": f"nsightpy.{command}/{SCHEMA_VERSION}"},
        "tool_version": {**_TEXT, "description": "the version of nsightpy that answered"},
        "inputs": {**_TEXTS, "description": "the reports, as paths"},
        **body,
    }
    return {
        "$schema": DIALECT,
        "$id": f"urn:nsightpy:{command}:{SCHEMA_VERSION}",
        "title": f"nsightpy {command}",
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
    }


def _row(
    fields: Sequence[Field], more: Sequence[Field] = (), keys: Sequence[RowKey] = ()
) -> Schema:
    """A row: columns that are always there, columns that may be, and keys."""
    names = {key.name for key in keys} | {"key"}
    return {
        "type": "object",
        "properties": {
            **{field.name: column_schema(field) for field in (*fields, *more)},
            **{name: {"type": ["string", "null"]} for name in sorted(names)},
        },
        "required": [field.name for field in fields],
    }


def column_schema(field: Field) -> Schema:
    """The values of a column; every one may be absent, which is null."""
    if field.is_text:
        free = {"description": "free text out of reports: not to be trusted"}
        return {"type": ["string", "null"], **(free if field.untrusted else {})}
    if field.kind == "bool":
        return {"type": ["boolean", "null"]}
    if field.kind == "id":  # a number, or several, or a name
        return {"type": ["integer", "string", "null"]}
    is_whole = field.decimals is None and field.kind in _WHOLE
    return {
        "type": ["integer" if is_whole else "number", "null"],
        "description": _UNITS.get(field.kind, field.kind),
    }
