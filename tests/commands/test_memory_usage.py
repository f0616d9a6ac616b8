"""memory-usage of nsys: the peak of each kind of memory, and who had allocated it."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulator import Export

import nsightpy
from nsightpy.errors import NsightpyError
from nsightpy.render.plots.memory_plot import memory_figure


def usage_export(path: Path) -> Path:
    export = Export(path)
    export.nvtx_push_pop(0, 10_000, "outer")
    export.nvtx_push_pop(100, 900, "model")
    export.api(200, 300, "cudaMalloc_v3020", correlation=5)
    export.memory_usage(250, 4_000_000, address=1, correlation=5)
    # without a correlation id: the call that was in progress
    export.api(1_000, 1_300, "cudaMallocAsync_v11020", correlation=6)
    export.memory_usage(1_200, 1_000_000, address=2, correlation=0)
    export.memory_usage(2_000, 4_000_000, "free", address=1)
    # the address again, in another size
    export.memory_usage(3_000, 2_000_000, address=1, correlation=0)
    export.memory_usage(4_000, 7, "free", address=99)
    export.memory_usage(5_000, 500, address=3, kind="Pinned", correlation=0)
    return export.write()


def test_the_peak_and_who_made_it(tmp_path: Path) -> None:
    table = nsightpy.memory_usage(usage_export(tmp_path / "report.sqlite"))
    rows = [row for row in table.records() if row["memory"] == "Device"]
    assert {(row["peak_bytes"], row["peak_ns"], row["left_bytes"]) for row in rows} == {
        (5_000_000, 1_200, 3_000_000)
    }
    figures = ("at_peak_bytes", "at_peak_allocations", "allocations")
    who = {str(row["allocated_by"]): tuple(row[name] for name in figures) for row in rows}
    assert who == {"model": (4_000_000, 1, 1), "outer": (1_000_000, 1, 1), "None": (0, 0, 1)}
    (pinned,) = (row for row in table.records() if row["memory"] == "Pinned")
    assert pinned["peak_bytes"] == 500
    assert any("1 frees gave back memory from before" in note for note in table.notes)


def test_without_a_capture_of_it(tmp_path: Path) -> None:
    export = Export(tmp_path / "report.sqlite")
    export.kernel(100, 200, "k", launch=(10, 20))
    table = nsightpy.memory_usage(export.write())
    assert table.rows == ()
    with pytest.raises(NsightpyError, match="--cuda-memory-usage=true"):
        memory_figure(table)
