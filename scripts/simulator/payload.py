"""NCCL's NVTX payloads: their schemas, their JSON and their binary form."""

import struct
from collections.abc import Mapping

from simulator import schema
from simulator.export import Export

FIRST = 1 << 24
REDUCTION_ENUM = FIRST + 20
REDUCTIONS = ("Sum", "Product", "Max", "Min", "Avg")
HEADER_BYTES = 32

Field = tuple[str, int, int]  # name, type code, offset in bytes

_ID: Field = ("NCCL communicator ID", 18, 0)
_SIZE: Field = ("Message size [bytes]", 22, 8)
_REDUCTION: Field = ("Reduction operation", REDUCTION_ENUM, 16)
_ROOT: Field = ("Root", 5, 16)
_PEER: Field = ("Peer rank", 5, 16)
_GROUP: tuple[Field, ...] = (("No. of ranks", 5, 8), ("Rank", 5, 12), ("CUDA device", 5, 16))

# Range text -> schema number and fields.
LAYOUTS: dict[str, tuple[int, tuple[Field, ...]]] = {
    "ncclAllGather": (FIRST + 4, (_ID, _SIZE)),
    "ncclAllReduce": (FIRST + 5, (_ID, _SIZE, _REDUCTION)),
    "ncclBroadcast": (FIRST + 6, (_ID, _SIZE, _ROOT)),
    "ncclReduceScatter": (FIRST + 7, (_ID, _SIZE, _REDUCTION)),
    "ncclSend": (FIRST + 9, (_ID, _SIZE, _PEER)),
    "ncclRecv": (FIRST + 10, (_ID, _SIZE, _PEER)),
    "ncclCommInitRankConfig": (FIRST + 11, (_ID, *_GROUP)),
}


def as_blob(text: str, domain: int, payload: Mapping[str, object] | None) -> bytes | None:
    """The bytes of an export made with binary payloads: header, then the C structure."""
    if payload is None:
        return None
    number, fields = LAYOUTS[text]
    body = bytearray(_bytes(fields))
    for name, kind, offset in fields:
        value = payload[name]
        plain = REDUCTIONS.index(str(value)) if kind == REDUCTION_ENUM else int(str(value))
        struct.pack_into("<Q" if kind in {18, 22} else "<i", body, offset, plain)
    header = struct.pack("<4Q", domain, number, len(body), HEADER_BYTES)
    return header + bytes(body)


def add_schemas(export: Export, domain: int) -> None:
    """Write the schema tables, where this generation has them. Offset and value 0 are NULL."""
    if export.generation != schema.NEW:
        return
    for number, fields in LAYOUTS.values():
        same: dict[str, object] = {"domainId": domain, "schemaId": number}
        shape = {"type": 1, "numEntries": len(fields), "payloadSize": _bytes(fields)}
        export.add("NVTX_PAYLOAD_SCHEMAS", same | shape)
        for place, (name, kind, offset) in enumerate(fields):
            entry = {"idx": place, "type": kind, "name": name, "offset": offset or None}
            export.add("NVTX_PAYLOAD_SCHEMA_ENTRIES", same | entry)
    same = {"domainId": domain, "schemaId": REDUCTION_ENUM}
    export.add("NVTX_PAYLOAD_ENUMS", same | {"numEntries": len(REDUCTIONS), "size": 4})
    for place, name in enumerate(REDUCTIONS):
        member = {"idx": place, "name": name, "value": place or None}
        export.add("NVTX_PAYLOAD_ENUM_ENTRIES", same | member)


def _bytes(fields: tuple[Field, ...]) -> int:
    """The size of the C structure, aligned to 8 bytes."""
    return -(-(max(offset for _, _, offset in fields) + 4) // 8) * 8
