"""The builder of small exports: one method per kind of event, times in ns of the session."""

from simulator.database import Text, signed64
from simulator.enumerations import COPY_KINDS, EVENT_CLASSES, MEMORY_KINDS, SYNC_KINDS
from simulator.host import Host, Launch
from simulator.names import mangled_name, short_name
from simulator.session import Process

__all__ = ["Export", "Launch", "Process"]

Extent = tuple[int, int, int]
INVALID = 0xFFFFFFFF


class Export(Host):
    """One export. Every method takes overriding columns by their own name where it says so."""

    def kernel(
        self,
        start: int,
        end: int,
        name: Text,
        *,
        short: Text | None = None,
        mangled: Text | None = None,
        device: int = 0,
        stream: int = 7,
        context: int = 1,
        grid: Extent = (1, 1, 1),
        block: Extent = (128, 1, 1),
        registers: int = 32,
        shared: tuple[int, int] = (0, 0),
        process: Process | None = None,
        correlation: int | None = None,
        launch: Launch | None = None,
        graph_node: int | None = None,
        graph: int | None = None,
        **columns: object,
    ) -> int:
        """A kernel; `shared` is static and dynamic bytes. Returns its correlation id."""
        number = self._launch(launch, "cudaLaunchKernel_v7000", process, correlation)
        if isinstance(name, str):
            short = short_name(name) if short is None else short
            mangled = mangled_name(name) if mangled is None else mangled
        row = self._activity(start, end, device, context, stream, number, process)
        row |= dict(zip(("gridX", "gridY", "gridZ"), grid, strict=True))
        row |= dict(zip(("blockX", "blockY", "blockZ"), block, strict=True))
        row |= {
            "demangledName": self.string(name),
            "shortName": self.string(name if short is None else short),
            "mangledName": self.string(name if mangled is None else mangled),
            "launchType": 1,
            "cacheConfig": 1,
            "registersPerThread": registers,
            "staticSharedMemory": shared[0],
            "dynamicSharedMemory": shared[1],
            "gridId": number,
            "sharedMemoryExecuted": 32768,
            "sharedMemoryLimitConfig": 0,
            "graphNodeId": graph_node,
            "graphId": graph,
            "tensorSizeMinusOneElements": "[]",
        }
        self.add("CUPTI_ACTIVITY_KIND_KERNEL", row, **columns)
        return number

    def memcpy(
        self,
        start: int,
        end: int,
        size: int,
        kind: str | int = "HtoD",
        *,
        source: str | None = None,
        target: str | None = None,
        device: int = 0,
        stream: int = 7,
        context: int = 1,
        process: Process | None = None,
        correlation: int | None = None,
        launch: Launch | None = None,
        **columns: object,
    ) -> int:
        """A copy of `size` bytes; source and target are memory kinds. Returns its correlation."""
        number = self._launch(launch, "cudaMemcpyAsync_v3020", process, correlation)
        code = COPY_KINDS[kind] if isinstance(kind, str) else kind
        default = {1: ("Pinned", "Device"), 2: ("Device", "Pinned"), 9: ("Pinned", "Pinned")}
        ends = default.get(code, ("Device", "Device"))
        row = self._activity(start, end, device, context, stream, number, process)
        row |= {
            "bytes": size,
            "copyKind": code,
            "srcKind": MEMORY_KINDS[source or ends[0]],
            "dstKind": MEMORY_KINDS[target or ends[1]],
            "copyCount": 1,
        }
        self.add("CUPTI_ACTIVITY_KIND_MEMCPY", row, **columns)
        return number

    def memset(
        self,
        start: int,
        end: int,
        size: int,
        value: int = 0,
        *,
        device: int = 0,
        stream: int = 7,
        context: int = 1,
        process: Process | None = None,
        correlation: int | None = None,
        launch: Launch | None = None,
        **columns: object,
    ) -> int:
        """A fill of `size` bytes. Returns its correlation id."""
        number = self._launch(launch, "cudaMemsetAsync_v3020", process, correlation)
        row = self._activity(start, end, device, context, stream, number, process)
        row |= {"value": value, "bytes": size, "memKind": MEMORY_KINDS["Device"]}
        self.add("CUPTI_ACTIVITY_KIND_MEMSET", row, **columns)
        return number

    def graph_trace(
        self,
        start: int,
        end: int,
        graph: int = 1,
        graph_exec: int = 2,
        *,
        device: int = 0,
        stream: int = 7,
        context: int = 1,
        process: Process | None = None,
        correlation: int | None = None,
        launch: Launch | None = None,
        **columns: object,
    ) -> int:
        """One launch of a CUDA graph traced as a whole. Returns its correlation id."""
        number = self._launch(launch, "cudaGraphLaunch_v10000", process, correlation)
        row = self._activity(start, end, device, context, stream, number, process)
        row |= {"graphId": graph, "graphExecId": graph_exec}
        self.add("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", row, **columns)
        return number

    def graph_event(
        self,
        start: int,
        graph: int = 1,
        graph_exec: int | None = None,
        *,
        tid: int | None = None,
        process: Process | None = None,
        **columns: object,
    ) -> int:
        """Creation of a graph, or of its executable when `graph_exec` is said. Returns it."""
        kind, name = ("graph", "cudaStreamEndCapture_v10000")
        if graph_exec is not None:
            kind, name = ("graph_exec", "cudaGraphInstantiateWithFlags_v11040")
        row = {
            "start": start,
            "end": start,
            "eventClass": EVENT_CLASSES[kind],
            "globalTid": self._process(process).thread(tid),
            "nameId": self.string(name),
            "graphId": graph,
            "graphExecId": graph_exec,
        }
        self.add("CUDA_GRAPH_EVENTS", row, **columns)
        return graph if graph_exec is None else graph_exec

    def graph_node(
        self,
        start: int,
        node: int,
        *,
        original: int | None = None,
        name: Text = "cudaLaunchKernel_v7000",
        tid: int | None = None,
        process: Process | None = None,
    ) -> int:
        """Creation of a node of a graph. Returns the node's id."""
        row = {
            "start": start,
            "end": start,
            "eventClass": EVENT_CLASSES["graph_node"],
            "globalTid": self._process(process).thread(tid),
            "nameId": self.string(name),
            "graphNodeId": node,
            "originalGraphNodeId": original,
        }
        self.add("CUDA_GRAPH_NODE_EVENTS", row)
        return node

    def sync(
        self,
        start: int,
        end: int,
        kind: str = "stream",
        *,
        stream: int | None = 7,
        event: int | None = None,
        event_sync: int = 0,
        context: int = 1,
        process: Process | None = None,
        correlation: int | None = None,
        launch: Launch | None = None,
        **columns: object,
    ) -> int:
        """A wait: event, stream_wait, stream or context. Returns its correlation id."""
        names = {
            "event": "cudaEventSynchronize_v3020",
            "stream_wait": "cudaStreamWaitEvent_v3020",
            "stream": "cudaStreamSynchronize_v3020",
        }
        default = names.get(kind, "cudaDeviceSynchronize_v3020")
        number = self._launch(launch, default, process, correlation)
        where = INVALID if stream is None or kind in {"event", "context"} else stream
        row = self._activity(start, end, 0, context, where, number, process)
        row |= {
            "syncType": SYNC_KINDS[kind],
            "eventId": INVALID if event is None else event,
            "eventSyncId": event_sync,
        }
        self.add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", row, **columns)
        return number

    def cuda_event(
        self,
        event: int,
        event_sync: int,
        *,
        stream: int = 7,
        device: int = 0,
        context: int = 1,
        process: Process | None = None,
        correlation: int | None = None,
        launch: Launch | None = None,
        **columns: object,
    ) -> int:
        """An event recorded on a stream; waits name the same `event_sync`. Returns it."""
        number = self._launch(launch, "cudaEventRecord_v3020", process, correlation)
        row = self._activity(0, 0, device, context, stream, number, process)
        row |= {"timestamp": 0, "eventId": event, "eventSyncId": event_sync}
        self.add("CUPTI_ACTIVITY_KIND_CUDA_EVENT", row, **columns)
        return event_sync

    def memory_usage(
        self,
        time: int,
        size: int,
        operation: str = "alloc",
        *,
        address: int = 0x7F0000000000,
        kind: str = "Device",
        device: int = 0,
        process: Process | None = None,
        correlation: int | None = None,
        **columns: object,
    ) -> None:
        """Device memory taken (`alloc`) or given back (`free`), bytes."""
        row = {
            "start": time,
            "globalPid": self._process(process).global_pid,
            "deviceId": device,
            "contextId": 1,
            "address": signed64(address),
            "bytes": size,
            "memKind": MEMORY_KINDS[kind],
            "memoryOperationType": {"alloc": 0, "free": 1}[operation],
            "correlationId": correlation,
        }
        self.add("CUDA_GPU_MEMORY_USAGE_EVENTS", row, **columns)

    def gpu_metric(self, time: int, name: Text, value: int, gpu: int = 0) -> None:
        """One sample of a GPU metric, mostly per cent."""
        type_id = (1 << 48) | gpu
        known = self._rows.get("TARGET_INFO_GPU_METRICS", [])
        metric = next((row[3] for row in known if row[0] == type_id and row[4] == name), None)
        if metric is None:
            metric = len(known) + 1
            row = {"typeId": type_id, "typeName": "GPU", "metricId": metric, "metricName": name}
            self.add("TARGET_INFO_GPU_METRICS", row)
        row = {"rawTimestamp": time, "timestamp": time, "typeId": type_id, "metricId": metric}
        self.add("GPU_METRICS", row | {"value": value})

    def nic_metric(self, start: int, end: int, name: Text, value: int, nic: int = 1) -> None:
        """The mean rate of a counter of a network interface, in bytes/ms."""
        known = self._rows.get("TARGET_INFO_NETWORK_METRICS", [])
        place = next((row[1] for row in known if row[2] == name), None)
        if place is None:
            place = len(known)
            row = {"metricsListId": 0, "metricsIdx": place, "name": name, "unit": "bytes/ms"}
            self.add("TARGET_INFO_NETWORK_METRICS", row | {"description": ""})
        where = {"globalId": nic, "portId": 1, "metricsListId": 0, "metricsIdx": place}
        self.add("NET_NIC_METRIC", {"start": start, "end": end, **where, "value": value})

    def _activity(
        self,
        start: int,
        end: int,
        device: int,
        context: int,
        stream: int,
        correlation: int,
        process: Process | None,
    ) -> dict[str, object]:
        return {
            "start": start,
            "end": end,
            "deviceId": device,
            "contextId": context,
            "greenContextId": None,
            "streamId": stream,
            "correlationId": correlation,
            "globalPid": self._process(process).global_pid,
        }
