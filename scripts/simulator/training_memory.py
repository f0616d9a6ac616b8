"""The memory of a small training run: weights, activations, gradients, an optimizer, and a leak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simulator.allocator import Allocator, Frame

LAYERS, LEAK = 6, 3_000_000
WEIGHT, ACTIVATION, GRADIENT = 2_097_152, 5_242_880, 2_097_152
_HOME = "/opt/job/trainer"
_TORCH = "/usr/lib/python3/dist-packages/torch"
_MACHINERY = {"name": "c10::cuda::CUDACachingAllocator::malloc()", "filename": "??", "line": 0}


def frame(file: str, line: int, name: str) -> Frame:
    return {"name": name, "filename": file, "line": line}


_MAIN = frame(f"{_HOME}/train.py", 71, "main")
_MODULE = frame(f"{_TORCH}/nn/modules/module.py", 1787, "_call_impl")
_OPTIMIZER = frame(f"{_TORCH}/optim/adamw.py", 210, "_init_group")


def stack(line: int, name: str, file: str = "model.py") -> list[Frame]:
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
            memory.alloc(LEAK, "trainer/log.py:9 keep", stack(9, "keep", "log.py"))
            memory.annotate("Optimizer.step#AdamW.step", "START")
            for _ in range(0 if number else LAYERS):
                frames = [_MACHINERY, _OPTIMIZER, frame(f"{_HOME}/train.py", 64, "main")]
                memory.alloc(2 * WEIGHT, "trainer/train.py:64 main", frames)
            memory.annotate("Optimizer.step#AdamW.step", "END")
        if self.fails:
            memory.fail(2**36, 12_345_678, stack(40, "attend"))
        return memory


def _forward_and_backward(memory: Allocator, number: int) -> list[int]:
    """Activations are kept until their gradients are there, which are returned."""
    activations, gradients = [], []
    for layer in range(LAYERS):
        size = ACTIVATION + 1000 * layer + 16 * number
        activations.append(memory.alloc(size, "trainer/model.py:40 attend", stack(40, "attend")))
        place = "trainer/model.py:55 feed_forward"
        memory.free(memory.alloc(2 * ACTIVATION, place, stack(55, "feed_forward")), [_MAIN])
    for activation in reversed(activations):
        gradients.append(memory.alloc(GRADIENT, ""))
        memory.free(activation)
    return gradients


def truth(memory: Allocator) -> dict[str, Any]:
    """What is true of the events that the recording still holds, counted when they happened."""
    lost = len(memory.events) - len(memory.traces())
    states = memory.states[lost:]
    if lost:
        states.insert(0, memory.states[lost - 1])
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
