"""The tables of an Nsight Systems SQLite export, for three generations of the exporter.

A table is one line of words in column order: `!` marks NOT NULL, `*` a primary key, `:T` text and
`:R` real; everything else is an integer.
"""

from dataclasses import dataclass

NEW = "new"  # schema 3.27, nsys 2026.3
MID = "mid"  # schema 3.0, nsys 2022.4
OLD = "old"  # no metadata, nsys 2019 and 2020
GENERATIONS = (NEW, MID, OLD)

SCHEMA_VERSION = {NEW: "3.27.0", MID: "3.0.0"}
PRODUCT_VERSION = {NEW: "2026.3.1.157", MID: "2022.4.2.1"}

_ACTIVITY = "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid"
_CALL = "start! end! eventClass! globalTid"
_GRID = "gridX! gridY! gridZ! blockX! blockY! blockZ!"
_MEMORY = "staticSharedMemory! dynamicSharedMemory! localMemoryPerThread! localMemoryTotal!"
_ENUM = "id!* name:T label:T"
_GPU = (
    "vmId! id! name:T busLocation:T isDiscrete l2CacheSize totalMemory memoryBandwidth clockRate "
    "smCount pwGpuId uuid:T luid chipName:T cuDevice ctxswDevPath:T ctrlDevPath:T revision "
    "nodeMask constantMemory maxIPC maxRegistersPerBlock maxShmemPerBlock maxShmemPerBlockOptin "
    "maxShmemPerSm maxRegistersPerSm threadsPerWarp asyncEngines maxWarpsPerSm maxBlocksPerSm "
    "maxThreadsPerBlock maxBlockDimX maxBlockDimY maxBlockDimZ maxGridDimX maxGridDimY "
    "maxGridDimZ computeMajor computeMinor smMajor smMinor"
)
_OLD_GPU = (
    "vmId! name!:T pciBusId:T globalMemoryBandwidth! globalMemorySize! constantMemorySize! "
    "l2CacheSize! numThreadsPerWarp! coreClockRate! numMemcpyEngines! numMultiprocessors! maxIPC! "
    "maxWarpsPerMultiprocessor! maxBlocksPerMultiprocessor! maxRegistersPerBlock! "
    "maxSharedMemoryPerBlock! maxThreadsPerBlock! maxBlockDimX! maxBlockDimY! maxBlockDimZ! "
    "maxGridDimX! maxGridDimY! maxGridDimZ! computeCapabilityMajor! computeCapabilityMinor! "
    "deviceId! pid maxSharedMemoryPerMultiprocessor maxRegistersPerMultiprocessor"
)
_PAYLOAD = (
    "rangeId category color text:T globalTid endGlobalTid textId domainId uint64Value int64Value "
    "doubleValue:R uint32Value int32Value floatValue:R jsonTextId jsonText:T binaryData:T"
)

