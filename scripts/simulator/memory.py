"""A caching allocator like PyTorch's, recorded as torch.cuda.memory._dump_snapshot writes it, and
a small training run on it: weights, activations, gradients, an optimizer, and a leak.

What is true of a recording (live bytes, the peak, who holds it) is counted while it is made, one
event after the other, and not derived from the snapshot.
"""

import pickle
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROUND, SEGMENT, STEP_US = 512, 20 * 2**20, 7
EARLIER, NO_STACK = "(before the recording)", "(no stack recorded)"
LAYERS, LEAK = 6, 3_000_000
WEIGHT, ACTIVATION, GRADIENT = 2_097_152, 5_242_880, 2_097_152
Frame = dict[str, Any]


@dataclass
class Block:
    """A part of a segment; `place` is None while nobody uses it."""

    address: int
    size: int
    requested: int = 0
    place: str | None = None
    frames: Sequence[Frame] = ()


@dataclass
class State:
    """What was live after one event, by place, and what was reserved."""

    time_us: int
    live: Counter[str]
    reserved: int

    @property
    def total(self) -> int:
        return sum(self.live.values())


@dataclass
class Allocator:
    """One device's memory. `most` events are kept, as in a ring buffer."""

    device: int = 0
    most: int = 1_000_000
    clock_us: int = 1_760_000_000_000_000
    recording: bool = False
    segments: list[list[Block]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    annotations: list[dict[str, Any]] = field(default_factory=list)

    def alloc(self, requested: int, place: str, frames: Sequence[Frame] = ()) -> int:
        """Memory for a tensor; returns its address. An empty place has no stack."""
        size = -(-requested // ROUND) * ROUND
        segment, at = self._fitting(size)
        block = segment[at]
        if block.size > size:
            segment.insert(at + 1, Block(block.address + size, block.size - size))
        kept = frames if self.recording else ()
        name = (place if frames else NO_STACK) if self.recording else EARLIER
        segment[at] = Block(block.address, size, requested, name, kept)
        self._event("alloc", requested, kept, addr=block.address)
        return block.address

    def free(self, address: int, frames: Sequence[Frame] = ()) -> None:
        """Give memory back, as the last tensor that used it goes."""
        segment, at = next(
            (blocks, at)
            for blocks in self.segments
            for at, block in enumerate(blocks)
            if block.address == address and block.place is not None
        )
        block = segment[at]
        self._event("free_requested", block.requested, frames, addr=address)
        segment[at] = Block(address, block.size)
        for first in (at, at - 1):
            both = segment[max(first, 0) : first + 2]
            if len(both) == 2 and not any(block.place for block in both):
                segment[first].size += segment.pop(first + 1).size
        self._event("free_completed", block.requested, frames, addr=address)

    def fail(self, requested: int, free: int, frames: Sequence[Frame] = ()) -> None:
        self._event("oom", requested, frames, device_free=free)

    def annotate(self, name: str, stage: str) -> None:
        """The start or the end of a range of the program."""
        self.clock_us += STEP_US
        note = {"name": name, "stage": stage, "device": self.device, "time_us": self.clock_us}
        self.annotations.append(note)

    @property
    def reserved(self) -> int:
        return sum(block.size for blocks in self.segments for block in blocks)

    def _fitting(self, size: int) -> tuple[list[Block], int]:
        """The first block that is free and large enough, of a new segment if need be."""
        for blocks in self.segments:
            for at, block in enumerate(blocks):
                if block.place is None and block.size >= size:
                    return blocks, at
        whole = max(SEGMENT, -(-size // 2**21) * 2**21)
        address = 0x7F00_0000_0000 + self.device * 2**40 + self.reserved
        self.segments.append([Block(address, whole)])
        self._event("segment_alloc", whole, (), addr=address)
        return self.segments[-1], 0

    def _event(self, action: str, size: int, frames: Sequence[Frame], **more: int) -> None:
        if not self.recording:
            return
        self.clock_us += STEP_US
        event = {"action": action, "size": size, "stream": 0, "time_us": self.clock_us}
        self.events.append({**event, **more, "frames": frames})
        # a free that is only asked for changes nothing yet
        live = Counter[str]()
        for block in (block for blocks in self.segments for block in blocks):
            if block.place is not None:
                live[block.place] += block.requested
        self.states.append(State(self.clock_us, live, self.reserved))

    def traces(self) -> list[dict[str, Any]]:
        """The events that the ring buffer still holds."""
        return self.events[-self.most :]


def snapshot(allocators: Sequence[Allocator]) -> dict[str, Any]:
    """What torch.cuda.memory._snapshot() returns."""
    return {
        "segments": [_segment(one.device, blocks) for one in allocators for blocks in one.segments],
        "device_traces": [one.traces() for one in allocators],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": False},
        "external_annotations": [note for one in allocators for note in one.annotations],
    }


def write_snapshot(path: Path, allocators: Sequence[Allocator], protocol: int = 4) -> Path:
    """Write a snapshot as torch does; the same bytes every time."""
    path.write_bytes(pickle.dumps(snapshot(allocators), protocol=protocol))
    return path


def _segment(device: int, blocks: Sequence[Block]) -> dict[str, Any]:
    used = [block for block in blocks if block.place is not None]
    taken = sum(block.size for block in used)
    return {
        "device": device,
        "address": blocks[0].address,
        "total_size": sum(block.size for block in blocks),
        "allocated_size": taken,
        "active_size": taken,
        "requested_size": sum(block.requested for block in used),
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": [
            {
                "address": block.address,
                "size": block.size,
                "requested_size": block.requested,
                "state": "inactive" if block.place is None else "active_allocated",
                "frames": block.frames,
            }
            for block in blocks
        ],
    }


# The training run


def frame(file: str, line: int, name: str) -> Frame:
    return {"name": name, "filename": file, "line": line}


_HOME, _TORCH = "/opt/job/trainer", "/usr/lib/python3/dist-packages/torch"
_MACHINERY = {"name": "c10::cuda::CUDACachingAllocator::malloc()", "filename": "??", "line": 0}
_MAIN = frame(f"{_HOME}/train.py", 71, "main")
_MODULE = frame(f"{_TORCH}/nn/modules/module.py", 1787, "_call_impl")
_OPTIMIZER = frame(f"{_TORCH}/optim/adamw.py", 210, "_init_group")


def _stack(line: int, name: str, file: str = "model.py") -> list[Frame]:
    """Allocator, torch's module machinery, a line of the program, its main function."""
    return [_MACHINERY, _MODULE, frame(f"{_HOME}/{file}", line, name), _MODULE, _MAIN]


@dataclass(frozen=True)
class Training:
    """A run of `iterations` steps whose log keeps a tensor alive in each."""

    iterations: int = 4
    most: int = 1_000_000
    fails: bool = False

    def run(self, device: int = 0) -> Allocator:
        """The allocator after the run; recording begins once the weights are there."""
        memory = Allocator(device, self.most)
        for _ in range(LAYERS):
            memory.alloc(WEIGHT + device, "weights")
        memory.recording = True
        gradients: list[int] = []
        for number in range(self.iterations):
            for gradient in gradients:
                memory.free(gradient, [_MAIN])
            gradients = _forward_and_backward(memory, number)
            memory.alloc(LEAK, "trainer/log.py:9 keep", _stack(9, "keep", "log.py"))
            memory.annotate("Optimizer.step#AdamW.step", "START")
            for _ in range(0 if number else LAYERS):
                frames = [_MACHINERY, _OPTIMIZER, frame(f"{_HOME}/train.py", 64, "main")]
                memory.alloc(2 * WEIGHT, "trainer/train.py:64 main", frames)
            memory.annotate("Optimizer.step#AdamW.step", "END")
        if self.fails:
            memory.fail(2**36, 12_345_678, _stack(40, "attend"))
        return memory


def _forward_and_backward(memory: Allocator, number: int) -> list[int]:
    """Activations are kept until their gradients are there, which are returned."""
    activations, gradients = [], []
    for layer in range(LAYERS):
        size = ACTIVATION + 1000 * layer + 16 * number
        activations.append(memory.alloc(size, "trainer/model.py:40 attend", _stack(40, "attend")))
        place = "trainer/model.py:55 feed_forward"
        memory.free(memory.alloc(2 * ACTIVATION, place, _stack(55, "feed_forward")), [_MAIN])
    for activation in reversed(activations):
        gradients.append(memory.alloc(GRADIENT, ""))
        memory.free(activation)
    return gradients


def truth(memory: Allocator) -> dict[str, Any]:
    """What is true of the events that the recording still holds, counted when they happened."""
    lost = len(memory.events) - len(memory.traces())
    states = memory.states[max(lost - 1, 0) :]
    peak = max(states, key=lambda state: state.total)
    return {
        "peak_bytes": peak.total,
        "peak_ns": max(0, peak.time_us - memory.traces()[0]["time_us"]) * 1000,
        "left_bytes": states[-1].total,
        "reserved_bytes": memory.reserved,
        "at_peak": dict(sorted(peak.live.items())),
        "at_end": dict(sorted(states[-1].live.items())),
        "events": len(memory.traces()),
    }
