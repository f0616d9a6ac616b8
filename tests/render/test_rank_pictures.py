"""Pictures of many ranks: one clock, every rank named or mapped, the field's words on the axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from simulator import PRESETS

import nsightpy
from nsightpy.commands.iterations import FIELDS
from nsightpy.errors import NsightpyError
from nsightpy.render.plots.collectives_plot import collectives_figure
from nsightpy.render.plots.iterations_plot import PANELS, iterations_figure
from nsightpy.results import Table
from tests.support.reports import NSYS, ask, needs_reports

pytestmark = pytest.mark.slow

SAMPLES = Path(__file__).resolve().parent.parent.parent / "sample_reports"
JOB = SAMPLES / "training_4rank"


@pytest.fixture(scope="module")
def eight_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight ranks on two nodes whose clocks are 7.8 ms apart."""
    folder = tmp_path_factory.mktemp("ranks_8")
    PRESETS["ranks_8"].write(folder)
    return folder


def titles(figure: Figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def many_iterations(devices: int, count: int) -> Table:
    """Devices 0, 1, ...: all alike but the last, which computes longer."""
    rows = [
        (rank, number, 1000 * number, 900, 700, 500 + 50 * (rank == devices - 1), 100, 200, "it",
         0, "steady" if number else "warm-up")
        for rank in range(devices)
        for number in range(count)
    ]  # fmt: skip
    return Table("iterations", FIELDS, tuple(rows), ("a.sqlite",))


def test_iterations_of_many_devices_are_their_mean_and_maps() -> None:
    figure = iterations_figure(many_iterations(64, 6))
    maps = [axes for axes in figure.axes if axes.images]
    assert titles(figure)[:4] == [
        "by iteration, mean of 64 devices; line: shortest to longest; dashed: steady median",
        "duration of each device",
        "compute of each device",
        "exposed communication of each device",
    ]
    drawn: Any = maps[1].images[0].get_array()
    assert drawn.shape == (64, 6)
    assert np.all(np.asarray(drawn)[63] > np.asarray(drawn)[62])
    few = iterations_figure(many_iterations(PANELS, 3))
    assert len(few.axes) == PANELS


def test_the_breakdown_shows_each_iteration_where_there_are_any() -> None:
    figure = nsightpy.breakdown_figure(JOB)
    assert "by iteration, mean of 4 devices" in titles(figure)[-1]
    rows = nsightpy.iterations(JOB).records()
    bars = [patch.get_height() for patch in figure.axes[-1].patches]
    means = [
        np.mean([float(row["duration_ns"] or 0) for row in rows if row["iteration"] == number])
        for number in range(8)
    ]
    assert sum(bars) * 1e6 == pytest.approx(sum(means))
    alone = nsightpy.breakdown_figure(SAMPLES / "single_process.sqlite")
    assert len(alone.axes) in (2, 3)


def test_collectives_are_drawn_where_their_sizes_are_known() -> None:
    table = nsightpy.collectives(JOB)
    figure = collectives_figure(table)
    axes = figure.axes[0]
    drawn = {tuple(np.round(np.asarray(points.get_offsets())[0], 6)) for points in axes.collections}
    for row in table.records():
        for name in ("busbw_gb_per_s", "busbw_with_wait_gb_per_s"):
            if row["bytes"] and row[name]:
                assert (float(row["bytes"]), round(float(row[name]), 6)) in drawn  # type: ignore[arg-type]
    assert axes.get_ylabel() == "bus bandwidth (GB/s)"
    unsized = Table(table.command, table.fields, (), table.inputs)
    with pytest.raises(NsightpyError, match="no collectives of known size"):
        collectives_figure(unsized)


def test_bandwidth_with_waiting_is_that_of_nccl_tests_over_the_whole_duration() -> None:
    for row in nsightpy.collectives(JOB).records():
        if row["bytes"] is None or row["operation"] != "AllReduce":
            continue
        ranks, size = int(row["ranks"] or 0), float(row["bytes"])
        wanted = size / float(row["duration_med_ns"] or 1) * 2 * (ranks - 1) / ranks
        assert row["busbw_with_wait_gb_per_s"] == pytest.approx(wanted)
        assert row["busbw_with_wait_gb_per_s"] <= row["busbw_gb_per_s"] * (1 + 1e-9)  # type: ignore[operator]


SAMPLES = JOB.parent
MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize(
    ("suffix", "words"),
    [
        ("svg", ["breakdown", JOB]),
        ("png", ["breakdown", JOB, "--bins", "200"]),
        ("pdf", ["breakdown", SAMPLES / "single_process.sqlite"]),
        ("svg", ["instances", JOB, "--of", "*gemm*"]),
        ("pdf", ["instances", JOB, "--of", "*", "--bins", "20"]),
        ("svg", ["collectives", JOB]),
        ("svg", ["iterations", JOB]),
        ("pdf", ["iterations", JOB]),
        *((suffix, ["timeline", JOB, "--from", "560ms", "--to", "565ms"]) for suffix in MAGIC),
        *((suffix, ["roofline", SAMPLES / "kernels_h100.ncu.csv"]) for suffix in MAGIC),
        ("svg", ["headroom", JOB, "--ncu", SAMPLES / "training_4rank.ncu.csv"]),
        ("svg", ["compare", *sorted(JOB.glob("*.sqlite"))[:2]]),
        ("png", ["memory-usage", SAMPLES / "training_memory.pickle"]),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_pictures_are_the_same_bytes_every_time(
    suffix: str, words: list[str | Path], tmp_path: Path
) -> None:
    files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for file in files:
        ask(*words, "-q", "-o", file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_bytes().startswith(MAGIC[suffix])
    assert files[0].stat().st_size > 2_000
    assert sorted(tmp_path.iterdir()) == files
    assert ask(*words, "-q", "-o", files[0], expect=1).code == 1  # not without --force


@needs_reports
def test_the_collectives_of_a_real_job() -> None:
    figure = nsightpy.collectives_figure(NSYS / "ddp_2rank_nccl_rtx3090_2026.3.sqlite")
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert {"AllReduce", "Broadcast"} <= {text.get_text() for text in legend.get_texts()}
