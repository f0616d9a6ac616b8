"""The INSERT of every event table: what changes is bound, what never does is spelled out.

Constants in the statement's text instead of in every row make the large tables faster.
"""

from __future__ import annotations

from collections.abc import Sequence

from simulator import schema
from simulator.enumerations import MEMORY_KINDS, NVTX_PUSH_POP

TABLES = {
    "kernel": "CUPTI_ACTIVITY_KIND_KERNEL",
    "copy": "CUPTI_ACTIVITY_KIND_MEMCPY",
    "set": "CUPTI_ACTIVITY_KIND_MEMSET",
    "api": "CUPTI_ACTIVITY_KIND_RUNTIME",
    "nvtx": "NVTX_EVENTS",
    "wait": "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "record": "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
}
COLUMNS = {name: schema.tables(schema.NEW)[table] for name, table in TABLES.items()}

_OPERATION = ("start", "end", "deviceId", "streamId", "correlationId")
_NAMES = ("demangledName", "shortName", "mangledName")
_SHAPE = ("registersPerThread", "gridX", "gridY", "blockX", "dynamicSharedMemory")
_BOUND = {
    "kernel": (*_OPERATION, *_NAMES, *_SHAPE, "localMemoryTotal", "gridId"),
    "copy": (*_OPERATION, "bytes", "copyKind", "srcKind", "dstKind"),
    "set": (*_OPERATION, "bytes"),
    "api": ("start", "end", "globalTid", "correlationId", "nameId"),
    "nvtx": ("start", "end", "globalTid", "textId", "domainId", "jsonText"),
    "wait": (*_OPERATION, "syncType", "eventId", "eventSyncId"),
    "record": ("correlationId", "deviceId", "streamId", "eventId", "eventSyncId"),
}
_CONSTANT: dict[str, dict[str, object]] = {
    "kernel": dict.fromkeys(("launchType", "gridZ", "blockY", "blockZ"), 1)
    | {"sharedMemoryExecuted": 16_384, "tensorSizeMinusOneElements": "[]"},
    "copy": {"copyCount": 1},
    "set": {"memKind": MEMORY_KINDS["Device"]},
    "nvtx": {"eventType": NVTX_PUSH_POP},
    "record": {"timestamp": 0},
}


def create_statements() -> list[str]:
    """What makes the event tables, empty."""
    return [schema.ddl(TABLES[name], columns) for name, columns in COLUMNS.items()]


def insert_statements(global_pid: int) -> dict[str, str]:
    """INSERT statements by event kind, for one process; columns not named stay 0 or NULL."""
    same = {"contextId": 1, "globalPid": global_pid}
    found = {}
    for name, columns in COLUMNS.items():
        bound, said = _BOUND[name], _CONSTANT.get(name, {})
        rest = {c.name: c.default for c in columns if c.not_null and c.name not in bound}
        rest |= {c.name: same[c.name] for c in columns if c.name in same}
        found[name] = _insert(TABLES[name], bound, rest | said)
    return found


def _insert(table: str, bound: Sequence[str], constant: dict[str, object]) -> str:
    literals = [f"'{it}'" if isinstance(it, str) else str(it) for it in constant.values()]
    values = ["?"] * len(bound) + literals
    return f"INSERT INTO {table} ({', '.join([*bound, *constant])}) VALUES ({', '.join(values)})"
