"""The builder of exports: one method per kind of event, times in ns of the session."""

from functools import cache
from typing import Any
from zlib import crc32

from simulator.catalogue import Extent
from simulator.database import Text, signed64
from simulator.host import Host
from simulator.schema import COPY_KINDS, MEMORY_KINDS, SYNC_KINDS
from simulator.session import Process

__all__ = ["Export", "Launch", "Process"]

# start, end[, thread id[, API name]]
Launch = tuple[int, int] | tuple[int, int, int] | tuple[int, int, int, Text]
INVALID = 0xFFFFFFFF
MEMORY_ENDS = {1: ("Pinned", "Device"), 2: ("Device", "Pinned"), 9: ("Pinned", "Pinned")}
SYNC_CALLS = {
    "event": "cudaEventSynchronize_v3020",
    "stream_wait": "cudaStreamWaitEvent_v3020",
    "stream": "cudaStreamSynchronize_v3020",
}


def _path(head: str) -> list[str]:
    """The namespaces and the name of a kernel, without template arguments and parameters."""
    depth, kept = 0, ""
    for letter in head:
        if letter == "(" and depth == 0:
            break
        if letter in "<([{":
            depth += 1
        elif letter in ">)]}" and depth:
            depth -= 1
        elif depth == 0:
            kept += letter
    return kept.split("::")


@cache
def short_name(demangled: str) -> str:
    """The base name: no return type, namespaces, template arguments or parameters."""
    head = demangled.replace("operator()", "operator").replace("<unnamed>::", "")
    base = _path(head)[-1].split()
    return base[-1] if base else demangled


@cache
def mangled_name(demangled: str) -> str:
    """A mangled form: a C name stays as it is, a C++ name an Itanium-like one."""
    if "(" not in demangled:
        return demangled
    head = demangled.removeprefix("void ").replace("<unnamed>", "_GLOBAL__N__1")
    path, tag = _path(head), crc32(demangled.encode())
    parts = "".join(f"{len(part)}{part}" for part in path if part)
    return f"_ZN{parts}ILi{tag}EEEvT_" if len(path) > 1 else f"_Z{parts}ILi{tag}EEvT_"


