"""Steps to database rows: one writer per report."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulation import names, pattern
from simulation.names import StringTable
from simulation.pattern import Ints
from simulation.statements import event_statements
from simulation.world import Step

NCCL_DOMAIN = 1
COMMUNICATOR = 13429301450432826988
_RANGE_BEFORE = np.array([750, 600, 450, 300, 150])
_RANGE_AFTER = np.array([120, 100, 80, 60, 40])
_LAUNCH_SHAPES = 3


@dataclass(frozen=True)
class Identity:
    """Which process a report is of, and when its clock starts on the job's."""

    rank: int
    world_size: int
    pid: int
    clock_offset: int

    @property
    def global_pid(self) -> int:
        return (1 << 48) | (self.pid << 24)

    def global_tid(self, device: int) -> int:
        return self.global_pid | (self.pid + device)


class RowWriter:
    """Appends each iteration's rows of one report's devices to its export."""

    def __init__(
        self, connection: sqlite3.Connection, identity: Identity, strings: StringTable, seed: int
    ) -> None:
        self.connection = connection
        self.identity = identity
        self.strings = strings
        self.sql = event_statements(identity.global_pid)
        self.kernel_ids = np.array(
            [
                (strings[name.demangled], strings[name.short], strings[name.mangled])
                for name in names.kernel_names()
            ]
        )
        self.shapes = _launch_shapes(seed)
        self.call_ids = np.array([strings[text] for text in names.OTHER_CALLS])
        memory_calls = (names.LAUNCH, names.MEMCPY, names.MEMCPY, names.MEMSET)
        self.memory_call_ids = np.array([strings[text] for text in memory_calls])
        self.launch_id = strings[names.LAUNCH]
        self.synchronize_id = strings[names.SYNCHRONIZE]
        self.random = np.random.default_rng([seed, 3, identity.rank])
        self.next_correlation = 1_000
        self.last_ns = 0

    def write(self, steps: list[Step]) -> None:
        """Write one iteration."""
        parts: dict[str, list[list[Ints]]] = {}
        for device, step in enumerate(steps):
            for table, columns in self._device_columns(device, step).items():
                parts.setdefault(table, []).append(columns)
            self._nvtx(device, step)
            self.next_correlation += len(step.call_start)
            self.last_ns = max(self.last_ns, int(step.call_end[-1]) - self.identity.clock_offset)
        for table, per_device in parts.items():
            self._insert(table, per_device)

    def _insert(self, table: str, parts: list[list[Ints]]) -> None:
        """Insert the devices' columns as rows in order of start, the first column."""
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        rows = zip(*(column[order].tolist() for column in columns), strict=True)
        self.connection.executemany(self.sql[table], rows)

    def _device_columns(self, device: int, step: Step) -> dict[str, list[Ints]]:
        memory = step.pattern.memory_operation[step.op_call // 2]
        launched = step.op_call % 2 == 1
        sets = ~launched & (memory == pattern.SET)
        copies = ~launched & (memory != pattern.SET)
        kind = memory[copies]
        return {
            "kernel": self._operations(device, step, launched) + self._kernel(step, launched),
            "copy": [
                *self._operations(device, step, copies),
                self._sizes(kind),
                kind,
                np.where(kind == pattern.HOST_TO_DEVICE, 1, 2),
                np.where(kind == pattern.HOST_TO_DEVICE, 2, 1),
            ],
            "set": [*self._operations(device, step, sets), self._sizes(memory[sets])],
            "api": self._calls(device, step),
        }

    def _operations(self, device: int, step: Step, chosen: NDArray[np.bool_]) -> list[Ints]:
        """start, end, deviceId, streamId, correlationId."""
        offset = self.identity.clock_offset
        stream = step.op_stream[chosen]
        return [
            step.op_start[chosen] - offset,
            step.op_end[chosen] - offset,
            np.full(len(stream), device),
            stream,
            self.next_correlation + step.op_call[chosen],
        ]

    def _kernel(self, step: Step, launched: NDArray[np.bool_]) -> list[Ints]:
        slot = step.op_call[launched] // 2
        name = step.pattern.name[slot]
        shape = self.shapes[name, slot % _LAUNCH_SHAPES]
        grid_id = self.next_correlation // 2 + slot
        return [*self.kernel_ids[name].T, *shape.T, grid_id]

    def _sizes(self, operations: Ints) -> Ints:
        return 4 << self.random.integers(0, 22, len(operations))

    def _calls(self, device: int, step: Step) -> list[Ints]:
        calls = len(step.call_start)
        memory = step.pattern.memory_operation
        name = np.full(calls, self.launch_id)
        name[0:-1:2] = np.where(
            memory == pattern.NO_MEMORY_OPERATION,
            self.call_ids[step.pattern.other_call],
            self.memory_call_ids[memory],
        )
        name[-1] = self.synchronize_id
        return [
            step.call_start - self.identity.clock_offset,
            step.call_end - self.identity.clock_offset,
            np.full(calls, self.identity.global_tid(device)),
            self.next_correlation + np.arange(calls),
            name,
        ]

    def _nvtx(self, device: int, step: Step) -> None:
        ranges = step.pattern.ranges
        offset = self.identity.clock_offset
        start = step.call_start[2 * ranges.first] - _RANGE_BEFORE[ranges.level] - offset
        end = step.call_end[2 * ranges.last + 1] + _RANGE_AFTER[ranges.level] - offset
        collective = (ranges.level == pattern.COLLECTIVE_LEVEL).tolist()
        tid = self.identity.global_tid(device)
        rows = [
            (begin, stop, tid, self.strings[text], int(nccl), _payload(slot) if nccl else None)
            for begin, stop, text, nccl, slot in zip(
                start.tolist(),
                end.tolist(),
                ranges.text,
                collective,
                ranges.first.tolist(),
                strict=True,
            )
        ]
        self.connection.executemany(self.sql["nvtx"], rows)


def _payload(slot: int) -> str:
    """The payload of a collective's range, as `nsys export --include-json true` spells it."""
    size = 1 << (16 + slot // pattern.BLOCK % 10)
    fields: dict[str, int | str] = {
        "NCCL communicator ID": COMMUNICATOR,
        "Message size [bytes]": size,
    }
    if slot // pattern.BLOCK % names.COMMUNICATION_NAMES < 2:
        fields["Reduction operation"] = "Sum"
    return json.dumps(fields, separators=(",", ":"))


def _launch_shapes(seed: int) -> Ints:
    """Registers, grid x and y, block x, shared and local memory of each name's launch shapes."""
    random = np.random.default_rng([seed, 4])
    size = (names.KERNEL_NAMES, _LAUNCH_SHAPES)
    columns = [
        random.choice([16, 24, 32, 40, 64, 96, 128, 255], size),
        random.integers(1, 5_000, size),
        random.choice([1, 1, 1, 8, 32], size),
        random.choice([32, 64, 128, 128, 256, 512], size),
        random.choice([0, 0, 0, 16_384, 49_152, 98_304], size),
        random.choice([0, 115_539_968, 282_132_480], size),
    ]
    return np.stack(columns, axis=-1)
