"""The INSERT of every event table: what changes is bound, what never does is spelled out."""

from __future__ import annotations

from simulation.schema import insert_statement

PUSH_POP = 59

_OPERATION = ["start", "end", "deviceId", "streamId", "correlationId"]
_NAMES = ["demangledName", "shortName", "mangledName"]
_SHAPE = ["registersPerThread", "gridX", "gridY", "blockX", "dynamicSharedMemory"]
_ONE = ("launchType", "gridZ", "blockY", "blockZ")
_ZERO = (
    "cacheConfig",
    "staticSharedMemory",
    "localMemoryPerThread",
    "sharedMemoryLimitConfig",
    "clusterX",
    "clusterY",
    "clusterZ",
    "clusterSchedulingPolicy",
    "maxPotentialClusterSize",
    "maxActiveClusters",
)


def event_statements(global_pid: int) -> dict[str, str]:
    """INSERT statements by event kind, for one process."""
    activity = {"contextId": 1, "greenContextId": 0, "globalPid": global_pid}
    kernel = activity | dict.fromkeys(_ONE, 1) | dict.fromkeys(_ZERO, 0)
    return {
        "kernel": insert_statement(
            "CUPTI_ACTIVITY_KIND_KERNEL",
            [*_OPERATION, *_NAMES, *_SHAPE, "localMemoryTotal", "gridId"],
            {**kernel, "sharedMemoryExecuted": 16_384, "tensorSizeMinusOneElements": "[]"},
        ),
        "copy": insert_statement(
            "CUPTI_ACTIVITY_KIND_MEMCPY",
            [*_OPERATION, "bytes", "copyKind", "srcKind", "dstKind"],
            activity | {"copyCount": 1},
        ),
        "set": insert_statement(
            "CUPTI_ACTIVITY_KIND_MEMSET",
            [*_OPERATION, "bytes"],
            activity | {"value": 0, "memKind": 2},
        ),
        "api": insert_statement(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            ["start", "end", "globalTid", "correlationId", "nameId"],
            {"eventClass": 0, "returnValue": 0},
        ),
        "nvtx": insert_statement(
            "NVTX_EVENTS",
            ["start", "end", "globalTid", "textId", "domainId", "jsonText"],
            {"eventType": PUSH_POP},
        ),
    }
