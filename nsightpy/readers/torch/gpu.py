"""What a trace says of the GPU: kernels, copies and sets, collectives, GPUs, as frames."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from nsightpy import frames
from nsightpy.frames import ColumnData, Frame, Ints, Labels
from nsightpy.names import NO_NAME, function_name
from nsightpy.readers.nccl.names import MOST_SENT, SEND_RECV, parse_kernel
from nsightpy.readers.torch.columns import integers, whole

# Greater numbers are processes, and no GPUs.
MOST_NUMBERED = 256
ARGUMENTS, BY_NAME = "arguments", "kernel name"
MEMORY_KINDS = {"H": "Host", "D": "Device", "A": "Array", "P": "Peer"}
_COPY = re.compile(
    r"Memcpy (?P<kind>[A-Z]to[A-Z])|Copy(?P<source>Host|Device)To(?P<target>Host|Device)"
)
_SIDES = re.compile(r"\((?P<source>[\w ]+) -> (?P<target>[\w ]+)\)")
_SET = re.compile(r"\((?P<target>[\w ]+)\)")
# c10d's names of collectives, in lower case without _ and "base", and NCCL's.
_NAMES = {
    "AllReduce": ("allreduce", "allreducesparse", "barrier"),
    "AllGather": ("allgather", "allgatherintotensor"),
    "ReduceScatter": ("reducescatter", "reducescattertensor"),
    "Broadcast": ("broadcast", "broadcastoop"),
    "Reduce": ("reduce", "reduceoop"),
    "AllToAll": ("alltoall", "alltoallv", "alltoallsingle"),
    "Gather": ("gather",),
    "Scatter": ("scatter",),
    SEND_RECV: ("send", "recv", "sendrecv"),
}
_OPERATIONS = {name: operation for operation, names in _NAMES.items() for name in names}
# ScalarType's names and the short ones of NCCL's kernels, with their sizes in bytes.
_TYPES = {
    "float": ("f32", 4), "double": ("f64", 8), "half": ("f16", 2), "bfloat16": ("bf16", 2),
    "byte": ("u8", 1), "char": ("i8", 1), "bool": ("u8", 1), "short": ("i16", 2),
    "int": ("i32", 4), "long": ("i64", 8), "float8_e4m3fn": ("f8e4m3", 1),
    "float8_e4m3fnuz": ("f8e4m3", 1), "float8_e5m2": ("f8e5m2", 1),
    "float8_e5m2fnuz": ("f8e5m2", 1), "uint32": ("u32", 4), "uint64": ("u64", 8),
}  # fmt: skip


def kernels(table: Frame, pid: Ints) -> Frame:
    """The kernels frame; the one size of shared memory that a trace has counts as dynamic."""
    names = table.labels("name").renamed(lambda name: name or NO_NAME)
    plain = names.renamed(lambda name: function_name(name).rsplit("::", 1)[-1])
    sizes: dict[str, ColumnData] = {}
    for shape in ("grid", "block"):
        texts = table.labels(shape)
        lists = (_list(text) for text in texts.values)
        rows = [integers(three)[0] if len(three) == 3 else (0, 0, 0) for three in lists]
        axes = np.asarray(rows, dtype=np.int64).reshape(-1, 3)
        sizes |= {f"{shape}_{axis}": axes[texts.codes, n] for n, axis in enumerate("xyz")}
    return Frame({**_placed(table, pid), **sizes, "name": names, "base_name": plain})


def memory_operations(copies: Frame, sets: Frame, pids: tuple[Ints, Ints]) -> Frame:
    """The frame of copies and memory sets, under NVIDIA's names also on AMD's GPUs."""
    parts = []
    for table, pid, sides in ((copies, pids[0], _copy), (sets, pids[1], _set)):
        names = table.labels("name")
        kinds = {
            column: Labels(names.codes, tuple(sides(n)[part] for n in names.values)).merged()
            for part, column in enumerate(("operation", "source_memory", "target_memory"))
        }
        sizes = np.maximum(table.ints("bytes"), -1)
        parts.append(Frame({**_placed(table, pid), **kinds, "bytes": sizes}))
    return Frame.concatenate(parts)


def _set(name: str) -> tuple[str, str, str]:
    """Operation, source and target of a memory set's name: Memset (Device)."""
    match = _SET.search(name)
    return "[CUDA memset]", "", match["target"] if match else ""


def _copy(name: str) -> tuple[str, str, str]:
    """Operation, source and target of a copy's name: Memcpy HtoD (Pageable -> Device)."""
    match, sides = _COPY.search(name), _SIDES.search(name)
    if match is None:
        return f"[CUDA memcpy {name or 'Unknown'}]", "", ""
    if match["kind"]:
        first, last = (MEMORY_KINDS.get(letter, letter) for letter in match["kind"][::3])
    else:
        first, last = match["source"], match["target"]
    operation = "Peer-to-Peer" if "Peer" in (first, last) else f"{first}-to-{last}"
    source, target = (sides["source"], sides["target"]) if sides else ("", "")
    return f"[CUDA memcpy {operation}]", source, target


def collectives(kernels: Frame, table: Frame, rank: int | None) -> Frame:
    """The collectives frame: kernels of NCCL (RCCL has its names) with what their arguments say.

    `kernels` are in the order of the file, as the rows of `table` count them; `rank` is that of
    the trace. Sizes are those of one rank's part, as in NCCL's payloads.
    """
    names = kernels.labels("base_name")
    mask = names.where(lambda name: parse_kernel(name) is not None)
    mask[table.ints("kernel")] = True
    chosen = np.flatnonzero(mask)
    arguments = np.full(kernels.rows, -1, dtype=np.int64)
    arguments[table.ints("kernel")] = np.arange(table.rows)
    arguments_of = list(table.tuples(*table)) if table.rows else []
    rows = [
        _collective(
            names[row], dict(zip(table, arguments_of[at], strict=True)) if at >= 0 else {}, rank
        )
        for row, at in zip(chosen.tolist(), arguments[chosen].tolist(), strict=True)
    ]
    columns = frames.COLLECTIVES.columns
    records = [[row.get(column.name, column.missing) for column in columns] for row in rows]
    launched = Frame.of_rows(frames.COLLECTIVES, records)
    return Frame({**launched, **kernels.select(PLACED).take(chosen)})


