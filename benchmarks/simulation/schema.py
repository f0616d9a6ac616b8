"""The tables of a simulated export: columns as in schema 3.27, in the same order.

Each column is INTEGER; `:T` makes it TEXT, `:R` REAL, `!` NOT NULL, `*` the primary key.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

_ACTIVITY = "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid "
_TYPES = {"": "INTEGER", "T": "TEXT", "R": "REAL"}

_TABLES = {
    "StringIds": "id* value:T!",
    "TARGET_INFO_SYSTEM_ENV": "globalVid devStateName:T! name:T! nameEnum! value:T!",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime:T localTime:T systemClockNs",
    "ANALYSIS_DETAILS": "globalVid! duration! startTime! stopTime!",
    "PROCESSES": "globalPid pid name:T",
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        "start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId"
    ),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        _ACTIVITY + "demangledName! shortName! mangledName launchType cacheConfig "
        "registersPerThread! gridX! gridY! gridZ! blockX! blockY! blockZ! staticSharedMemory! "
        "dynamicSharedMemory! localMemoryPerThread! localMemoryTotal! gridId! "
        "sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig qmdBulkReleaseDone "
        "qmdPreexitDone qmdLastCtaDone graphId clusterX clusterY clusterZ "
        "clusterSchedulingPolicy maxPotentialClusterSize maxActiveClusters "
        "sharedMemoryRequestedPercentage tensorSizeMinusOneElements:T!"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        _ACTIVITY + "bytes! copyKind! deprecatedSrcId srcKind dstKind srcDeviceId srcContextId "
        "dstDeviceId dstContextId migrationCause graphNodeId virtualAddress copyCount"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": _ACTIVITY + "value! bytes! graphNodeId memKind",
    "NVTX_EVENTS": (
        "start! end eventType! rangeId category color text:T globalTid endGlobalTid textId "
        "domainId uint64Value int64Value doubleValue:R uint32Value int32Value floatValue:R "
        "jsonTextId jsonText:T binaryData:T"
    ),
    "ThreadNames": "nameId! priority globalTid",
    "TARGET_INFO_GPU": (
        "vmId! id! name:T busLocation:T isDiscrete l2CacheSize totalMemory memoryBandwidth "
        "clockRate smCount pwGpuId uuid:T luid chipName:T cuDevice ctxswDevPath:T ctrlDevPath:T "
        "revision nodeMask constantMemory maxIPC maxRegistersPerBlock maxShmemPerBlock "
        "maxShmemPerBlockOptin maxShmemPerSm maxRegistersPerSm threadsPerWarp asyncEngines "
        "maxWarpsPerSm maxBlocksPerSm maxThreadsPerBlock maxBlockDimX maxBlockDimY "
        "maxBlockDimZ maxGridDimX maxGridDimY maxGridDimZ computeMajor computeMinor smMajor "
        "smMinor"
    ),
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId! pid! uuid:T numMultiprocessors",
    "META_DATA_CAPTURE": "name:T! value:T",
    "META_DATA_EXPORT": "name:T! value:T",
}


def _column(spec: str) -> tuple[str, str]:
    """The name and SQL type of one column of `_TABLES`."""
    name, _, kind = spec.rstrip("!*").partition(":")
    primary = " NOT NULL PRIMARY KEY" if spec.endswith("*") else ""
    required = " NOT NULL" if spec.endswith("!") else ""
    return name, _TYPES[kind] + primary + required


TABLES = {
    table: dict(_column(spec) for spec in columns.split()) for table, columns in _TABLES.items()
}


def create_tables(connection: sqlite3.Connection) -> None:
    """Create every table of the export, empty."""
    for table, columns in TABLES.items():
        body = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        connection.execute(f"CREATE TABLE {table} ({body})")


def insert_statement(table: str, bound: list[str], constant: Mapping[str, int | str]) -> str:
    """An INSERT that binds some columns and spells the constant ones out; the rest stay NULL.

    Constants in the statement's text instead of in every row make the large tables faster.
    """
    unknown = (set(bound) | set(constant)) - TABLES[table].keys()
    if unknown:
        raise ValueError(f"{table} has no column {', '.join(sorted(unknown))}")
    names = [*bound, *constant]
    literals = [f"'{it}'" if isinstance(it, str) else str(it) for it in constant.values()]
    values = ["?"] * len(bound) + literals
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(values)})"
