"""Which columns answer a command's question, and how many rows a terminal shows unasked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nsightpy.output.cells import NAMES
from nsightpy.results import Field, Table, Value

ROWS = 25


@dataclass(frozen=True)
class View:
    """A command's table on a terminal.

    `columns`: the most important first; what is not listed follows, in the table's order. `rows`:
    how many are shown unasked. `worst`: of more rows, those where this column is largest. `last`:
    columns that stand at the right. `moved`: columns that stand before the others. `once`: columns
    that are about all rows with the same `groups`, and are said in the first of them.
    """

    columns: tuple[str, ...] = ()
    rows: int = ROWS
    worst: str = ""
    moved: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    once: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


def _view(columns: str, **more: object) -> View:
    return View(tuple(columns.split()), **more)  # type: ignore[arg-type]


_SPLITS = ("rank", "device", "process", "stream", "grid", "memory", "shape", "thread")
_STATISTICS = ("Time (%)", "Total Time (ns)")
_SPREAD = ("Med (ns)", "Max (ns)", "Avg (ns)", "Min (ns)", "StdDev (ns)")
_VIEWS = {
    "kernels": View(("Name", *_STATISTICS, "Instances", *_SPREAD)),
    "api": View(("Name", *_STATISTICS, "Num Calls", *_SPREAD)),
    "memory": View(
        (
            *("Operation", *_STATISTICS, "Count", "Total (MB)", "throughput_gb_per_s"),
            *("exposed_ns", "Med (MB)", *_SPREAD),
        ),
        last=("Operation",),
    ),
    "launches": _view(
        "name count queue_med_ns kernel_med_ns api_med_ns rank total_med_ns device queue_max_ns api"
    ),
    "launch-queues": _view(
        "stream rank device operations launch_bound_ns empty_share queue_mean queue_max"
        " launch_bound_kernels window_ns"
    ),
    "sync-waits": _view("api rank device calls total_ns device_idle_ns idle_share max_ns"),
    "nvtx": _view(
        "range instances total_projected_ns share_of_busy total_range_ns attributed_ns"
        " projected_med_ns gpu_ops domain style"
    ),
    "nvtx-metrics": _view("range metric mean minimum maximum samples domain"),
    "utilization": _view("rank device start_ns duration_ns busy_share compute_share"),
    "breakdown": _view(
        "rank device window_ns busy_ns idle_ns compute_ns exposed_communication_ns copy_only_ns"
        " launch_starved_ns blocking_ns dependency_stalled_ns",
        rows=64,
        worst="idle_ns",
    ),
    "iterations": _view(
        "rank device iteration duration_ns start_ns busy_ns idle_ns phase compute_ns"
        " exposed_communication_ns",
        moved=("rank", "device", "iteration", "phase"),
    ),
    "collectives": _view(
        "operation group bytes instances busbw_gb_per_s duration_med_ns transfer_med_ns last_rank"
        " last_share ranks jitter_med_ns algbw_gb_per_s abnormal"
    ),
    "ranks": _view(
        "rank straggler arrived_last_share wait_ns compute_ns offset_ns report device host"
        " instances residual_p95_ns alignment",
        moved=("rank", "straggler", "arrived_last_share", "wait_ns", "compute_ns"),
        rows=64,
        worst="arrived_last_share",
    ),
    "imbalance": _view(
        "name max_over_mean slowest_rank total_max_ns total_med_ns ranks instances_min"
        " instances_max"
    ),
    "gaps": _view(
        "duration_ns start_ns cause rank host_activity device after share_of_window before"
    ),
    "graphs": _view(
        "graph name node replay replays replay_med_ns duration_ns instances total_ns gap_med_ns"
        " gap_ns busy_med_ns launch_med_ns share_of_graph operations rank device"
    ),
    "inference-steps": _view(
        "step phase tokens tokens_per_s elapsed_ns busy_ns host_ns requests rank launching_ns"
        " start_ns"
    ),
    "modules": _view(
        "module device_total_ns calls share_of_device_time device_self_ns attributed_ns"
        " host_total_ns host_self_ns"
    ),
    "operators": _view(
        "operator calls device_total_ns device_self_ns host_self_ns host_total_ns mfu"
    ),
    "memory-usage": _view(
        "allocated_by at_peak_bytes peak_bytes memory device at_end_bytes left_bytes"
        " at_peak_allocations allocations largest_bytes peak_ns",
        moved=("rank", "device", "memory", "peak_bytes", "at_peak_bytes"),
        once=("peak_bytes", "peak_ns", "left_bytes"),
        groups=("report", "rank", "device", "memory"),
    ),
    "headroom": _view(
        "name ceiling_share share roof_fraction nsys_med_ns classification ncu_ns instances"
        " sol_compute_pct sol_memory_pct"
    ),
    "select": _view(
        "name order share cumulative_share instances total_ns representative_ns launch_skip grid"
        " block"
    ),
    "info": _view("report kind rank gpu devices kernels duration_ns host warnings", rows=1_000),
    "trace": View(
        ("Name", "Start (ns)", "Duration (ns)", "Device", "Strm", "Kernel Name", "RangeStack"),
        rows=40,
    ),
}


def view_of(command: str) -> View:
    """A command's view; one without a view of its own shows its columns in their order."""
    return _VIEWS.get(command, View())


def in_order(view: View, fields: Sequence[Field]) -> list[Field]:
    """The fields from left to right."""
    names = [field.name for field in fields]
    left = [name for name in view.moved if name in names]
    right = [name for name in view.last if name in names]
    middle = [name for name in names if name not in (*left, *right)]
    return [fields[names.index(name)] for name in (*left, *middle, *right)]


def by_importance(view: View, names: Sequence[str]) -> list[str]:
    """Names of columns, the most important first; what --by splits by tells rows apart."""
    listed = [name for name in view.columns if name in names]
    others = [name for name in names if name not in listed]
    others.sort(key=lambda name: name.lower() not in NAMES)  # what a row is about comes first
    splits = [name for name in others if name in _SPLITS]
    return [*listed[:1], *splits, *listed[1:], *(name for name in others if name not in splits)]


def first_rows(table: Table, view: View, most: int | None) -> tuple[Sequence[Row], str]:
    """At most so many rows, and what is to be said of the others; without a number all of them."""
    if most is None or len(table.rows) <= most:
        return table.rows, ""
    more = f"and {len(table.rows) - most:,} more rows: --top 0 shows them"
    if view.worst not in table.columns:
        return table.rows[:most], more
    place = table.columns.index(view.worst)
    chosen = sorted(range(len(table.rows)), key=lambda row: -_size(table.rows[row][place]))[:most]
    from nsightpy.output.headings import heading

    said = f" (shown: where {heading(table.command, view.worst)} is largest)"
    return [table.rows[row] for row in sorted(chosen)], more + said


Row = tuple[Value, ...]


def _size(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else float("-inf")