def _collective(
    kernel: str, arguments: dict[str, str | int], rank: int | None
) -> dict[str, str | int]:
    """The columns of one collective that are not those of its kernel."""
    named, short_type = parse_kernel(kernel) or ("", "")
    if not arguments:
        return {"operation": named, "kernel": kernel, "data_type": short_type, "evidence": BY_NAME}
    plain = str(arguments["operation"]).lower().replace("_", "").replace("base", "")
    operation = _OPERATIONS.get(plain.removeprefix("nccl:").removesuffix("coalesced"), named)
    data_type, size = _TYPES.get(str(arguments["data_type"]).lower(), (short_type, 0))
    elements = arguments["elements_out" if operation == "ReduceScatter" else "elements_in"]
    members = _whole_numbers(arguments["group_ranks"])
    group_ranks = str(arguments["group_ranks"]).strip('"').replace(" ", "")
    collective: dict[str, str | int] = {
        "operation": operation or named,
        "kernel": kernel,
        "data_type": data_type,
        # one name on all its ranks: its own name, and its members where known
        "communicator": f"{arguments['group']}{group_ranks}" or arguments["communicator"],
        "group_size": arguments["group_size"] or len(members),
        "sequence": arguments["sequence"],
        "calls": 1,
        "evidence": ARGUMENTS,
    }
    if rank in members:
        collective["group_rank"] = members.index(rank)
    side = {"send": "target", "recv": "source"}.get(plain.removeprefix("nccl:"))
    if side is not None:
        collective["peer"] = _peer(int(arguments[side]), members, rank)
    if size and isinstance(elements, int) and elements >= 0:
        collective["bytes"] = whole(elements * size)
        to_one = {int(collective["peer"]): 1} if side == "target" else {}
        splits = _whole_numbers(arguments["splits"]) if operation == "AllToAll" else []
        collective["sent"] = _sent(elements * size, to_one or dict(enumerate(splits)))
    return collective


def _sent(size: int, parts: dict[int, int]) -> str:
    """Bytes by rank of the group, in the proportions of its parts; empty without them.

    PyTorch counts splits in rows of the tensor. Of more than 30 it writes only the first, which is
    no list; none where all are equal, or, in older versions, where tensors are given one by one.
    """
    if min((*parts, *parts.values()), default=0) < 0 or size > MOST_SENT:
        return ""
    whole_size = max(sum(parts.values()), 1)
    return " ".join(f"{rank}:{size * part // whole_size}" for rank, part in parts.items())


def _peer(number: int, members: list[int], rank: int | None) -> int:
    """The other rank of a Send or Recv as a place in the process group; -1 where that is not sure:
    the number may be a rank of the job or of the group, and nobody sends to itself."""
    as_job = members.index(number) if number in members and number != rank else -1
    if not members or as_job == number:
        return number
    index = members.index(rank) if rank in members else -1
    as_group = number if 0 <= number < len(members) and number != index else -1
    return max(as_job, as_group) if -1 in (as_job, as_group) else -1


def _whole_numbers(text: object) -> list[int]:
    return [number for number in _list(str(text).strip('"')) if isinstance(number, int)]


def _list(text: str) -> list[object]:
    """A list that is written as JSON; empty where a text is none."""
    with suppress(ValueError, RecursionError):
        values = json.loads(text)
        return values if isinstance(values, list) else []
    return []


# What a header calls them.
_GPU_COLUMNS = {
    "sm_count": "numSms",
    "memory_bytes": "totalGlobalMem",
    "compute_major": "computeMajor",
    "compute_minor": "computeMinor",
}
PLACED = ("start_ns", "end_ns", "pid", "device", "context", "stream", "correlation_id")


def _placed(table: Frame, pid: Ints) -> dict[str, ColumnData]:
    stream, device, row_of = (table.ints(name) for name in ("stream", "device", "pid"))
    # the profiler writes a GPU's events under its number, as if it were a process
    numbered = (device == -1) & (row_of >= 0) & (row_of < MOST_NUMBERED)
    return {
        **table,
        "pid": pid,
        "device": np.where(numbered, row_of, device),
        "stream": np.where(stream == -1, table.ints("tid"), stream),
    }


def devices(gpus: Sequence[Mapping[str, Any]], used: set[int]) -> Frame:
    """The devices frame. A device that the header does not list is one of those it lists: ROCm
    numbers the GPUs of the host, the header those that the process sees."""
    names = [str(gpu.get("name") or "") for gpu in gpus]
    row_of = {whole(gpu.get("id", row)): row for row, gpu in enumerate(gpus)}
    if len(set(names)) == 1:
        row_of = dict.fromkeys(used, 0) | row_of
    numbers = sorted(row_of)
    rows = [row_of[number] for number in numbers]
    columns: dict[str, ColumnData] = {
        column: np.asarray([whole(gpus[row].get(name, 0)) for row in rows], dtype=np.int64)
        for column, name in _GPU_COLUMNS.items()
    }
    device = np.asarray(numbers, dtype=np.int64)
    named = Labels.of(names[row] for row in rows)
    return Frame({**columns, "device": device, "gpu_id": device, "name": named})
