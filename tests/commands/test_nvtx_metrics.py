"""nvtx --metrics: which ranges are shown, and of which reports their figures are."""

from __future__ import annotations

from pathlib import Path

from simulator import Export

import nsightpy


def report(path: Path, forward_ns: int, backward_ns: int) -> None:
    """A GPU sampled every 10 ns, whose kernels of two ranges last this long."""
    export = Export(path)
    export.gpu(0)
    at = 0
    for name, length in (("forward", forward_ns), ("backward", backward_ns)):
        export.nvtx_push_pop(at, at + 100, name)
        export.kernel(at + 200, at + 200 + length, "k", launch=(at + 10, at + 20))
        at += 2_000
    for time in range(0, 4_000, 10):
        export.gpu_metric(time, "SMs Active [Throughput %]", 50)
    export.write()


def test_a_range_has_the_samples_of_every_report(tmp_path: Path) -> None:
    """Also of those in which others take longer: together one is the longest."""
    report(tmp_path / "rank0.sqlite", forward_ns=1_000, backward_ns=400)
    report(tmp_path / "rank1.sqlite", forward_ns=500, backward_ns=600)
    table = nsightpy.nvtx(tmp_path, metrics=True, top=1)
    samples = {row["range"]: row["samples"] for row in table.records()}
    assert samples == {"(whole capture)": 800, "forward": 100 + 50}
