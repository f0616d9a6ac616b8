"""A program of its own: decodes a PyTorch memory snapshot and writes its columns to stdout.

Run as `python -I -S snapshot_decoder.py FILE MEMORY_BYTES CPU_SECONDS` by `snapshot.py`;
it needs the standard library only, so that it starts in milliseconds and little is mapped under
its memory limit. The unpickler knows containers, strings and numbers, and nothing that the file
names is ever looked up. Layout of the snapshot: torch/csrc/cuda/memory_snapshot.cpp,
https://github.com/pytorch/pytorch/blob/main/torch/csrc/cuda/Module.cpp (THCPModule_memorySnapshot).

Output: one line of JSON (texts, and name, type code and length of each column), then the columns'
bytes in that order. Exit codes below; what was refused stands on stderr.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, NoReturn

OUT_OF_MEMORY, REFUSED, DAMAGED, NO_SNAPSHOT = 10, 11, 12, 13
NONE = -1


class RefusedError(Exception):
    """The pickle wants what no snapshot needs."""


def limit(memory: int, seconds: int) -> bool:
    """Bound this process; False where the system cannot (only Linux enforces RLIMIT_AS)."""
    if sys.platform != "linux":
        return False
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    for kind, wanted in (
        (resource.RLIMIT_AS, mapped + memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        bound = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (bound, bound))
    return True


def unpickler(bounded: bool) -> Any:
    """An unpickler that refuses every name and every persistent id.

    Without a memory limit it is Python's own one: its memo is a dictionary, so that a huge index
    costs nothing.
    """
    base: Any = pickle.Unpickler if bounded else pickle._Unpickler

    class Containers(base):  # type: ignore[misc]
        def find_class(self, module: str, name: str) -> NoReturn:
            raise RefusedError(f"code: {module}.{name}"[:200])

        def persistent_load(self, pid: object) -> NoReturn:
            raise RefusedError("an object outside the file (a persistent id)")

        def get_extension(self, code: int) -> NoReturn:
            raise RefusedError(f"code: extension {code}")

    return Containers


class Codes(dict[str, int]):
    """A small integer for each distinct text, in order of appearance."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]

    @property
    def texts(self) -> list[str]:
        return [text.encode("utf-8", "backslashreplace").decode() for text in self]


class Stacks:
    """Call stacks, each distinct one once: `frames[offsets[i] : offsets[i + 1]]` is stack i."""

    def __init__(self, most: int) -> None:
        self.left = most
        self.known: dict[tuple[int, ...], int] = {}
        self.by_list: dict[int, int] = {}
        self.by_frame: dict[int, int] = {}
        self.frames: dict[tuple[int, int, int], int] = {}
        self.functions, self.files = Codes(), Codes()

    def codes(self, rows: Sequence[dict[str, Any]]) -> array[int]:
        """The number of each row's stack; NONE for none. Rows share their lists of frames."""
        return array("q", map(self.code, values(rows, "frames", None)))

    def code(self, frames: object) -> int:
        """The number of one stack; the list lives as long as this does, so that its id is its."""
        number = self.by_list.get(id(frames))
        if number is None:
            number = self.by_list[id(frames)] = self._add(frames)
        return number

    def _add(self, frames: Any) -> int:
        if not frames:
            return NONE
        self.left -= len(frames)
        if self.left < 0:
            raise ValueError("it repeats its call stacks without end")
        stack = tuple([self.by_frame.get(id(frame)) or self._frame(frame) for frame in frames])
        return self.known.setdefault(stack, len(self.known))

    def _frame(self, frame: dict[str, Any]) -> int:
        """The number of a frame, from 1 on."""
        key = (
            self.functions[frame.get("name", "")],
            self.files[frame.get("filename", "")],
            int(frame.get("line", 0)),
        )
        number = self.by_frame[id(frame)] = self.frames.setdefault(key, len(self.frames) + 1)
        return number


class Columns:
    """Columns by name, and the texts that their codes stand for."""

    def __init__(self) -> None:
        self.columns: dict[str, array[int]] = {}
        self.texts: dict[str, Codes] = {}

    def add(self, name: str, values: Iterable[int]) -> None:
        self.columns.setdefault(name, array("q")).extend(array("q", values))

    def add_texts(self, name: str, values: Iterable[str]) -> None:
        self.add(name, map(self.texts.setdefault(name, Codes()).__getitem__, values))

    def write(self, out: Any) -> None:
        """The header line, then the columns."""
        header = {
            "texts": {name: codes.texts for name, codes in self.texts.items()},
            "columns": [(name, len(values)) for name, values in self.columns.items()],
        }
        out.write(json.dumps(header).encode("ascii") + b"\n")
        for values in self.columns.values():
            values.tofile(out)
        out.flush()


