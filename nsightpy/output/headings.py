"""Column names as people say them: cli.md's names are for machines, these stand above tables."""

from __future__ import annotations

import re

# A name that means something of its own in one command stands as command.name.
_HEADINGS = {
    "Time (%)": "time %",
    "Total Time (ns)": "total",
    "Num Calls": "calls",
    "Instances": "count",
    "Med (ns)": "median",
    "StdDev (ns)": "std dev",
    "Total (MB)": "size",
    "Avg (MB)": "avg size",
    "Med (MB)": "median size",
    "Min (MB)": "min size",
    "Max (MB)": "max size",
    "StdDev (MB)": "size std dev",
    "throughput_gb_per_s": "GB/s",
    "busbw_gb_per_s": "bus GB/s",
    "algbw_gb_per_s": "alg GB/s",
    "busbw_with_wait_gb_per_s": "bus GB/s with wait",
    "exposed_communication_share": "exposed comm. %",
    "copy_only_share": "copies alone %",
    "communication_share": "comm. %",
    "memory_share": "copies %",
    "sm_active_share": "SM %",
    "tensor_active_share": "tensor %",
    "dram_share": "DRAM %",
    "nvlink_rx_share": "NVLink in %",
    "nvlink_tx_share": "NVLink out %",
    "nic_received_gb_per_s": "NIC in GB/s",
    "nic_sent_gb_per_s": "NIC out GB/s",
    "last_rank": "last rank",
    "collectives.bytes": "size",
    "collectives.duration_med_ns": "median",
    "collectives.transfer_med_ns": "median transfer",
    "collectives.jitter_med_ns": "median jitter",
    "arrived_last_share": "comes last %",
    "ranks.wait_ns": "waits",
    "offset_ns": "clock offset",
    "drift_ppm": "drift ppm",
    "residual_p05_ns": "clock error p05",
    "residual_p50_ns": "clock error p50",
    "residual_p95_ns": "clock error p95",
    "share_of_busy": "of GPU %",
    "share_of_device_time": "of GPU time %",
    "share_of_graph": "of graph %",
    "share_of_window": "of window %",
    "findings.recoverable_share": "of the time %",
    "idle_share": "GPU idle %",
    "device_idle_ns": "GPU idle",
    "share": "of time %",
    "ratio": "after / before",
    "ratio_low": "least",
    "ratio_high": "most",
    "delta_ns": "change",
    "cumulative_share": "sum %",
    "ceiling_share": "gain at most %",
    "roof_fraction": "of roof %",
    "flops_per_s": "performance",
    "sol_compute_pct": "compute % of peak",
    "sol_memory_pct": "memory % of peak",
    "max_over_mean": "slowest / mean",
    "duration_ratio": "ncu / nsys",
    "nsys_med_ns": "nsys median",
    "ncu_ns": "ncu time",
    "mfu": "MFU %",
    "model_flop_by_shapes": "FLOP by shapes",
    "model_flop_per_s": "FLOP/s",
    "exposed_communication_ns": "exposed comm.",
    "communication_ns": "comm.",
    "copy_only_ns": "copies alone",
    "memory_ns": "copies",
    "opaque_graph_ns": "opaque graphs",
    "launch_starved_ns": "launch starved",
    "blocking_ns": "blocked",
    "total_range_ns": "host time",
    "total_projected_ns": "GPU span",
    "projected_med_ns": "median span",
    "gpu_ops": "GPU ops",
    "attributed_ns": "other threads",
    "attributed_ops": "their ops",
    "instances": "count",
    "ranks.instances": "instances",
    "range_med_ns": "median",
    "imbalance.total_med_ns": "median rank",
    "imbalance.total_max_ns": "slowest rank",
    "imbalance.slowest_rank": "which",
    "instances_min": "fewest launches",
    "instances_max": "most launches",
    "launches.api_med_ns": "call",
    "launches.queue_med_ns": "queue",
    "launches.kernel_med_ns": "kernel",
    "launches.total_med_ns": "call to end",
    "launches.queue_max_ns": "longest queue",
    "launches.api": "API function",
    "queued_count": "queued",
    "queue_mean": "mean queue",
    "queue_max": "longest queue",
    "queue_max_at_ns": "longest at",
    "launch_bound_ns": "launch-bound",
    "launch_bound_kernels": "launch-bound kernels",
    "peak_bytes": "peak",
    "peak_ns": "peak at",
    "left_bytes": "left",
    "at_peak_bytes": "at peak",
    "at_peak_allocations": "allocations at peak",
    "largest_bytes": "largest",
    "at_end_bytes": "at end",
    "delta_at_peak_bytes": "change at peak",
    "delta_at_end_bytes": "change at end",
    "before_at_peak_bytes": "before at peak",
    "after_at_peak_bytes": "after at peak",
    "before_at_end_bytes": "before at end",
    "after_at_end_bytes": "after at end",
    "shared_bytes": "shared memory",
    "representative_ns": "one launch",
    "select.instances": "launches",
    "select.total_ns": "GPU time",
    "host_total_ns": "host total",
    "host_self_ns": "host self",
    "device_total_ns": "GPU total",
    "device_self_ns": "GPU self",
    "sync-waits.med_ns": "median",
    "sync-waits.max_ns": "longest",
    "sync-waits.total_ns": "total",
    "sync-waits.api": "API function",
    "start_utc": "start (UTC)",
    "gpu": "GPU",
    "exposed_ns": "exposed",
}
_ENDS = (
    (r"_gb_per_s$", " GB/s"),
    (r"flops_per_s$", "FLOP/s"),
    (r"_per_s$", "/s"),
    (r"_share$", " %"),
    (r"_med$", " median"),
    (r"^gpu_", "GPU "),
)
_UNIT = re.compile(r" \((?:ns|MB)\)$")


def heading(command: str, name: str) -> str:
    """What stands above a column; names without words of their own lose unit and underscores."""
    known = _HEADINGS.get(f"{command}.{name}") or _HEADINGS.get(name)
    if known:
        return known
    if " " in name or not name.islower():
        text = _UNIT.sub("", name)
        return text.lower() if text in ("Avg", "Min", "Max", "Name", "Operation", "Count") else text
    words = re.sub(r"_(?:ns|bytes|pct)$", "", name)
    for end, said in _ENDS:
        words = re.sub(end, said, words)
    return words.replace("_", " ")


# Causes of idle time; one that is not here is the id of its finding.
_WORDS = {
    "queued": "launched, not begun",
    "unknown": "not known",
    "exposed-communication": "exposed-communication (MPI)",
}
_IDLE = "idle: "


def cause_words(cause: str) -> str:
    """A cause as people read it, also behind `idle: ` in a part of a compared unit."""
    start = _IDLE if cause.startswith(_IDLE) else ""
    cause = cause.removeprefix(start)
    return start + _WORDS.get(cause, cause)
