"""How fast the events of a PyTorch trace are decoded, and in how much memory, by library.

    python benchmarks/trace_readers.py                       # 100,000 events
    python benchmarks/trace_readers.py --events 2000000 --rounds 3

Each reader is a process of its own, in turn, and sums up the kernels' time, so that all do the
same. "nsightpy" is the whole reader, with its frames. Libraries that are not installed are left
out (orjson, pysimdjson). simdjson makes only the values that are asked for, here two of each event,
and nsightpy asks for twenty. Ratios are to msgspec with typed structs, which nsightpy decodes with.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

STREAMS = 4
BASELINE = "msgspec, typed"


def write_trace(path: Path, count: int) -> None:
    """A trace of that many events: an operator, its launch and its kernel, again and again."""
    head = {"schemaVersion": 1, "baseTimeNanoseconds": 1_735_344_000 * 10**9}
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ', "traceEvents": [\n')
        for place in range(count):
            file.write((",\n" if place else "") + json.dumps(_event(place)))
        file.write("\n]}\n")


def _event(place: int) -> dict[str, Any]:
    number, kind = divmod(place, 3)
    start = round(number * 10.125 + kind, 3)
    shared: dict[str, Any] = {"External id": number, "correlation": number}
    if kind == 0:
        args: dict[str, Any] = {"External id": number, "Record function id": 0, "Ev Idx": number}
        args |= {"Input Dims": [[64, 768], [768, 768], []], "Input type": ["float", "float", ""]}
        return _span("cpu_op", "aten::addmm", 1, 1, start, 8.25, args)
    if kind == 1:
        return _span("cuda_runtime", "cudaLaunchKernel", 1, 1, start, 3.5, {"cbid": 211} | shared)
    args = shared | {"device": 0, "context": 1, "stream": 7 + number % STREAMS, "queued": 0}
    args |= {"registers per thread": 128, "shared memory": 49152, "blocks per SM": 0.97}
    args |= {"grid": [128, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 12}
    name = f"void cutlass::Kernel2<cutlass_80_tensorop_gemm_{number % 40}>(Params)"
    return _span("kernel", name, 0, args["stream"], start, 9.125, args)


def _span(
    category: str, name: str, pid: int, tid: int, start: float, lasted: float, args: dict[str, Any]
) -> dict[str, Any]:
    event = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid}
    return event | {"ts": start, "dur": lasted, "args": args}


def _kernel_time(events: Any) -> float:
    return sum(float(event["dur"]) for event in events if event.get("cat") == "kernel")


def by_json(path: Path) -> float:
    return _kernel_time(json.loads(path.read_bytes())["traceEvents"])


def by_orjson(path: Path) -> float:
    orjson: Any = import_module("orjson")
    return _kernel_time(orjson.loads(path.read_bytes())["traceEvents"])


def by_simdjson(path: Path) -> float:
    simdjson: Any = import_module("simdjson")
    return _kernel_time(simdjson.Parser().parse(path.read_bytes())["traceEvents"])


def by_msgspec(path: Path) -> float:
    import msgspec

    return _kernel_time(msgspec.json.decode(path.read_bytes())["traceEvents"])


def by_typed_msgspec(path: Path) -> float:
    import msgspec

    from nsightpy.readers.torch.events import Event

    fields = [("traceEvents", list[Event])]
    whole: Any = msgspec.defstruct("Trace", fields)
    found = msgspec.json.decode(path.read_bytes(), type=whole).traceEvents
    return sum(float(event.dur or 0) for event in found if event.cat == "kernel")


def by_nsightpy(path: Path) -> float:
    from nsightpy.reports.torch import TorchTrace

    kernels = TorchTrace(path, use_cache=False).frame("kernels")
    return int((kernels.ints("end_ns") - kernels.ints("start_ns")).sum()) / 1000


def _uncollected(reader: Callable[[Path], float]) -> Callable[[Path], float]:
    def run(path: Path) -> float:
        gc.disable()
        return reader(path)

    return run


READERS: dict[str, tuple[str, Callable[[Path], float]]] = {
    "json": ("json", by_json),
    "json, no gc": ("json", _uncollected(by_json)),
    "orjson": ("orjson", by_orjson),
    "orjson, no gc": ("orjson", _uncollected(by_orjson)),
    "simdjson": ("simdjson", by_simdjson),
    "msgspec, no gc": ("msgspec", _uncollected(by_msgspec)),
    BASELINE: ("nsightpy.readers.torch.events", _uncollected(by_typed_msgspec)),
    "nsightpy": ("nsightpy.reports.torch", by_nsightpy),
}


def measure(name: str, path: Path) -> None:
    """Print of one reader in this process: seconds, its highest memory in bytes, what it read."""
    import_module(READERS[name][0])
    began = time.perf_counter()
    total = READERS[name][1](path)
    seconds = time.perf_counter() - began
    print(f"{seconds} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024} {total:.3f}")


def _installed(module: str) -> bool:
    return find_spec(module) is not None


def compare(path: Path, rounds: int) -> None:
    """Every reader in turn, one line each; raises ValueError where two read different times."""
    names = [name for name, (module, _) in READERS.items() if _installed(module)]
    seconds: dict[str, list[float]] = {name: [] for name in names}
    peak: dict[str, int] = {}
    totals: set[str] = set()
    for _ in range(rounds):
        for name in names:
            command = [sys.executable, __file__, "--reader", name, str(path)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            lasted, memory, total = done.stdout.split()
            seconds[name].append(float(lasted))
            peak[name] = max(peak.get(name, 0), int(memory))
            totals.add(total)
    if len(totals) > 1:
        raise ValueError(f"the readers differ: {', '.join(sorted(totals))} us of kernels")
    base = statistics.median(seconds[BASELINE])
    print(f"{'reader':<16} {'median s':>9} {'ratio':>6} {'peak MB':>8}")
    for name in names:
        middle = statistics.median(seconds[name])
        print(f"{name:<16} {middle:>9.3f} {middle / base:>6.2f} {peak[name] / 1e6:>8.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare readers of PyTorch traces.")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--reader", nargs=2, metavar=("NAME", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.reader:
        measure(given.reader[0], Path(given.reader[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        write_trace(path, given.events)
        print(f"{given.events:,} events, {path.stat().st_size / 1e6:.0f} MB")
        compare(path, given.rounds)


if __name__ == "__main__":
    main()
