"""Every command once: what the library, the command line and the documentation know of it.

A new command is a line in a group here, its function in `nsightpy/commands/`, its
options in `nsightpy/cli/`, both under the command's name with `_` for `-`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its name, its line in `nsightpy --help`, where its function and figure are.

    `folder`: its function is in a folder of its own. `figure`: a function of nsightpy.figures.
    `answers`: in rows or sections, in json, too; what does not is no tool of `nsightpy mcp`.
    """

    name: str
    help: str
    folder: bool = False
    figure: str = ""
    answers: bool = True

    @property
    def function(self) -> str:
        """The name of its function in `nsightpy`."""
        return self.name.replace("-", "_")

    @property
    def module(self) -> str:
        """The module of its function."""
        return f"nsightpy.commands.{self.function}{'.command' if self.folder else ''}"

    @property
    def cli_module(self) -> str:
        """The module of its options."""
        return f"nsightpy.cli.{self.function}"


# By the heading under which `nsightpy --help` shows them.
GROUPS = {
    "Begin here": (
        Command("summarize", "One screen: what ran, where the time went, what next.", folder=True),
        Command("findings", "What stands out, and what it could give back at most.", folder=True),
        Command(
            "report",
            "Everything here on one offline page to send.",
            folder=True,
            answers=False,
        ),
        Command("info", "What each report is: rank, host, GPU, versions, warnings.", folder=True),
        Command(
            "compare",
            "Runs before against runs after: slower, by how much, why; gates.",
            folder=True,
            figure="comparison_figure",
        ),
    ),
    "What ran": (
        Command("kernels", "Kernels by GPU time, as nsys stats counts it."),
        Command("operators", "PyTorch operators by host and device time."),
        Command("modules", "Device time of nested modules, forward and backward."),
        Command("api", "CUDA API functions by host time."),
        Command("memory", "Copies and memory sets by time and size."),
        Command(
            "memory-usage",
            "Allocated memory: the peak, who holds it, what is left.",
            folder=True,
            figure="memory_figure",
        ),
        Command("stats", "A summary of nsys stats by its own name: nvtx_sum, ...", folder=True),
        Command(
            "trace", "Every operation in time order, as the traces of nsys stats.", folder=True
        ),
    ),
    "Where the time went": (
        Command(
            "breakdown",
            "How each device's time divides: busy, exposed, idle.",
            figure="breakdown_figure",
        ),
        Command(
            "utilization",
            "Busy, compute and communication of every device over time.",
            figure="utilization_figure",
        ),
        Command("gaps", "The longest idle intervals: cause, host activity, operations around."),
        Command(
            "iterations",
            "Where a run repeats, and what each iteration's time went to.",
            figure="iterations_figure",
        ),
        Command("nvtx", "Code ranges by host time and by the GPU time they caused."),
        Command("nvtx-metrics", "GPU metrics sampled over each code range."),
        Command(
            "timeline",
            "Every rank on one clock: a picture, a page, or a trace.",
            figure="timeline_figure",
            answers=False,
        ),
    ),
    "Launching and waiting": (
        Command("launches", "From the API call through the queue to the kernel."),
        Command(
            "launch-queues",
            "How much work waited on each stream, and launch-bound time.",
            figure="queue_figure",
        ),
        Command("sync-waits", "Synchronising calls, and the GPU time that they cost."),
        Command("graphs", "CUDA graphs by replay and by node, and what their launches cost."),
        Command("inference-steps", "Prefill and decode steps of vLLM and SGLang."),
    ),
    "Several ranks": (
        Command("ranks", "Every rank on one clock: offsets, waits, the straggler."),
        Command(
            "collectives",
            "Collectives by size and group: bandwidth, wait, who is late.",
            folder=True,
            figure="collectives_figure",
        ),
        Command("imbalance", "Kernels whose time differs between ranks, and the slowest rank."),
        Command("pipeline", "Pipeline stages: compute, bubbles, transfers."),
        Command("mpi-waits", "Where MPI ranks waited for each other, and for whom."),
    ),
    "One thing, many times": (
        Command(
            "pace",
            "One kernel, range or collective, instance by instance.",
            figure="pace_figure",
        ),
        Command(
            "histogram",
            "How durations are distributed, and the modes of each name.",
            figure="histogram_figure",
        ),
    ),
    "With Nsight Compute": (
        Command(
            "select", "Which kernels are worth measuring with ncu, and the commands.", folder=True
        ),
        Command(
            "roofline",
            "Kernels against the machine's limits, from ncu reports.",
            folder=True,
            figure="roofline_figure",
        ),
        Command(
            "headroom",
            "What ncu measured, as ceilings of what there is to gain.",
            folder=True,
            figure="headroom_figure",
        ),
    ),
    "Files and agents": (
        Command(
            "export",
            "Every frame as parquet or csv, with rank, on one clock.",
            folder=True,
            answers=False,
        ),
        Command("schema", "What the json of a command holds, as a JSON Schema.", answers=False),
        Command("skill", "How agents go from a report to a conclusion.", answers=False),
        Command("mcp", "Serve these commands to agents, read-only.", folder=True, answers=False),
        Command("cache", "Show or clear what nsightpy keeps of reports.", answers=False),
    ),
}
COMMANDS = {command.name: command for group in GROUPS.values() for command in group}
FIGURES = {each.figure: "nsightpy.figures" for each in COMMANDS.values() if each.figure}
FUNCTIONS = {each.function: each.module for each in COMMANDS.values()}
