"""Write a trace of PyTorch's profiler, and what torch's own key_averages says of it, for the tests.

torch is no dependency of nsightpy: run this in an environment of its own,

    python -m venv torch && torch/bin/pip install torch
    torch/bin/python scripts/make_torch_goldens.py

It trains a small model on the CPU for one step and writes tests/goldens/torch/cpu_step.json.gz,
the trace with shapes and allocations, and cpu_step_averages.json: of each operator and input
shapes the calls and the host's time in it, alone and with what it calls (ns).

key_averages counts an operator that calls nothing but one operator of its own name as one call;
`duplicates` names those, which the trace and nsightpy count as two.
"""

import gzip
import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile, record_function

GOLDENS = Path(__file__).resolve().parent.parent / "tests" / "goldens" / "torch"
# Of the header only these are kept: others may name the machine.
HEADER = ("schemaVersion", "record_shapes", "profile_memory", "baseTimeNanoseconds", "traceEvents")


class Block(nn.Module):  # type: ignore[misc]
    """A residual block, with an annotation of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.wide, self.narrow = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with record_function("block"):
            return x + self.narrow(torch.relu(self.wide(self.norm(x))))


def train(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """One step, with a division that calls its like (of whole numbers by a number)."""
    x, labels = torch.randn(8, 4, 10), torch.randint(0, 16, (8,))
    y = model[2](model[1](model[0](x).transpose(1, 2)))
    loss = nn.functional.cross_entropy(y.mean(1), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def averages(events: list[FunctionEvent]) -> list[list[Any]]:
    rows = []
    for row in events:
        if not row.is_user_annotation and row.key != "[memory]":
            host = [round(1000 * us) for us in (row.self_cpu_time_total, row.cpu_time_total)]
            rows.append([row.key, row.input_shapes, row.count, *host])
    return rows


def duplicates(trace: dict[str, Any], rows: list[list[Any]]) -> list[str]:
    """The operators of which the trace has more calls than key_averages says."""
    events = trace["traceEvents"]
    calls = Counter(event["name"] for event in events if event.get("cat") == "cpu_op")
    for name, _, count, *_ in rows:
        calls[name] -= count
    return sorted(name for name, count in calls.items() if count)


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv1d(4, 16, 3, padding=1), Block(), Block())
    optimizer = torch.optim.AdamW(model.parameters())
    train(model, optimizer)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as run:
        train(model, optimizer)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        run.export_chrome_trace(str(path))
        trace = json.loads(path.read_bytes())
    trace = {name: trace[name] for name in HEADER}
    rows = averages(run.key_averages(group_by_input_shape=True))
    GOLDENS.mkdir(parents=True, exist_ok=True)
    packed = gzip.compress(json.dumps(trace).encode(), mtime=0)
    (GOLDENS / "cpu_step.json.gz").write_bytes(packed)
    golden = {"torch": torch.__version__, "averages": rows, "duplicates": duplicates(trace, rows)}
    text = json.dumps(golden).replace("[[[", "[\n[[").replace('], ["', '],\n["')
    (GOLDENS / "cpu_step_averages.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
