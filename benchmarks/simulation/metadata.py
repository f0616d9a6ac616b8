"""Everything of an export that is not an event: who, where, when, with what."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime

from simulation.names import StringTable
from simulation.rows import COMMUNICATOR, NCCL_DOMAIN, Identity
from simulation.schema import insert_statement
from simulation.statements import PUSH_POP

RANKS_PER_NODE = 4
DOMAIN_CREATE = 75
JOB_START_UTC_NS = 1_780_000_000_000_000_000
JOB_START_SYSTEM_NS = 4_000_000_000_000
SM_COUNT = 108
VM_ID = 1 << 48

Row = dict[str, int | str]

_GPU: Row = {
    "isDiscrete": 1,
    "l2CacheSize": 41_943_040,
    "totalMemory": 85_899_345_920,
    "memoryBandwidth": 2_039_000_000_000,
    "clockRate": 1_410_000_000,
    "smCount": SM_COUNT,
    "chipName": "GA100",
    "maxRegistersPerBlock": 65_536,
    "maxShmemPerBlock": 49_152,
    "maxShmemPerBlockOptin": 166_912,
    "maxShmemPerSm": 167_936,
    "maxRegistersPerSm": 65_536,
    "threadsPerWarp": 32,
    "asyncEngines": 3,
    "maxWarpsPerSm": 64,
    "maxBlocksPerSm": 32,
    "maxThreadsPerBlock": 1_024,
    "computeMajor": 8,
    "computeMinor": 0,
    "smMajor": 8,
    "smMinor": 0,
}
_EXPORT = {
    "EXPORT_PRODUCT_NAME": "NVIDIA Nsight Systems",
    "EXPORT_PRODUCT_VERSION": "2026.3.1.157",
    "EXPORT_SCHEMA_VERSION": "3.27.0",
    "EXPORT_SCHEMA_VERSION_MAJOR": "3",
    "EXPORT_SCHEMA_VERSION_MINOR": "27",
    "EXPORT_SCHEMA_VERSION_MICRO": "0",
    "EXPORT_PARAM_EXPORT_TYPE": "SQLite",
    "EXPORT_PARAM_LAZY": "true",
    "EXPORT_PARAM_INCLUDE_JSON": "true",
    "EXPORT_CONFIG_TIME_SHIFT": "0",
}


def _insert(connection: sqlite3.Connection, table: str, row: Row) -> None:
    connection.execute(insert_statement(table, list(row), {}), tuple(row.values()))


def write_metadata(
    connection: sqlite3.Connection,
    identity: Identity,
    strings: StringTable,
    devices: int,
    duration_ns: int,
) -> None:
    """Fill the tables that describe the report; last of all the strings that were used."""
    _write_clock(connection, identity, duration_ns)
    _write_process(connection, identity, strings, devices)
    _write_communicator(connection, identity, strings, devices)
    for device in range(devices):
        _write_gpu(connection, identity, device, devices)
    for name, value in _EXPORT.items():
        _insert(connection, "META_DATA_EXPORT", {"name": name, "value": value})
    rows = [(number, text) for text, number in strings.ids.items()]
    connection.executemany("INSERT INTO StringIds (id, value) VALUES (?, ?)", rows)


def _write_clock(connection: sqlite3.Connection, identity: Identity, duration_ns: int) -> None:
    """Ranks of a node share a clock; nodes differ by what time synchronisation leaves."""
    node = identity.rank // RANKS_PER_NODE
    utc_ns = JOB_START_UTC_NS + identity.clock_offset + node * 137_000
    system_ns = JOB_START_SYSTEM_NS + identity.clock_offset + node * 10**12
    text = datetime.fromtimestamp(utc_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    _insert(
        connection,
        "TARGET_INFO_SESSION_START_TIME",
        {"utcEpochNs": utc_ns, "utcTime": text, "localTime": text, "systemClockNs": system_ns},
    )
    _insert(
        connection,
        "ANALYSIS_DETAILS",
        {
            "globalVid": VM_ID,
            "duration": duration_ns,
            "startTime": system_ns,
            "stopTime": system_ns + duration_ns,
        },
    )


def _write_process(
    connection: sqlite3.Connection, identity: Identity, strings: StringTable, devices: int
) -> None:
    _insert(
        connection,
        "PROCESSES",
        {"globalPid": identity.global_pid, "pid": identity.pid, "name": "python"},
    )
    for device in range(devices):
        thread = {"nameId": strings["python" if not device else f"device {device}"]}
        tid = identity.global_tid(device)
        _insert(connection, "ThreadNames", {**thread, "priority": 20, "globalTid": tid})
    host = f"node{identity.rank // RANKS_PER_NODE}"
    _insert(
        connection,
        "TARGET_INFO_SYSTEM_ENV",
        {
            "globalVid": VM_ID,
            "devStateName": "Local (CLI)",
            "name": "Hostname",
            "nameEnum": 619,
            "value": host,
        },
    )
    local = identity.rank % RANKS_PER_NODE
    keys = {"RANK": identity.rank, "LOCAL_RANK": local, "WORLD_SIZE": identity.world_size}
    capture = [("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Graph")]
    capture += [("PROCESS_0:ENVIRONMENT_VARIABLE", f'{k}="{v}"') for k, v in keys.items()]
    for name, value in capture:
        _insert(connection, "META_DATA_CAPTURE", {"name": name, "value": value})


def _write_communicator(
    connection: sqlite3.Connection, identity: Identity, strings: StringTable, devices: int
) -> None:
    """The NCCL domain and each device's ncclCommInitRank."""
    start = 10_000_000
    for device in range(devices):
        event: Row = {
            "start": start,
            "globalTid": identity.global_tid(device),
            "domainId": NCCL_DOMAIN,
        }
        payload = {
            "NCCL communicator ID": COMMUNICATOR,
            "No. of ranks": identity.world_size * devices,
            "Rank": identity.rank * devices + device,
            "CUDA device": device,
        }
        join: Row = {
            "end": start + 200_000_000,
            "eventType": PUSH_POP,
            "textId": strings["ncclCommInitRankConfig"],
            "jsonText": json.dumps(payload, separators=(",", ":")),
        }
        if not device:
            domain: Row = event | {"eventType": DOMAIN_CREATE, "text": "NCCL"}
            _insert(connection, "NVTX_EVENTS", domain)
        _insert(connection, "NVTX_EVENTS", event | join)


def _write_gpu(
    connection: sqlite3.Connection, identity: Identity, device: int, devices: int
) -> None:
    index = identity.rank % RANKS_PER_NODE * devices + device
    uuid = f"00000000-0000-0000-{identity.rank // RANKS_PER_NODE:04x}-{index:012x}"
    row: Row = {
        "vmId": VM_ID,
        "id": index,
        "name": "NVIDIA A100-SXM4-80GB",
        "busLocation": f"0000:{index + 1:02x}:00.0",
        "uuid": uuid,
        "pwGpuId": index,
        "cuDevice": device,
    }
    _insert(connection, "TARGET_INFO_GPU", row | _GPU)
    _insert(
        connection,
        "TARGET_INFO_CUDA_DEVICE",
        {
            "gpuId": index,
            "cudaId": device,
            "pid": identity.pid,
            "uuid": uuid,
            "numMultiprocessors": SM_COUNT,
        },
    )
