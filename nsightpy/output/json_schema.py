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


def document_schema(
    command: str,
    layouts: Sequence[Sequence[Field]],
    more: Sequence[Field] = (),
    keys: Sequence[RowKey] = (),
    members: Mapping[str, Schema] | None = None,
    sections: Mapping[str, Sequence[Field]] | None = None,
) -> Schema:
    """The schema of a command's document.

    `layouts`: the columns that a row always has, one of several sets; `more`: those that it may
    have beside; `keys`: what rows are about; `members`: what the document holds beside rows;
    `sections`: those by name that a summary has instead of rows, the first of them its header.
    """
    body: Schema
    if sections:
        (head, header), *others = sections.items()
        body = {head: _row(header), **{name: _list(_row(fields)) for name, fields in others}}
        body |= {"next_steps": _list(_texts_of("command", "why")), "notes": _TEXTS}
    else:
        rows = [_row(fields, more, keys) for fields in layouts]
        body = {
            "rows": _list(rows[0] if len(rows) == 1 else {"anyOf": rows}),
            "notes": _TEXTS,
            "total_rows": {"type": ["integer", "null"], "minimum": 0},
            "truncated": {"type": "boolean"},
        }
    required: Schema = {
        "schema": {"const": f"nsightpy.{command}/{SCHEMA_VERSION}"},
        "tool_version": _TEXT,
        "inputs": _TEXTS,
        **body,
        "abstentions": _list(_texts_of("reason", "what_would_help")),
        "untrusted": _TEXTS,
    }
    return {
        "$schema": DIALECT,
        "$id": f"urn:nsightpy:{command}:{SCHEMA_VERSION}",
        "title": f"nsightpy {command}",
        "type": "object",
        "properties": {**required, **(members or {})},
        "required": list(required),
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _texts_of(*names: str) -> Schema:
    return {"type": "object", "properties": dict.fromkeys(names, _TEXT), "required": list(names)}


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
