"""Steps to database rows: one writer per report."""

from __future__ import annotations

import json
import sqlite3

import numpy as np
from numpy.typing import NDArray

from simulator.enumerations import COPY_KINDS, MEMORY_KINDS, SYNC_KINDS
from simulator.export import INVALID
from simulator.large import names, pattern
from simulator.large.pattern import Ints
from simulator.large.statements import TABLES, create_statements, insert_statements
from simulator.large.surroundings import COMMUNICATOR, Identity, surroundings
from simulator.large.world import Step

NCCL_DOMAIN = 1
EVENT_IDS = 61
_RANGE_BEFORE = np.array([750, 600, 450, 300, 150])
_RANGE_AFTER = np.array([120, 100, 80, 60, 40])
_LAUNCH_SHAPES = 3


class RowWriter:
    """Appends each iteration's rows of one report's devices to its export, then all the rest."""

    def __init__(
        self, connection: sqlite3.Connection, identity: Identity, devices: int, seed: int
    ) -> None:
        self.connection = connection
        self.identity = identity
        self.export = surroundings(identity, devices)
        for statement in create_statements():
            connection.execute(statement)
        self.sql = insert_statements(identity.process.global_pid)
        string = self.export.string
        self.kernel_ids = np.array(
            [
                (string(name.demangled), string(name.short), string(name.mangled))
                for name in names.kernel_names()
            ]
        )
        self.shapes = _launch_shapes(seed)
        self.call_ids = np.array([string(text) for text in names.OTHER_CALLS])
        memory_calls = (names.LAUNCH, names.MEMCPY, names.MEMCPY, names.MEMSET)
        self.memory_call_ids = np.array([string(text) for text in memory_calls])
        self.launch_id = string(names.LAUNCH)
        self.synchronize_id = string(names.SYNCHRONIZE)
        self.random = np.random.default_rng([seed, 3, identity.rank])
        self.next_correlation = 1_000
        self.next_event = 1
        self.last_ns = 0

    def finish(self) -> None:
        """Write what surrounds the events; last of all the strings that were used."""
        self.export.duration_ns = self.last_ns + 1_000_000
        self.export.fill(self.connection, made=TABLES.values())

    def write(self, steps: list[Step]) -> None:
        """Write one iteration."""
        parts: dict[str, list[list[Ints]]] = {}
        for device, step in enumerate(steps):
            for table, columns in self._device_columns(device, step).items():
                parts.setdefault(table, []).append(columns)
            self._nvtx(device, step)
            self.next_correlation += len(step.call_start)
            self.next_event += len(step.pattern.events.recorded)
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
        inwards = memory[copies] == pattern.HOST_TO_DEVICE
        return {
            "kernel": self._operations(device, step, launched) + self._kernel(step, launched),
            "copy": [
                *self._operations(device, step, copies),
                self._sizes(inwards),
                np.where(inwards, COPY_KINDS["HtoD"], COPY_KINDS["DtoH"]),
                np.where(inwards, MEMORY_KINDS["Pinned"], MEMORY_KINDS["Device"]),
                np.where(inwards, MEMORY_KINDS["Device"], MEMORY_KINDS["Pinned"]),
            ],
            "set": [*self._operations(device, step, sets), self._sizes(memory[sets])],
            "api": self._calls(device, step),
            "record": self._records(device, step),
            "wait": self._waits(device, step),
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

    def _sizes(self, operations: NDArray[np.generic]) -> Ints:
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
            np.full(calls, self._thread(device)),
            self.next_correlation + np.arange(calls),
            name,
        ]

    def _records(self, device: int, step: Step) -> list[Ints]:
        """correlationId, deviceId, streamId, eventId (used again and again), eventSyncId."""
        events = step.pattern.events
        synced = self.next_event + np.arange(len(events.recorded))
        correlation = self.next_correlation + 2 * events.recorded
        on = np.full(len(synced), device)
        return [correlation, on, events.recorded_on, _event_ids(synced), synced]

    def _waits(self, device: int, step: Step) -> list[Ints]:
        """The waits of streams, then that of the thread which ends the iteration."""
        events = step.pattern.events
        call = np.append(2 * events.waited, len(step.call_start) - 1)
        synced = self.next_event + events.awaited
        return [
            step.call_start[call] - self.identity.clock_offset,
            step.call_end[call] - self.identity.clock_offset,
            np.full(len(call), device),
            np.append(events.waiting, pattern.MAIN_STREAM),
            self.next_correlation + call,
            np.append(np.full(len(synced), SYNC_KINDS["stream_wait"]), SYNC_KINDS["stream"]),
            np.append(_event_ids(synced), INVALID),
            np.append(synced, 0),
        ]

    def _thread(self, device: int) -> int:
        return self.identity.process.thread(self.identity.tid(device))

    def _nvtx(self, device: int, step: Step) -> None:
        ranges = step.pattern.ranges
        offset = self.identity.clock_offset
        start = step.call_start[2 * ranges.first] - _RANGE_BEFORE[ranges.level] - offset
        end = step.call_end[2 * ranges.last + 1] + _RANGE_AFTER[ranges.level] - offset
        collective = (ranges.level == pattern.COLLECTIVE_LEVEL).tolist()
        tid, string = self._thread(device), self.export.string
        rows = [
            (begin, stop, tid, string(text), int(nccl), _payload(slot) if nccl else None)
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


def _event_ids(synced: Ints) -> Ints:
    return 4 + synced % EVENT_IDS


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
