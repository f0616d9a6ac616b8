"""Programs of several threads, streams and devices, written as exports; times in ns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from simulator import Export

from tests.support.programs import Script

US, MS = 1_000, 1_000_000
WIDE = (4_000, 1, 1)
Part = str | tuple[Any, ...] | Callable[["Thread"], object]


class Machine:
    """One process with some GPUs: when each stream is free, and its threads."""

    def __init__(self, path: Path, gpus: int = 1) -> None:
        self.export = Export(path)
        self.process = self.export.process()
        self.free: dict[tuple[int, int], int] = {}
        for gpu in range(gpus):
            self.export.cuda_device(gpu, gpu)
            self.export.gpu(gpu)

    def thread(self, tid: int = 1000, now: int = MS) -> Thread:
        return Thread(self, tid, now)


class Thread(Script):
    """One thread: `now` is its time. What it launches on a stream runs in order.

    A line's words are names of kernels with us behind a colon, `!call` for a wait, `=call:us`,
    `@function:us` of the C library, `&function:us` of MPI, `~us` outside of all, and
    `>kind:bytes:us:memory` for a copy to or from that memory (`>>` where the call waits).
    """

    def __init__(self, machine: Machine, tid: int, now: int) -> None:
        self.machine, self.export, self.tid, self.now = machine, machine.export, tid, now

    def _placed(self, lasts: int, launch: int, device: int, stream: int, after: int) -> int:
        self.now += launch
        begin = max(self.now + 2 * US, self.machine.free.get((device, stream), 0) + US, after)
        self.machine.free[device, stream] = begin + lasts
        return begin

    def kernel(
        self,
        name: str,
        lasts: int,
        *,
        device: int = 0,
        stream: int = 7,
        launch: int = 5 * US,
        after: int = 0,
    ) -> int:
        """A kernel, which begins after a moment; gives back its end."""
        called = self.now
        begin = self._placed(lasts, launch, device, stream, after)
        where: dict[str, Any] = {"device": device, "context": device + 1, "stream": stream}
        where["launch"] = (called, self.now, self.tid)
        self.export.kernel(begin, begin + lasts, name, grid=WIDE, **where)
        return begin + lasts

    def copy(
        self,
        kind: str | int,
        size: int,
        lasts: int,
        *,
        device: int = 0,
        stream: int = 7,
        blocks: bool = False,
        **memory: str,
    ) -> int:
        """A copy, which its call may wait for; gives back its end."""
        called = self.now
        begin = self._placed(lasts, 5 * US, device, stream, 0)
        if blocks:
            self.now = begin + lasts + 3 * US
        name = "cudaMemcpy_v3020" if blocks else "cudaMemcpyAsync_v3020"
        where: dict[str, Any] = {"device": device, "context": device + 1, "stream": stream}
        where["launch"] = (called, self.now, self.tid, name)
        self.export.memcpy(begin, begin + lasts, size, kind, **where, **memory)
        return begin + lasts

    def do(self, word: str) -> None:
        kind, (name, *figures) = word[0], word[1:].split(":")
        lasts = US * int(figures[0]) if figures and kind != ">" else 0
        if kind == "!":
            self.wait(name=name or "cudaStreamSynchronize_v3020")
        elif kind == "=":
            self.call(name, lasts)
        elif kind == "@":
            self.export.library("OSRT_API", self.now, self.now + lasts, name, tid=self.tid)
            self.now += lasts
        elif kind == "&":
            self.export.mpi_collective(self.now, self.now + lasts, name, 8)
            self.now += lasts
        elif kind == "~":
            self.now += US * int(name)
        elif kind == ">":
            way, (size, us, *memory) = name.removeprefix(">"), figures
            ends = {"HtoD": ("source",), "DtoH": ("target",)}.get(way, ("source", "target"))
            of: dict[str, Any] = dict.fromkeys(ends, *memory) if memory else {}
            code, blocks = int(way) if way.isdigit() else way, name.startswith(">")
            self.copy(code, int(size), US * int(us), blocks=blocks, **of)
        else:
            self.kernel(kind + name, lasts)

    def call(self, name: str, lasts: int) -> None:
        self.export.api(self.now, self.now + lasts, name, self.tid)
        self.now += lasts

    def wait(self, device: int = 0, name: str = "cudaStreamSynchronize_v3020") -> None:
        """Until a device is done."""
        done = max((free for (of, _), free in self.machine.free.items() if of == device), default=0)
        self.call(name, max(done - self.now, 0) + 3 * US)
