"""The simulated job: CPU threads that launch, streams that run in order and wait for events,
collectives that wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from simulator.large.names import KERNEL_NAMES
from simulator.large.pattern import (
    AUXILIARY_STREAM,
    COMMUNICATION_STREAM,
    COPY_STREAM,
    HOST_TO_DEVICE,
    KERNELS_PER_ITERATION,
    MAIN_STREAM,
    NO_MEMORY_OPERATION,
    Events,
    Ints,
    Pattern,
    make_pattern,
)

TICK = 32
FIRST_LAUNCH_NS = 2_000_000_000
LAUNCH_LATENCY_NS = 1_500
STREAM_GAP_NS = 1_000
PHASE_SLOTS = 200
SLOW_LAUNCH_NS, FAST_LAUNCH_NS = 80_000.0, 5_000.0
UNCOUPLED_STREAMS = (MAIN_STREAM, COPY_STREAM)


@dataclass
class Step:
    """What one GPU and its thread did in one iteration, in ns of the job's common clock.

    API call 2i is slot i's other call, 2i+1 its launch, and the last one synchronises.
    """

    pattern: Pattern
    call_start: Ints
    call_end: Ints
    op_call: Ints
    op_start: Ints
    op_end: Ints
    op_stream: Ints


def _ticks(duration: np.ndarray) -> Ints:
    return np.maximum(np.rint(duration / TICK).astype(np.int64), TICK) * TICK


def _queue(ready: Ints, occupied: Ints) -> Ints:
    """Start times on one in-order stream: not before ready, nor before the previous one is done."""
    done = np.concatenate(([0], np.cumsum(occupied)[:-1]))
    return done + np.maximum.accumulate(ready - done)


def _awaited(events: Events, op_call: Ints, stream: Ints, end: Ints) -> Ints:
    """When the events are done that the auxiliary stream waits for before each operation."""
    launched = np.searchsorted(op_call, 2 * events.recorded)
    done = np.zeros(len(events.recorded), dtype=np.int64)
    for one in UNCOUPLED_STREAMS:
        mine = events.recorded_on == one
        ended = np.maximum.accumulate(np.where(stream == one, end, 0))
        done[mine] = np.concatenate(([0], ended))[launched[mine]]
    own = events.waiting == AUXILIARY_STREAM
    free = np.concatenate(([0], np.maximum.accumulate(done[events.awaited[own]])))
    return free[np.searchsorted(2 * events.waited[own], op_call)]


class World:
    """`gpus` GPUs that train together; every iteration of all of them comes from `steps`."""

    def __init__(self, gpus: int, kernels_per_gpu: int, seed: int) -> None:
        self.gpus = gpus
        self.kernels_per_gpu = kernels_per_gpu
        self.seed = seed
        self.random = np.random.default_rng([seed, 2])
        medians = np.exp(self.random.uniform(np.log(5e3), np.log(1.5e5), KERNEL_NAMES))
        self.median_ns = medians
        self.spread = self.random.uniform(0.05, 0.5, KERNEL_NAMES)
        self.slowness = 1.0 + np.abs(self.random.normal(0.0, 0.02, gpus))
        self.clock = np.full(gpus, FIRST_LAUNCH_NS, dtype=np.int64)

    def steps(self) -> Iterator[list[Step]]:
        """Iterations in order, each as one Step per GPU."""
        left = self.kernels_per_gpu
        while left:
            slots = min(left, KERNELS_PER_ITERATION)
            if left == self.kernels_per_gpu or slots < KERNELS_PER_ITERATION:
                pattern = make_pattern(slots, self.seed)
            left -= slots
            steps = [self._launch(gpu, pattern) for gpu in range(self.gpus)]
            self._communicate(steps)
            for gpu, step in enumerate(steps):
                self._synchronise(gpu, step)
            yield steps

    def _launch(self, gpu: int, pattern: Pattern) -> Step:
        """API calls of one thread, then what runs on the streams that wait for no other GPU."""
        calls = 2 * len(pattern)
        pause = 300.0 + self.random.exponential(500.0, calls)
        slow = np.arange(len(pattern)) // PHASE_SLOTS % 3 == 0
        mean = np.where(slow, SLOW_LAUNCH_NS, FAST_LAUNCH_NS)
        pause[0::2] = 800.0 + self.random.exponential(mean)
        length = self.random.lognormal(np.log(4_500.0), 0.4, calls)
        length[0::2] *= np.where(pattern.memory_operation == NO_MEMORY_OPERATION, 0.2, 1.0)
        call_end = self.clock[gpu] + np.cumsum(pause + length).astype(np.int64)
        call_start = call_end - length.astype(np.int64)
        op_call, stream, duration = self._operations(gpu, pattern)
        ready = call_end[op_call] + LAUNCH_LATENCY_NS
        start = ready.copy()
        for one in (*UNCOUPLED_STREAMS, AUXILIARY_STREAM):
            if one == AUXILIARY_STREAM:
                free = _awaited(pattern.events, op_call, stream, start + duration)
                ready = np.maximum(ready, free)
            chosen = stream == one
            if chosen.any():
                start[chosen] = _queue(ready[chosen], duration[chosen] + STREAM_GAP_NS)
        return Step(pattern, call_start, call_end, op_call, start, start + duration, stream)

    def _operations(self, gpu: int, pattern: Pattern) -> tuple[Ints, Ints, Ints]:
        """Call index, stream and duration of every copy, memset and kernel, in launch order."""
        slots = len(pattern)
        sigma = self.spread[pattern.name]
        kernel_ns = self.median_ns[pattern.name] * np.exp(sigma * self.random.normal(size=slots))
        memory_ns = self.random.lognormal(np.log(3_000.0), 0.8, slots)
        memory_stream = np.where(
            pattern.memory_operation == HOST_TO_DEVICE, COPY_STREAM, MAIN_STREAM
        )
        stream = np.column_stack([memory_stream, pattern.stream]).ravel()
        duration = _ticks(np.column_stack([memory_ns, kernel_ns]).ravel() * self.slowness[gpu])
        exists = np.ones(2 * slots, dtype=bool)
        exists[0::2] = pattern.memory_operation != NO_MEMORY_OPERATION
        call = np.flatnonzero(exists)
        return call, stream[call], duration[call]

    def _communicate(self, steps: list[Step]) -> None:
        """Collectives: each starts when its own GPU is ready and ends when the last one arrived."""
        chosen = np.flatnonzero(steps[0].op_stream == COMMUNICATION_STREAM)
        if not len(chosen):
            return
        transfer = steps[0].op_end[chosen] - steps[0].op_start[chosen]
        ready = np.stack([self._arrivals(step, chosen) for step in steps])
        begin = _queue(ready.max(axis=0), transfer + STREAM_GAP_NS)
        end = begin + transfer
        free = np.concatenate(([0], end[:-1])) + STREAM_GAP_NS
        for step, own in zip(steps, ready, strict=True):
            start = np.maximum(own, free)
            late = self.random.integers(0, 600, len(chosen))
            step.op_start[chosen] = start
            step.op_end[chosen] = start + -(-(end + late - start) // TICK) * TICK

    def _arrivals(self, step: Step, chosen: Ints) -> Ints:
        """When each collective's kernel could start: launched, and the work before it done."""
        before = np.where(step.op_stream == COMMUNICATION_STREAM, 0, step.op_end)
        return np.maximum(step.op_start[chosen], np.maximum.accumulate(before)[chosen])

    def _synchronise(self, gpu: int, step: Step) -> None:
        """Close the iteration: the thread waits for its GPU, then prepares the next batch."""
        begin = step.call_end[-1] + 2_000
        end = max(int(step.op_end.max()), int(begin)) + 4_000
        step.call_start = np.append(step.call_start, begin)
        step.call_end = np.append(step.call_end, end)
        self.clock[gpu] = end + int(self.random.uniform(3e5, 2e6))
