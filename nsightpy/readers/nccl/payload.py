"""Payloads that NCCL attaches to its NVTX ranges, as JSON or as the bytes of a C structure.

Communicator ids need all 64 bits: they are kept as decimal text, never as a float.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from nsightpy.readers.nsys.nvtx import json_object
from nsightpy.readers.nsys.tables import NsysExport

UNKNOWN = -1
_HEADER = struct.Struct("<4Q")
_FIRST_SCHEMA = 1 << 24
# Codes of NVTX's integer entry types (nvToolsExtPayload.h), as formats of struct on 64-bit Linux.
_FORMATS = {
    1: "<b", 2: "<B", 3: "<h", 4: "<H", 5: "<i", 6: "<I", 7: "<q", 8: "<Q", 9: "<q", 10: "<Q",
    11: "<b", 12: "<B", 13: "<h", 14: "<H", 15: "<i", 16: "<I", 17: "<q", 18: "<Q", 22: "<Q",
}  # fmt: skip
_COMMUNICATOR = ("NCCL communicator ID", "commHash")
_SIZES = {
    "int8": 1, "uint8": 1, "char": 1, "float8e4m3": 1, "float8e5m2": 1, "float16": 2, "half": 2,
    "bfloat16": 2, "int32": 4, "uint32": 4, "int": 4, "float32": 4, "float": 4, "int64": 8,
    "uint64": 8, "float64": 8, "double": 8,
}  # fmt: skip
_TYPE_CODES = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)

Fields: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Payload:
    """The arguments of one NCCL call; -1 and "" where the payload does not say.

    `bytes` is the size of the one buffer that was passed (AllGather and ReduceScatter: one rank's
    part); `ranks`, `rank` and `device` describe the communicator in the call that creates it.
    """

    communicator: str = ""
    bytes: int = UNKNOWN
    root: int = UNKNOWN
    peer: int = UNKNOWN
    reduction: str = ""
    ranks: int = UNKNOWN
    rank: int = UNKNOWN
    device: int = UNKNOWN
    sequence: int = UNKNOWN

    @classmethod
    def of(cls, fields: Fields) -> Payload:
        """The payload of named fields, whichever generation of names they use."""
        return cls(
            communicator=_id(_first(fields, *_COMMUNICATOR)),
            bytes=_bytes(fields),
            root=_whole(_first(fields, "Root", "root")),
            peer=_whole(_first(fields, "Peer rank", "peer")),
            reduction=str(_first(fields, "Reduction operation", "redOp") or ""),
            ranks=_whole(_first(fields, "No. of ranks", "nRanks", "commNRanks")),
            rank=_whole(_first(fields, "Rank", "commRank", "rank")),
            device=_whole(_first(fields, "CUDA device", "cudaDev")),
            sequence=_whole(_first(fields, "seqNumber")),
        )


NO_PAYLOAD = Payload()


def json_fields(payload: str) -> Fields:
    """The fields of a payload exported as JSON; empty when there is none or it is no object."""
    value = json_object(payload)
    parts = value.get("data")
    if not isinstance(parts, list):
        return value
    generic: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, dict):
            generic |= {name: _plain(inner) for name, inner in part.items()}
    return generic


class BlobLayouts:
    """How the bytes of payloads are read: by the names of the entries of their schema."""

    def __init__(self, export: NsysExport) -> None:
        self._entries = _entries(export)
        # names of values by domain, schema and value
        self._enums = dict(_rows(export, "ENUM", ("domainId", "schemaId", "value")))

    def fields(self, blob: bytes) -> Fields:
        """The fields of one payload; empty when its schema is not in the export."""
        if len(blob) < _HEADER.size:
            return {}
        domain, schema, size, _ = _HEADER.unpack_from(blob)
        body = blob[_HEADER.size : _HEADER.size + size]
        fields: dict[str, Any] = {}
        for name, kind, offset in self._entries.get((domain, schema), ()):
            form = _FORMATS.get(kind, "<i" if kind >= _FIRST_SCHEMA else None)
            if form is not None and offset + struct.calcsize(form) <= len(body):
                value = struct.unpack_from(form, body, offset)[0]
                fields[name] = self._enums.get((domain, kind, value), value)
        return fields


def _entries(export: NsysExport) -> dict[tuple[int, int], tuple[tuple[str, int, int], ...]]:
    """(name, type, offset) of the entries of each (domain, schema); ambiguous schemas are left out.

    Rows repeat once per process, and domain ids are per process.
    """
    layouts: dict[tuple[int, int], dict[str, tuple[str, int, int]]] = {}
    torn: set[tuple[int, int]] = set()
    columns = ("domainId", "schemaId", "type", "offset")
    for (domain, schema, kind, offset), name in _rows(export, "SCHEMA", columns):
        key, entry = (domain, schema), (name, kind, offset)
        if layouts.setdefault(key, {}).setdefault(entry[0], entry) != entry:
            torn.add(key)
    return {key: tuple(entries.values()) for key, entries in layouts.items() if key not in torn}


def _rows(
    export: NsysExport, kind: str, columns: Sequence[str]
) -> Iterator[tuple[tuple[int, ...], str]]:
    """Numbers and name of the entries of schemas or enumerations."""
    rows = export.file.values(f"NVTX_PAYLOAD_{kind}_ENTRIES", columns, ("name",))
    for *numbers, name in rows:
        yield tuple(number or 0 for number in numbers), name or ""


def _plain(value: Any) -> Any:
    """The value inside {"uint64": value}."""
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value


def _first(fields: Fields, *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _number(value: Any) -> int | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        integer = value if isinstance(value, int) else int(str(value), 0)
    except ValueError:
        return None
    return integer if -(2**63) < integer < 2**64 else None


def _whole(value: Any) -> int:
    integer = _number(value)
    return UNKNOWN if integer is None else integer


def _id(value: Any) -> str:
    integer = _number(value)
    return str(integer & 0xFFFFFFFFFFFFFFFF) if integer else ""


def _bytes(fields: Fields) -> int:
    size = _number(_first(fields, "Message size [bytes]"))
    if size is not None:
        return size
    count, kind = _number(fields.get("count")), _first(fields, "dataType", "datatype")
    code = _number(kind)
    if code is not None:
        size = _TYPE_CODES[code] if 0 <= code < len(_TYPE_CODES) else None
    else:
        size = _SIZES.get(str(kind).removeprefix("nccl").lower())
    return UNKNOWN if count is None or size is None else count * size
