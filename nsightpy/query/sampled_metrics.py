"""Sampled hardware metrics of the GPUs of a report over stretches of time."""

import re

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

# A GPU as several reports know it: host, and its place there.
GpuKey = tuple[str, str]


def gpus_of(report: SystemReport) -> dict[tuple[int, int], int]:
    """The GPU of the host behind each place (process, device) with GPU work."""
    devices = report.frame("devices").tuples("pid", "device", "gpu_id")
    known = {(pid, device): gpu for pid, device, gpu in devices}
    places = report.extent.places
    # 0 is any process
    return {(pid, d): known.get((pid, d), known.get((0, d), d)) for pid, d in places}


def gpu_keys(report: SystemReport) -> dict[tuple[int, int], GpuKey]:
    """The GPU of each place (process, device) with GPU work."""
    host, buses = _host(report), _buses(report)
    return {place: (host, buses.get(gpu, f"GPU {gpu}")) for place, gpu in gpus_of(report).items()}


def _host(report: SystemReport) -> str:
    return report.session.host or str(report.path)


def _buses(report: SystemReport) -> dict[int, str]:
    """The PCI bus location of each GPU of the host, as far as it is known."""
    return {gpu: bus for gpu, bus in report.frame("devices").tuples("gpu_id", "bus") if bus}


def sampled(report: SystemReport, edges: Ints) -> dict[GpuKey, dict[str, Floats]]:
    """What the report sampled of each GPU, by column, in each stretch between edges (ns of its own
    time); NaN for none."""
    frame = report.frame("gpu_metrics")
    buses, shares = _buses(report), dict[GpuKey, dict[str, Floats]]()
    for gpu in np.unique(frame.ints("gpu_id")).tolist():
        mine = frame.take(frame.ints("gpu_id") == gpu)
        sums = ((name, _summed(mine, pattern, edges)) for name, pattern in SHARES.items())
        known = {name: values for name, values in sums if values is not None}
        shares[_host(report), buses.get(gpu, f"GPU {gpu}")] = known
    return shares


def _summed(samples: Frame, pattern: str, edges: Ints) -> Floats | None:
    """The sum of the means of the metrics that match, as a share; None where there is none."""
    names = samples.labels("metric").merged()
    parts = []
    for code, name in enumerate(names.values):
        if re.fullmatch(pattern, name):
            rows = np.flatnonzero(names.codes == code)
            time, value = samples.ints("time_ns")[rows], samples.ints("value")[rows]
            parts.append(sample_means(time, value / 100.0, edges))
    return np.sum(parts, axis=0) if parts else None
