"""memory and memory-usage of nsys: by direction and memory, the peak."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from simulator import Export

import nsightpy
from nsightpy.analysis.memory.allocations import usage
from nsightpy.commands.memory import memory
from nsightpy.frames import Frame, Labels
from nsightpy.results import number
from tests.support.samples import TRAINING


@pytest.fixture
def path(tmp_path: Path) -> str:
    export = Export(tmp_path / "report.sqlite")
    export.kernel(1_000, 2_000, "k", launch=(10, 20))
    export.memcpy(1_500, 2_500, 4_000, "HtoD", source="Pinned", stream=13, launch=(30, 40))
    export.memcpy(1_100, 1_200, 1_000, "HtoD", source="Pageable", stream=14, launch=(50, 60))
    export.memcpy(3_000, 3_400, 800, "DtoH", target="Pageable", stream=13, launch=(70, 80))
    export.memcpy(4_000, 4_100, 100, "DtoD", stream=13, launch=(90, 95))
    export.memset(5_000, 5_050, 10, stream=13, launch=(96, 97))
    return str(export.write())


def test_host_memory_tells_copies_of_one_direction_apart(path: str) -> None:
    rows = memory(path, by="memory").records()
    told = {(row["memory"], row["Operation"]): row["throughput_gb_per_s"] for row in rows}
    assert told == {
        ("pinned", "[CUDA memcpy Host-to-Device]"): 4.0,
        ("pageable", "[CUDA memcpy Host-to-Device]"): 10.0,
        ("pageable", "[CUDA memcpy Device-to-Host]"): 2.0,
        (None, "[CUDA memcpy Device-to-Device]"): 1.0,
        (None, "[CUDA memset]"): 0.2,
    }


def test_ranks_add_up_to_the_whole(path: str) -> None:
    whole = {row["Operation"]: row["Total Time (ns)"] for row in memory(TRAINING).records()}
    parts: Counter[object] = Counter()
    split = memory(TRAINING, by="rank,memory")
    for row in split.records():
        parts[row["Operation"]] += int(number(row["Total Time (ns)"]))
    assert parts == whole
    assert split.columns == ("rank", "memory", *memory(path).columns)


@pytest.mark.parametrize(
    ("bandwidth", "rate"), [(3_999_999_999, None), (4_000_000_000, 4.0), (None, 4.0)]
)
def test_no_rate_beyond_memory(bandwidth: int | None, rate: float | None, tmp_path: Path) -> None:
    export = Export(tmp_path / "report.sqlite")
    if bandwidth is not None:
        export.gpu(memoryBandwidth=bandwidth)
    export.memset(5_000, 6_000, 4_000, launch=(96, 97))
    export.memcpy(7_000, 8_000, 1_000, "DtoH", launch=(98, 99))
    table = memory(str(export.write()))
    assert table.column("throughput_gb_per_s") == [1.0, rate]
    notes = [note for note in table.notes if note.startswith("No rate")]
    assert bool(notes) == (rate is None)
    if notes:
        assert "beyond the GPU's memory (4 GB/s)" in notes[0]


def test_the_peak_and_who_made_it(tmp_path: Path) -> None:
    export = Export(tmp_path / "report.sqlite")
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
    table = nsightpy.memory_usage(export.write())
    rows = [row for row in table.records() if row["memory"] == "Device"]
    assert {(row["peak_bytes"], row["peak_ns"], row["left_bytes"]) for row in rows} == {
        (5_000_000, 1_200, 3_000_000)
    }
    figures = ("at_peak_bytes", "at_peak_allocations", "allocations")
    who = {str(row["allocated_by"]): tuple(row[name] for name in figures) for row in rows}
    assert who == {"model": (4_000_000, 1, 1), "outer": (1_000_000, 1, 1), "None": (0, 0, 1)}
    (pinned,) = (row for row in table.records() if row["memory"] == "Pinned")
    assert pinned["peak_bytes"] == 500


def test_the_peak_before_the_capture_begins(tmp_path: Path) -> None:
    export = Export(tmp_path / "report.sqlite")
    export.memory_usage(-900, 3_000, address=1)
    export.memory_usage(-500, 3_000, "free", address=1)
    (row,) = nsightpy.memory_usage(export.write()).records()
    assert (row["peak_bytes"], row["peak_ns"], row["left_bytes"]) == (3_000, -900, 0)


@pytest.mark.parametrize(
    ("events", "times", "live"),
    [
        # one address twice, without a free between
        ([(1, 10, 7, -1), (2, 20, 7, -1), (3, -20, 7, -1)], [1, 2, 3], [0, 10, 30, 10]),
        # a free of what nobody saw; two events of one time
        ([(1, -5, 9, -1), (2, 10, 7, -1), (2, -10, 7, -1)], [2], [0, 0]),
        # the allocator says what was live: 20 before the first event, of which 5 are freed
        ([(5, -5, 9, 15), (7, 10, 7, 25)], [0, 5, 7], [0, 20, 15, 25]),
    ],
)
def test_live_memory_of_programs(
    events: list[tuple[int, int, int, int]], times: list[int], live: list[int]
) -> None:
    """Events are a time, bytes (below 0: a free), an address, what is live then."""
    time, size, address, level = (np.asarray(column) for column in zip(*events, strict=True))
    frame = {"start_ns": time, "bytes": abs(size), "address": address, "allocated_bytes": level}
    names = Labels.of("allocate" if each > 0 else "free" for each in size)
    found = usage(Frame({**frame, "reserved_bytes": 0 * time, "operation": names}))
    assert (found.times.tolist(), found.live.tolist()) == (times, live)
