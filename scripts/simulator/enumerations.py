"""Enumerations that exports carry as ENUM_ tables: (id, name, label)."""

Member = tuple[int, str, str]


def _members(prefix: str, words: str, labels: str, first: int = 0) -> tuple[Member, ...]:
    names = words.split()
    texts = labels.split("|")
    return tuple(
        (number, prefix + name, label)
        for number, (name, label) in enumerate(zip(names, texts, strict=True), first)
    )


def _same(numbers: dict[int, str]) -> tuple[Member, ...]:
    return tuple((number, name, name) for number, name in numbers.items())


COPY_KINDS = {
    "Unknown": 0,
    "HtoD": 1,
    "DtoH": 2,
    "HtoA": 3,
    "AtoH": 4,
    "AtoA": 5,
    "AtoD": 6,
    "DtoA": 7,
    "DtoD": 8,
    "HtoH": 9,
    "PtoP": 10,
    "UvmHtoD": 11,
    "UvmDtoH": 12,
    "UvmDtoD": 13,
}
MEMORY_KINDS = {
    "Pageable": 0,
    "Pinned": 1,
    "Device": 2,
    "Array": 3,
    "Managed": 4,
    "DeviceStatic": 5,
    "ManagedStatic": 6,
    "Unknown": 7,
}
SYNC_KINDS = {"unknown": 0, "event": 1, "stream_wait": 2, "stream": 3, "context": 4}
EVENT_CLASSES = {
    "runtime": 0,
    "driver": 1,
    "osrt": 27,
    "cudnn": 28,
    "cublas": 29,
    "graph_node": 77,
    "graph_exec": 94,
    "graph": 95,
}
NVTX_CATEGORY, NVTX_MARK, NVTX_THREAD = 33, 34, 39
NVTX_PUSH_POP, NVTX_START_END, NVTX_DOMAIN = 59, 60, 75

ENUMERATIONS: dict[str, tuple[Member, ...]] = {
    "ENUM_CUDA_MEMCPY_OPER": _members(
        "CUDA_MEMCPY_KIND_",
        "UNKNOWN HTOD DTOH HTOA ATOH ATOA ATOD DTOA DTOD HTOH PTOP UVM_HTOD UVM_DTOH UVM_DTOD",
        "Unknown|Host-to-Device|Device-to-Host|Host-to-Array|Array-to-Host|Array-to-Array|"
        "Array-to-Device|Device-to-Array|Device-to-Device|Host-to-Host|Peer-to-Peer|"
        "Unified Host-to-Device|Unified Device-to-Host|Unified Device-to-Device",
    ),
    "ENUM_CUDA_MEM_KIND": _members(
        "CUDA_MEMOPR_MEMORY_KIND_",
        "PAGEABLE PINNED DEVICE ARRAY MANAGED DEVICE_STATIC MANAGED_STATIC UNKNOWN",
        "Pageable|Pinned|Device|Array|Managed|Device Static|Managed Static|Unknown",
    ),
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE": _members(
        "CUDA_KERNEL_LAUNCH_TYPE_",
        "UNKNOWN REGULAR COOPERATIVE_SINGLE_DEVICE COOPERATIVE_MULTI_DEVICE",
        "Unknown|Regular|Coop Single Device|Coop Multi Device",
    ),
    "ENUM_CUPTI_STREAM_TYPE": _members(
        "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_",
        "UNKNOWN DEFAULT NON_BLOCKING NULL",
        "Unknown stream type|Default stream|Non-blocking stream|Null stream",
    ),
    "ENUM_CUPTI_SYNC_TYPE": _members(
        "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_",
        "UNKNOWN EVENT_SYNCHRONIZE STREAM_WAIT_EVENT STREAM_SYNCHRONIZE CONTEXT_SYNCHRONIZE",
        "Unknown|Event sync|Stream wait sync|Stream sync|Context sync",
    ),
    "ENUM_NSYS_EVENT_TYPE": _same(
        {
            NVTX_CATEGORY: "NvtxCategory",
            NVTX_MARK: "NvtxMark",
            NVTX_THREAD: "NvtxThread",
            NVTX_PUSH_POP: "NvtxPushPopRange",
            NVTX_START_END: "NvtxStartEndRange",
            NVTX_DOMAIN: "NvtxDomainCreate",
            76: "NvtxDomainDestroy",
        }
    ),
    "ENUM_NSYS_EVENT_CLASS": (
        (0, "TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime"),
        (1, "TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver"),
        (13, "TRACE_PROCESS_EVENT_CUDA_EGL_DRIVER", "CUDA EGL driver"),
        (27, "TRACE_PROCESS_EVENT_OS_RUNTIME", "OSRT runtime"),
        (28, "TRACE_PROCESS_EVENT_CUDNN", "cuDNN"),
        (29, "TRACE_PROCESS_EVENT_CUBLAS", "cuBLAS"),
        (77, "TRACE_PROCESS_EVENT_CUDA_GRAPH_NODE_CREATION", "CUDA graph node creation"),
        (94, "TRACE_PROCESS_EVENT_CUDA_GRAPHEXEC_CREATION", "CUDA graph exec creation"),
        (95, "TRACE_PROCESS_EVENT_CUDA_GRAPH_CREATION", "CUDA graph creation"),
    ),
    "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": _members(
        "", "UnknownLevel Info Warning Error Verbose", "Unknown|Info|Warning|Error|Verbose"
    ),
}