class Export(Host):
    """One export.

    What a GPU did also takes device, stream and context (0, 7, 1), and correlation or launch: the
    call that it came from. Ranges take domain, and registered where their text is interned.
    """

    def kernel(
        self,
        start: int,
        end: int,
        name: Text,
        *,
        short: Text | None = None,
        mangled: Text | None = None,
        grid: Extent = (1, 1, 1),
        block: Extent = (128, 1, 1),
        registers: int = 32,
        shared: tuple[int, int] = (0, 0),
        graph_node: int | None = None,
        graph: int | None = None,
        **on: Any,
    ) -> int:
        """A kernel; `shared` is static and dynamic bytes. Returns its correlation id."""
        number = self._launched("cudaLaunchKernel_v7000", on)
        if isinstance(name, str):
            short = short_name(name) if short is None else short
            mangled = mangled_name(name) if mangled is None else mangled
        row: dict[str, object] = {"demangledName": self.string(name)}
        row["shortName"] = self.string(name if short is None else short)
        row["mangledName"] = self.string(name if mangled is None else mangled)
        row |= zip(("gridX", "gridY", "gridZ"), grid, strict=True)
        row |= zip(("blockX", "blockY", "blockZ"), block, strict=True)
        row |= zip(("staticSharedMemory", "dynamicSharedMemory"), shared, strict=True)
        row |= {"launchType": 1, "cacheConfig": 1, "gridId": number, "graphNodeId": graph_node}
        row |= {"sharedMemoryExecuted": 32768, "sharedMemoryLimitConfig": 0, "graphId": graph}
        row |= {"tensorSizeMinusOneElements": "[]", "registersPerThread": registers}
        return self._operation("KERNEL", start, end, number, on, row)

    def memcpy(
        self,
        start: int,
        end: int,
        size: int,
        kind: str | int = "HtoD",
        *,
        source: str | None = None,
        target: str | None = None,
        **on: Any,
    ) -> int:
        """A copy of `size` bytes; source and target are memory kinds. Returns its correlation."""
        number = self._launched("cudaMemcpyAsync_v3020", on)
        code = COPY_KINDS[kind] if isinstance(kind, str) else kind
        ends = MEMORY_ENDS.get(code, ("Device", "Device"))
        row: dict[str, object] = {"bytes": size, "copyKind": code, "copyCount": 1}
        row["srcKind"] = MEMORY_KINDS[source or ends[0]]
        row["dstKind"] = MEMORY_KINDS[target or ends[1]]
        return self._operation("MEMCPY", start, end, number, on, row)

    def memset(self, start: int, end: int, size: int, **on: Any) -> int:
        """A fill of `size` bytes. Returns its correlation id."""
        number = self._launched("cudaMemsetAsync_v3020", on)
        row = {"bytes": size, "memKind": MEMORY_KINDS["Device"]}
        return self._operation("MEMSET", start, end, number, on, row)

    def graph_trace(
        self, start: int, end: int, graph: int = 1, graph_exec: int = 2, **on: Any
    ) -> int:
        """One launch of a CUDA graph traced as a whole. Returns its correlation id."""
        number = self._launched("cudaGraphLaunch_v10000", on)
        row = {"graphId": graph, "graphExecId": graph_exec}
        return self._operation("GRAPH_TRACE", start, end, number, on, row)

    def sync(
        self,
        start: int,
        end: int,
        kind: str = "stream",
        *,
        event: int = INVALID,
        event_sync: int = 0,
        **on: Any,
    ) -> int:
        """A wait: event, stream_wait, stream or context. Returns its correlation id."""
        number = self._launched(SYNC_CALLS.get(kind, "cudaDeviceSynchronize_v3020"), on)
        if kind in {"event", "context"}:
            on["stream"] = INVALID
        row = {"syncType": SYNC_KINDS[kind], "eventId": event, "eventSyncId": event_sync}
        return self._operation("SYNCHRONIZATION", start, end, number, on, row)

    def cuda_event(self, event: int, event_sync: int, **on: Any) -> None:
        """An event recorded on a stream; waits name the same `event_sync`."""
        number = self._launched("cudaEventRecord_v3020", on)
        row = {"timestamp": 0, "eventId": event, "eventSyncId": event_sync}
        self._operation("CUDA_EVENT", 0, 0, number, on, row)

    def _launched(self, name: Text, on: dict[str, Any]) -> int:
        """The correlation id of an operation, after the row of its call where there is one."""
        launch, number = on.pop("launch", None), on.pop("correlation", None)
        process = on.get("process")
        if launch is None:
            return self.correlation(process) if number is None else int(number)
        start, end, *more = launch
        tid, called = (*more, None, None)[:2]
        return self.api(start, end, called or name, tid, process=process, correlation=number)

    def _operation(
        self, kind: str, start: int, end: int, number: int, on: dict[str, Any], row: dict[str, Any]
    ) -> int:
        """Add the row of what a GPU did. Returns its correlation id."""
        row |= {"start": start, "end": end, "correlationId": number}
        for name, usual in (("device", 0), ("stream", 7), ("context", 1)):
            row[f"{name}Id"] = on.pop(name, usual)
        row["globalPid"] = self._process(on.pop("process", None)).global_pid
        self.add(f"CUPTI_ACTIVITY_KIND_{kind}", on, **row)
        return number

    def memory_usage(
        self,
        time: int,
        size: int,
        operation: str = "alloc",
        *,
        address: int = 0x7F0000000000,
        kind: str = "Device",
        device: int = 0,
        correlation: int | None = None,
        process: Process | None = None,
    ) -> None:
        """Device memory taken (`alloc`) or given back (`free`), bytes."""
        row: dict[str, object] = {"start": time, "bytes": size, "correlationId": correlation}
        row |= {"globalPid": self._process(process).global_pid, "address": signed64(address)}
        row |= {"deviceId": device, "contextId": 1, "memKind": MEMORY_KINDS[kind]}
        released = {"alloc": 0, "free": 1}[operation]
        self.add("CUDA_GPU_MEMORY_USAGE_EVENTS", row, memoryOperationType=released)

    def gpu_metric(self, time: int, name: Text, value: int, gpu: int = 0) -> None:
        """One sample of a GPU metric, mostly per cent."""
        type_id = (1 << 48) | gpu
        table = self._rows.setdefault("TARGET_INFO_GPU_METRICS", [])
        metric = next((row[3] for row in table if row[0] == type_id and row[4] == name), None)
        if metric is None:
            metric = len(table) + 1
            ids = {"typeId": type_id, "metricId": metric}
            self.add("TARGET_INFO_GPU_METRICS", ids, typeName="GPU", metricName=name)
        row = {"typeId": type_id, "metricId": metric, "value": value}
        self.add("GPU_METRICS", row, rawTimestamp=time, timestamp=time)