TABLES: dict[str, str] = {
    "StringIds": "id!* value!:T",
    "ANALYSIS_FILE": "id!* filename:T contentId globalPid!",
    "ProcessStreams": "globalPid! filenameId! contentId!",
    "TARGET_INFO_SYSTEM_ENV": "globalVid devStateName!:T name!:T nameEnum! value!:T",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime:T localTime:T systemClockNs",
    "ANALYSIS_DETAILS": "globalVid! duration! startTime! stopTime!",
    "DIAGNOSTIC_EVENT": "timestamp! timestampType! source! severity! text!:T globalPid",
    "PROCESSES": "globalPid pid name:T",
    "ThreadNames": "nameId! priority globalTid",
    "META_DATA_CAPTURE": "name!:T value:T",
    "META_DATA_EXPORT": "name!:T value:T",
    "EXPORT_META_DATA": "name!:T value:T",
    "TARGET_INFO_GPU": _GPU,
    "TARGET_INFO_CUDA_GPU": _OLD_GPU,
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId! pid! uuid:T numMultiprocessors",
    "TARGET_INFO_CUDA_CONTEXT_INFO": (
        "nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId isGreenContext "
        "numMultiprocessors numTpcs tpcMask:T workqueueResourceId workqueueConcurrencyLimit "
        "workqueueSharingScope"
    ),
    "TARGET_INFO_CUDA_NULL_STREAM": "streamId! hwId! vmId! processId! deviceId! contextId!",
    "TARGET_INFO_CUDA_STREAM": "streamId! hwId! vmId! processId! contextId! priority! flag!",
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        f"{_ACTIVITY} demangledName! shortName! mangledName launchType cacheConfig "
        f"registersPerThread! {_GRID} {_MEMORY} gridId! sharedMemoryExecuted graphNodeId "
        "sharedMemoryLimitConfig qmdBulkReleaseDone qmdPreexitDone qmdLastCtaDone graphId "
        "clusterX clusterY clusterZ clusterSchedulingPolicy maxPotentialClusterSize "
        "maxActiveClusters sharedMemoryRequestedPercentage tensorSizeMinusOneElements!:T"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        f"{_ACTIVITY} bytes! copyKind! deprecatedSrcId srcKind dstKind srcDeviceId srcContextId "
        "dstDeviceId dstContextId migrationCause graphNodeId virtualAddress copyCount"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{_ACTIVITY} value! bytes! graphNodeId memKind",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": f"{_ACTIVITY} graphId! graphExecId!",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (
        f"{_ACTIVITY} deprecatedSyncType syncType! eventId! eventSyncId"
    ),
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": (
        "timestamp deviceId! contextId! greenContextId streamId! correlationId globalPid eventId! "
        "eventSyncId"
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": f"{_CALL} correlationId nameId! returnValue! callchainId",
    "CUPTI_ACTIVITY_KIND_OVERHEAD": f"{_CALL} correlationId nameId overheadType!",
    "CUDA_GRAPH_EVENTS": f"{_CALL} nameId! graphId originalGraphId graphExecId",
    "CUDA_GRAPH_NODE_EVENTS": f"{_CALL} nameId! graphNodeId! originalGraphNodeId",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": (
        "start! globalPid! deviceId! contextId! address! pc! bytes! memKind! memoryOperationType! "
        "name:T correlationId streamId localMemoryPoolAddress localMemoryPoolReleaseThreshold "
        "localMemoryPoolSize localMemoryPoolUtilizedSize importedMemoryPoolAddress "
        "importedMemoryPoolProcessId"
    ),
    "CUBLAS_EVENTS": f"{_CALL} nameId!",
    "CUDNN_EVENTS": f"{_CALL} nameId!",
    "OSRT_API": f"{_CALL} nameId! returnValue! nestingLevel callchainId! argumentsId!",
    "PROFILER_OVERHEAD": "start! end! globalTid nameId! overheadType!",
    "NVTX_EVENTS": f"start! end eventType! {_PAYLOAD}",
    "NVTX_PAYLOAD_SCHEMAS": ("domainId schemaId name:T type flags numEntries payloadSize alignTo"),
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": (
        "domainId! schemaId! idx! flags type name:T description:T arrayOrUnionDetail offset"
    ),
    "NVTX_PAYLOAD_ENUMS": "domainId schemaId name:T numEntries size",
    "NVTX_PAYLOAD_ENUM_ENTRIES": "domainId! schemaId! idx! name:T value isFlag",
    "MPI_RANKS": "globalTid! rank!",
    "MPI_COMMUNICATORS": (
        "rank timestamp commHandle parentHandle localRank size groupRoot groupRootUid members:T "
        "commUid"
    ),
    "MPI_P2P_EVENTS": (
        "start! end globalTid textId commHandle commUid tag remoteRank size requestHandle"
    ),
    "MPI_COLLECTIVES_EVENTS": (
        "start! end globalTid textId commHandle commUid rootRank size recvSize requestHandle"
    ),
    "MPI_START_WAIT_EVENTS": "start! end globalTid textId requestHandle",
    "MPI_OTHER_EVENTS": "start! end globalTid textId",
    "TARGET_INFO_GPU_METRICS": "typeId! sourceId! typeName!:T metricId! metricName!:T",
    "GPU_METRICS": "rawTimestamp! timestamp! typeId! metricId! value!",
    "TARGET_INFO_NETWORK_METRICS": "metricsListId! metricsIdx! name!:T description!:T unit!:T",
    "NET_NIC_METRIC": "start! end! globalId! portId! metricsListId! metricsIdx! value!",
    "ENUM_CUDA_MEMCPY_OPER": _ENUM,
    "ENUM_CUDA_MEM_KIND": _ENUM,
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE": _ENUM,
    "ENUM_CUPTI_STREAM_TYPE": _ENUM,
    "ENUM_CUPTI_SYNC_TYPE": _ENUM,
    "ENUM_NSYS_EVENT_TYPE": _ENUM,
    "ENUM_NSYS_EVENT_CLASS": _ENUM,
    "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": _ENUM,
}


def _words(text: str) -> set[str]:
    return set(text.split())


