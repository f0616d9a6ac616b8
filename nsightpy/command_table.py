"""Every command once: its name, its line in the help, where it is declared.

A new command is a line in a group here and a module in `nsightpy/commands/`.
"""

from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any


@dataclass(frozen=True, slots=True)
class Listed:
    """A command: its name and its line in `nsightpy --help`.

    `answers`: in rows or sections, in json, too; what does not is no tool of `nsightpy mcp`.
    `figure`: it draws; `nsightpy.NAME_figure` does.
    """

    name: str
    help: str
    answers: bool = True
    figure: bool = False

    @property
    def function(self) -> str:
        """Its name in `nsightpy`."""
        return self.name.replace("-", "_")

    def load(self) -> Any:
        """The command itself, from its module in `nsightpy.commands` or from its folder there."""
        module = import_module(f"nsightpy.commands.{self.function}")
        if hasattr(module, "__path__"):
            module = import_module(f"{module.__name__}.command")
        return getattr(module, self.function)


_drawn = partial(Listed, figure=True)
# By the heading under which `nsightpy --help` shows them, in the order of a user's work.
GROUPS = {
    "Begin here": (
        Listed("summarize", "One screen: what ran, where the time went, what next."),
        Listed("findings", "What stands out, and what it could give back at most."),
        Listed("report", "Everything here on one offline page to send.", answers=False),
        Listed("info", "What each report is: rank, host, GPU, versions, warnings."),
        _drawn("compare", "Runs before against runs after: slower, by how much, why; gates."),
    ),
    "What ran": (
        Listed("kernels", "Kernels by GPU time, as nsys stats counts it."),
        Listed("operators", "PyTorch operators and modules by host and device time."),
        Listed("api", "CUDA API functions by host time."),
        Listed("memory", "Copies and memory sets by time and size."),
        _drawn("memory-usage", "Allocated memory: the peak, who holds it, what is left."),
        Listed("nvtx", "Code ranges by host time and by the GPU time they caused."),
        Listed("stats", "A report of nsys stats by its own name: nvtx_sum, ..."),
    ),
    "Where the time went": (
        _drawn("breakdown", "How each device's time divides: busy, exposed, idle."),
        Listed("gaps", "Why devices were idle: causes and places, or the longest intervals."),
        _drawn("iterations", "Where a run repeats, and what each iteration's time went to."),
        _drawn("instances", "One kernel, range or collective, instance by instance."),
        _drawn(
            "timeline", "Every rank on one clock: a picture, a page, or a trace.", answers=False
        ),
        Listed("launches", "From the API call through the queue to the kernel."),
        Listed("graphs", "CUDA graphs by replay and by node, and what their launches cost."),
    ),
    "Several ranks": (
        Listed("ranks", "Every rank on one clock: offsets, waits, the straggler."),
        _drawn("collectives", "Collectives by size and group: bandwidth, wait, who is late."),
    ),
    "With Nsight Compute": (
        Listed("select", "Which kernels are worth measuring with ncu, and the commands."),
        _drawn("roofline", "Kernels against the machine's limits, from ncu reports."),
        _drawn("headroom", "What ncu measured, as ceilings of what there is to gain."),
    ),
    "Files and agents": (
        Listed("export", "Every frame as parquet or csv, with rank, on one clock.", answers=False),
        Listed("cache", "Show or clear what nsightpy keeps of reports.", answers=False),
        Listed("mcp", "Serve these commands to agents, read-only.", answers=False),
    ),
}
COMMANDS = {each.name: each for group in GROUPS.values() for each in group}
# What commands of earlier versions are called now.
FORMER = {
    "histogram": "instances --of NAME --bins N",
    "imbalance": "ranks --by kernel",
    "inference-steps": "iterations",
    "launch-queues": "launches --by stream",
    "modules": "operators --by module",
    "mpi-waits": "ranks --by call",
    "nvtx-metrics": "nvtx --metrics",
    "pace": "instances --of NAME",
    "pipeline": "ranks --by stage",
    "schema": "COMMAND --schema",
    "skill": "mcp --skill",
    "sync-waits": "gaps --by call",
    "trace": "stats -r cuda_gpu_trace",
    "utilization": "breakdown --bins N",
}
