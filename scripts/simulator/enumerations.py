"""Enumerations that exports carry as ENUM_ tables: (id, name, label)."""

Member = tuple[int, str, str]


def _numbered(words: str) -> dict[str, int]:
    return {name: number for number, name in enumerate(words.split())}


COPY_KINDS = _numbered(
    "Unknown HtoD DtoH HtoA AtoH AtoA AtoD DtoA DtoD HtoH PtoP UvmHtoD UvmDtoH UvmDtoD"
)
MEMORY_KINDS = _numbered("Pageable Pinned Device Array Managed DeviceStatic ManagedStatic Unknown")
SYNC_KINDS = _numbered("unknown event stream_wait stream context")
NVTX_MARK, NVTX_THREAD, NVTX_PUSH_POP, NVTX_START_END, NVTX_DOMAIN = 34, 39, 59, 60, 75
# Classes of events by what is called here: number, name and label.
_CLASSES = {
    "runtime": (0, "CUDA_RUNTIME", "CUDA runtime"),
    "driver": (1, "CUDA_DRIVER", "CUDA driver"),
    "egl": (13, "CUDA_EGL_DRIVER", "CUDA EGL driver"),
    "osrt": (27, "OS_RUNTIME", "OSRT runtime"),
    "cudnn": (28, "CUDNN", "cuDNN"),
    "cublas": (29, "CUBLAS", "cuBLAS"),
    "graph_node": (77, "CUDA_GRAPH_NODE_CREATION", "CUDA graph node creation"),
    "graph_exec": (94, "CUDA_GRAPHEXEC_CREATION", "CUDA graph exec creation"),
    "graph": (95, "CUDA_GRAPH_CREATION", "CUDA graph creation"),
}
EVENT_CLASSES = {name: number for name, (number, _, _) in _CLASSES.items()}
_EVENT_TYPES = {33: "Category", 34: "Mark", 39: "Thread", 59: "PushPopRange"}
_EVENT_TYPES |= {60: "StartEndRange", 75: "DomainCreate", 76: "DomainDestroy"}


def _members(prefix: str, words: str, labels: str) -> tuple[Member, ...]:
    names = zip(words.split(), labels.split("|"), strict=True)
    return tuple((number, prefix + name, label) for number, (name, label) in enumerate(names))


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
    "ENUM_NSYS_EVENT_TYPE": tuple(
        (number, f"Nvtx{name}", f"Nvtx{name}") for number, name in _EVENT_TYPES.items()
    ),
    "ENUM_NSYS_EVENT_CLASS": tuple(
        (number, f"TRACE_PROCESS_EVENT_{name}", label) for number, name, label in _CLASSES.values()
    ),
    "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": _members(
        "", "UnknownLevel Info Warning Error Verbose", "Unknown|Info|Warning|Error|Verbose"
    ),
}
