"""Sampled hardware metrics of a report over stretches of time, of each GPU."""

import re
from typing import TypeAlias

import numpy as np

from nsightpy.analysis.binned import sample_means
from nsightpy.frames import Floats, Frame, Ints
from nsightpy.query.capture_advice import not_recorded
from nsightpy.reports.system import SystemReport

NO_SAMPLES = not_recorded(
    "The capture holds no GPU metrics.", "--gpu-metrics-devices=all", "samples them"
)
# Column -> the metrics whose sum it is. NVIDIA's names differ between GPUs; other units of the same
# metric ("[Cycles Active]") are other metrics.
_UNIT = r"(?: \[Throughput %\])?"
SHARES = {
    "sm_active_share": rf"SMs? Active{_UNIT}",
    "tensor_active_share": rf"Tensor Active(?: / FP16 Active)?{_UNIT}",
    "dram_share": rf"DRAM (?:Read|Write)(?: Bandwidth| Throughput)?{_UNIT}",
    "nvlink_rx_share": rf"NVLink RX (?:\w+ User Data|Bandwidth|Throughput){_UNIT}",
    "nvlink_tx_share": rf"NVLink TX (?:\w+ User Data|Bandwidth|Throughput){_UNIT}",
}

# A GPU as several reports know it: of what samples all GPUs of a host there is one.
GpuKey: TypeAlias = tuple[str, str]


def gpus_of(report: SystemReport) -> dict[tuple[int, int], int]:
    """The GPU of the host behind each place (process, device) with GPU work."""
    devices = report.frame("devices").tuples("pid", "device", "gpu_id")
    known = {(pid, device): gpu for pid, device, gpu in devices}
    places = report.extent.places
    # 0 is any process
    return {(pid, d): known.get((pid, d), known.get((0, d), d)) for pid, d in places}


def gpu_key(report: SystemReport, gpu: int) -> GpuKey:
    """The host of a GPU, and its place there."""
    buses = dict(report.frame("devices").tuples("gpu_id", "bus"))
    return report.session.host or str(report.path), buses.get(gpu) or f"GPU {gpu}"


def sampled_shares(report: SystemReport, edges: Ints) -> dict[GpuKey, Floats]:
    """The SHARES that a report sampled of each GPU, a row each, in the stretches between edges (ns
    of its own time); NaN for none."""
    samples = report.frame("gpu_metrics")
    return {
        gpu_key(report, gpu): np.stack(
            [_summed(samples.at(gpu_id=gpu), pattern, edges) for pattern in SHARES.values()]
        )
        for gpu in np.unique(samples.ints("gpu_id")).tolist()
    }


def _summed(samples: Frame, pattern: str, edges: Ints) -> Floats:
    """The sum of the means of the metrics that match, as a share."""
    names = samples.labels("metric").merged()
    parts = []
    for code, name in enumerate(names.values):
        if re.fullmatch(pattern, name):
            rows = np.flatnonzero(names.codes == code)
            time, value = samples.ints("time_ns")[rows], samples.ints("value")[rows]
            parts.append(sample_means(time, value / 100.0, edges))
    return np.sum(parts, axis=0) if parts else np.full(len(edges) - 1, np.nan)