# Columns and tables that a generation does not have yet, and tables whose columns differ.
_MID_LACKS = _words(
    "greenContextId copyCount deprecatedSyncType eventSyncId timestamp argumentsId systemClockNs "
    "binaryData qmdBulkReleaseDone qmdPreexitDone qmdLastCtaDone graphId clusterX clusterY "
    "clusterZ clusterSchedulingPolicy maxPotentialClusterSize maxActiveClusters "
    "sharedMemoryRequestedPercentage tensorSizeMinusOneElements"
)
_OLD_LACKS = _MID_LACKS | _words(
    "eventClass mangledName sharedMemoryExecuted sharedMemoryLimitConfig graphNodeId"
)
_NEW_TABLES = TABLES.keys() - _words(
    "EXPORT_META_DATA TARGET_INFO_CUDA_GPU TARGET_INFO_CUDA_NULL_STREAM"
)
_MID_TABLES = TABLES.keys() - _words(
    "ANALYSIS_FILE META_DATA_CAPTURE META_DATA_EXPORT TARGET_INFO_CUDA_DEVICE DIAGNOSTIC_EVENT "
    "TARGET_INFO_CUDA_CONTEXT_INFO TARGET_INFO_CUDA_GPU CUPTI_ACTIVITY_KIND_OVERHEAD "
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE CUDA_GRAPH_NODE_EVENTS MPI_RANKS MPI_COMMUNICATORS "
    "MPI_P2P_EVENTS MPI_COLLECTIVES_EVENTS MPI_START_WAIT_EVENTS MPI_OTHER_EVENTS GPU_METRICS "
    "TARGET_INFO_GPU_METRICS NVTX_PAYLOAD_SCHEMAS NVTX_PAYLOAD_SCHEMA_ENTRIES NVTX_PAYLOAD_ENUMS "
    "NVTX_PAYLOAD_ENUM_ENTRIES NET_NIC_METRIC TARGET_INFO_NETWORK_METRICS"
)
_OLD_TABLES = _words(
    "StringIds ThreadNames ProcessStreams TARGET_INFO_GPU TARGET_INFO_CUDA_GPU NVTX_EVENTS "
    "TARGET_INFO_CUDA_NULL_STREAM TARGET_INFO_CUDA_STREAM CUPTI_ACTIVITY_KIND_KERNEL OSRT_API "
    "CUPTI_ACTIVITY_KIND_MEMCPY CUPTI_ACTIVITY_KIND_MEMSET CUPTI_ACTIVITY_KIND_SYNCHRONIZATION "
    "CUPTI_ACTIVITY_KIND_RUNTIME CUBLAS_EVENTS CUDNN_EVENTS PROFILER_OVERHEAD"
)
_OVERRIDES: dict[str, dict[str, str]] = {
    NEW: {},
    MID: {
        "CUDA_GRAPH_EVENTS": f"{_CALL} nameId! graphNodeId! originalGraphNodeId",
        "PROFILER_OVERHEAD": "start! end! globalTid nameId! returnValue!",
        "CUDA_GPU_MEMORY_USAGE_EVENTS": (
            "start! globalPid! deviceId! contextId! address! pc! bytes! memKind! "
            "memoryOperationType! name:T correlationId"
        ),
    },
    OLD: {
        "TARGET_INFO_GPU": "vmId! deviceId! name:T busLocation:T isDiscrete",
        "PROFILER_OVERHEAD": "start! end! globalTid correlationId nameId! returnValue!",
        "CUPTI_ACTIVITY_KIND_MEMCPY": (
            "start! end! deviceId! contextId! streamId! correlationId globalPid bytes! copyKind! "
            "srcId srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId "
            "migrationCause"
        ),
        "OSRT_API": (
            "start! end! globalTid correlationId nameId! returnValue! nestingLevel callchainId!"
        ),
    },
}
_ALWAYS = _words(
    "StringIds ProcessStreams TARGET_INFO_SYSTEM_ENV TARGET_INFO_SESSION_START_TIME "
    "ANALYSIS_DETAILS PROCESSES ThreadNames"
)
ALWAYS_PRESENT: dict[str, set[str]] = {
    NEW: _ALWAYS
    | {"ANALYSIS_FILE", "DIAGNOSTIC_EVENT", "META_DATA_CAPTURE", "META_DATA_EXPORT"}
    | {name for name in TABLES if name.startswith("ENUM_")},
    MID: _ALWAYS | {"EXPORT_META_DATA"} | {name for name in TABLES if name.startswith("ENUM_CU")},
    OLD: {"StringIds", "ThreadNames", "ProcessStreams"},
}


@dataclass(frozen=True)
class Column:
    """One column of a table: its name, declared type and constraints."""

    name: str
    declared: str
    not_null: bool
    primary_key: bool

    @property
    def default(self) -> object:
        """What the builder writes where nothing was said."""
        if not self.not_null:
            return None
        return "" if self.declared == "TEXT" else 0


def _column(word: str, integer: str) -> Column:
    name, _, kind = word.partition(":")
    declared = {"": integer, "T": "TEXT", "R": "REAL"}[kind]
    return Column(name.rstrip("!*"), declared, "!" in name, name.endswith("*"))


def tables(generation: str) -> dict[str, tuple[Column, ...]]:
    """Every table of a generation: name -> columns in order."""
    integer = "INT" if generation == OLD else "INTEGER"
    lacking = {NEW: set[str](), MID: _MID_LACKS, OLD: _OLD_LACKS}[generation]
    has = {NEW: _NEW_TABLES, MID: _MID_TABLES, OLD: _OLD_TABLES}[generation]
    found = {}
    for name in (name for name in TABLES if name in has):
        override = _OVERRIDES[generation].get(name)
        columns = [_column(word, integer) for word in (override or TABLES[name]).split()]
        found[name] = tuple(c for c in columns if override or c.name not in lacking)
    return found


def ddl(name: str, columns: tuple[Column, ...]) -> str:
    """The CREATE TABLE statement of a table."""
    parts = []
    for c in columns:
        constraint = (" NOT NULL" if c.not_null else "") + (" PRIMARY KEY" * c.primary_key)
        parts.append(f'"{c.name}" {c.declared}{constraint}')
    return f"CREATE TABLE {name} ({', '.join(parts)})"