def values(rows: Sequence[dict[str, Any]], key: str, default: object) -> Iterator[Any]:
    """The value of a key in each row, or the default where a row has none."""
    return map(dict.get, rows, repeat(key), repeat(default))


def add_events(columns: Columns, device: int, trace: list[dict[str, Any]], stacks: Stacks) -> None:
    """What one device's allocator did, in order; one that was out of memory names no address."""
    columns.add("event_device", array("q", [device]) * len(trace))
    columns.add("event_time_us", values(trace, "time_us", NONE))
    columns.add("event_stream", values(trace, "stream", 0))
    columns.add("event_address", values(trace, "addr", NONE))
    columns.add("event_bytes", map(itemgetter("size"), trace))
    columns.add("event_device_free_bytes", values(trace, "device_free", NONE))
    columns.add_texts("event_action", map(itemgetter("action"), trace))
    columns.add("event_stack", stacks.codes(trace))


def add_segments(
    columns: Columns, segments: list[dict[str, Any]], blocks: Sequence[int], stacks: Stacks
) -> None:
    """Segments and their blocks; `blocks` is how many each segment has."""
    columns.add("segment_device", values(segments, "device", 0))
    columns.add("segment_stream", values(segments, "stream", 0))
    columns.add("segment_address", values(segments, "address", NONE))
    columns.add("segment_bytes", values(segments, "total_size", NONE))
    columns.add("segment_blocks", blocks)
    for name in ("address", "bytes", "requested_bytes", "stack"):
        columns.add(f"block_{name}", ())
    columns.add_texts("block_state", ())
    for segment in segments:
        address = segment.get("address", 0)
        for block in segment["blocks"]:
            size = block["size"]
            # before torch 2.1 frames and size stand in the block's history
            latest = (block.get("history") or [{}])[0] | block
            requested = latest.get("requested_size", latest.get("real_size", size))
            columns.add("block_address", (block.get("address", address),))
            columns.add("block_bytes", (size,))
            columns.add("block_requested_bytes", (requested,))
            columns.add_texts("block_state", (block["state"],))
            columns.add("block_stack", (stacks.code(latest.get("frames")),))
            address += size


def columns_of(snapshot: dict[str, Any], most: int) -> Columns:
    """The columns of a decoded snapshot; raises any exception where it is none.

    A row takes more than a byte of its file, so that `most` bounds what shared lists may add up to.
    """
    segments, traces = snapshot["segments"], snapshot.get("device_traces") or []
    blocks = [len(segment["blocks"]) for segment in segments]
    if sum(blocks) + sum(map(len, traces)) > most:
        raise ValueError("it repeats its rows without end")
    columns, stacks = Columns(), Stacks(most)
    add_segments(columns, segments, blocks, stacks)
    for device, trace in enumerate(traces or [[]]):
        add_events(columns, device, trace, stacks)
    # ranges of the program (record_function, optimizer steps), each as its start and its end
    annotations = snapshot.get("external_annotations") or []
    columns.add("annotation_time_us", values(annotations, "time_us", NONE))
    columns.add("annotation_device", values(annotations, "device", NONE))
    columns.add_texts("annotation_stage", values(annotations, "stage", ""))
    columns.add_texts("annotation_name", values(annotations, "name", ""))
    columns.add("stack_length", map(len, stacks.known))
    columns.add("stack_frame", chain.from_iterable(stacks.known))
    columns.add("frame_function", (key[0] for key in stacks.frames))
    columns.add("frame_file", (key[1] for key in stacks.frames))
    columns.add("frame_line", (key[2] for key in stacks.frames))
    columns.texts |= {"frame_function": stacks.functions, "frame_file": stacks.files}
    return columns


def decode(path: str, bounded: bool) -> tuple[int, str]:
    """Decode a file and write its columns; the exit code, and what is wrong."""
    loaded = False
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            size = os.fstat(file.fileno()).st_size
            snapshot = unpickler(bounded)(file).load()
        loaded = True
        columns_of(snapshot, size).write(sys.stdout.buffer)
    except MemoryError:
        return OUT_OF_MEMORY, ""
    except RefusedError as error:
        return REFUSED, str(error)
    except Exception as error:  # noqa: BLE001 - files that are not what they should be raise any
        return (NO_SNAPSHOT if loaded else DAMAGED), f"{type(error).__name__}: {error}"[:300]
    return 0, ""


def main(arguments: Sequence[str]) -> NoReturn:
    """Decode under limits and leave at once: what is nested deeply is never taken apart."""
    gc.disable()
    bounded = limit(int(arguments[1]), int(arguments[2]))
    code, problem = decode(arguments[0], bounded)
    os.write(2, ascii(problem).encode("ascii") if problem else b"")
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
