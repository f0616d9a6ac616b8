"""The tables of an Nsight Systems SQLite export, for three generations of the exporter.

tables.txt has a table a line: its name, the generations that have it (n, m and o for new, mid and
old; a capital where it is there whatever was traced), and its columns in order. `!` marks NOT NULL,
`*` a primary key, `^` what only new exports have, `'` what old ones lack, `:T` text and `:R` real;
everything else is an integer.
"""

from dataclasses import dataclass
from pathlib import Path

NEW = "new"  # schema 3.27, nsys 2026.3
MID = "mid"  # schema 3.0, nsys 2022.4
OLD = "old"  # no metadata, nsys 2019 and 2020
GENERATIONS = (NEW, MID, OLD)

SCHEMA_VERSION = {NEW: "3.27.0", MID: "3.0.0"}
PRODUCT_VERSION = {NEW: "2026.3.1.157", MID: "2022.4.2.1"}

# Where columns with a mark are missing.
_LACKING = {NEW: "", MID: "^", OLD: "^'"}
_TABLES = Path(__file__).with_name("tables.txt").read_text(encoding="ascii").splitlines()


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

    @property
    def ddl(self) -> str:
        constraint = (" NOT NULL" if self.not_null else "") + (" PRIMARY KEY" * self.primary_key)
        return f'"{self.name}" {self.declared}{constraint}'


def _columns(words: list[str], generation: str) -> tuple[Column, ...]:
    kinds = {"": "INT" if generation == OLD else "INTEGER", "T": "TEXT", "R": "REAL"}
    found = []
    for word in words:
        described, _, kind = word.partition(":")
        name = described.rstrip("!*^'")
        if not set(described) & set(_LACKING[generation]):
            found.append(Column(name, kinds[kind], "!" in described, "*" in described))
    return tuple(found)


def tables(generation: str) -> dict[str, tuple[Column, ...]]:
    """Every table of a generation: name -> columns in order."""
    rows = (line.split() for line in _TABLES)
    return {
        name: _columns(columns, generation)
        for name, generations, *columns in rows
        if generation[0] in generations.lower()
    }


def always_present(generation: str) -> set[str]:
    return {line.split()[0] for line in _TABLES if generation[0].upper() in line.split()[1]}


# Enumerations, as exports carry them in tables: (id, name, label) of their members.

NVTX_MARK, NVTX_THREAD, NVTX_PUSH_POP, NVTX_START_END, NVTX_DOMAIN = 34, 39, 59, 60, 75


def _numbered(words: str) -> dict[str, int]:
    return {name: number for number, name in enumerate(words.split())}


COPY_KINDS = _numbered(
    "Unknown HtoD DtoH HtoA AtoH AtoA AtoD DtoA DtoD HtoH PtoP UvmHtoD UvmDtoH UvmDtoD"
)
MEMORY_KINDS = _numbered("Pageable Pinned Device Array Managed DeviceStatic ManagedStatic Unknown")
SYNC_KINDS = _numbered("unknown event stream_wait stream context")
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
# Prefix of the names, then name and label of every member.
_MEMBERS = {
    "ENUM_CUDA_MEMCPY_OPER": "CUDA_MEMCPY_KIND_|UNKNOWN Unknown|HTOD Host-to-Device|"
    "DTOH Device-to-Host|HTOA Host-to-Array|ATOH Array-to-Host|ATOA Array-to-Array|"
    "ATOD Array-to-Device|DTOA Device-to-Array|DTOD Device-to-Device|HTOH Host-to-Host|"
    "PTOP Peer-to-Peer|UVM_HTOD Unified Host-to-Device|UVM_DTOH Unified Device-to-Host|"
    "UVM_DTOD Unified Device-to-Device",
    "ENUM_CUDA_MEM_KIND": "CUDA_MEMOPR_MEMORY_KIND_|PAGEABLE Pageable|PINNED Pinned|DEVICE Device|"
    "ARRAY Array|MANAGED Managed|DEVICE_STATIC Device Static|MANAGED_STATIC Managed Static|"
    "UNKNOWN Unknown",
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE": "CUDA_KERNEL_LAUNCH_TYPE_|UNKNOWN Unknown|REGULAR Regular|"
    "COOPERATIVE_SINGLE_DEVICE Coop Single Device|COOPERATIVE_MULTI_DEVICE Coop Multi Device",
    "ENUM_CUPTI_STREAM_TYPE": "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_|UNKNOWN Unknown stream type|"
    "DEFAULT Default stream|NON_BLOCKING Non-blocking stream|NULL Null stream",
    "ENUM_CUPTI_SYNC_TYPE": "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_|UNKNOWN Unknown|"
    "EVENT_SYNCHRONIZE Event sync|STREAM_WAIT_EVENT Stream wait sync|"
    "STREAM_SYNCHRONIZE Stream sync|CONTEXT_SYNCHRONIZE Context sync",
    "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": "|UnknownLevel Unknown|Info Info|Warning Warning|Error Error|"
    "Verbose Verbose",
}


def enumerations() -> dict[str, list[tuple[int, str, str]]]:
    """The rows of every table of an enumeration."""
    kinds, classes = _EVENT_TYPES.items(), _CLASSES.values()
    found = {
        "ENUM_NSYS_EVENT_TYPE": [(n, f"Nvtx{name}", f"Nvtx{name}") for n, name in kinds],
        "ENUM_NSYS_EVENT_CLASS": [
            (n, f"TRACE_PROCESS_EVENT_{name}", of) for n, name, of in classes
        ],
    }
    for table, text in _MEMBERS.items():
        prefix, *members = text.split("|")
        pairs = (member.split(" ", 1) for member in members)
        found[table] = [(n, prefix + name, label) for n, (name, label) in enumerate(pairs)]
    return found
