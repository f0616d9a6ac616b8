"""Pictures: what is drawn is what the tables say, labels keep apart, any name is harmless."""

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from simulator import Export
from simulator.ncu import SimulatedKernel, raw_page

import nsightpy
from nsightpy.analysis.intervals import Spans
from nsightpy.analysis.time_budget import TimeBudget
from nsightpy.commands.breakdown.command import CAUSES, FIELDS, budget_row
from nsightpy.commands.iterations import FIELDS as ITERATION_FIELDS
from nsightpy.errors import NsightpyError
from nsightpy.render.plots.breakdown_plot import MOST, breakdown_figure
from nsightpy.render.plots.collectives_plot import collectives_figure
from nsightpy.render.plots.drawing import FORMATS, picture_bytes
from nsightpy.render.plots.iterations_plot import PANELS, iterations_figure
from nsightpy.render.plots.memory_plot import memory_figure
from nsightpy.render.roofline.plot import roofline_figure
from nsightpy.results import Table, Value
from nsightpy.results.rooflines import Roofline
from tests.support.reports import ask
from tests.support.samples import (
    MEASURED as OF_JOB,
    NCU as MEASURED,
    SINGLE,
    SNAPSHOT,
    TRAINING as JOB,
)

EVIL = "\x1b[31m$\\frac{a}{b}$ \u202e{}%s 名前 <script>.sqlite"
MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def widths(figure: Figure, panel: int) -> list[list[float]]:
    """The lengths of the pieces of each bar, top to bottom."""
    rows: dict[float, list[float]] = {}
    for patch in figure.axes[panel].patches:
        row = rows.setdefault(round(patch.get_y(), 3), [])
        assert patch.get_x() == pytest.approx(sum(row))  # it begins where the one before ends
        row.append(patch.get_width())
    return [rows[y] for y in sorted(rows)]


def texts(figure: Figure) -> list[Text]:
    return [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]


def words(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in texts(figure))


def test_the_bars_are_the_budget_and_the_causes() -> None:
    table = nsightpy.breakdown(JOB)
    figure = breakdown_figure(table)
    for number, row in enumerate(table.records()):
        budget, causes = ([width * 1e6 for width in widths(figure, n)[number]] for n in (0, 1))
        assert sum(budget) == pytest.approx(row["window_ns"])
        assert budget[0] == pytest.approx(row["compute_ns"])
        assert sum(causes) == pytest.approx(row["idle_ns"])
        assert causes[:2] == pytest.approx([row["launch_bound_ns"], row["host_gap_ns"]])
    unknown = {field.name: None for field in CAUSES}
    rows = tuple(tuple({**record, **unknown}.values()) for record in table.records())
    figure = breakdown_figure(replace(table, rows=rows))
    assert "causes are not known: the notes say why" in words(figure)
    assert widths(figure, 1) == []


def test_many_devices_show_the_most_idle_ones() -> None:
    def row(rank: int) -> tuple[Value, ...]:
        budget = TimeBudget(Spans.of(0, 1_000), 1_000 - rank, 800 - rank, 0, 0, 0, 0, 0, 0)
        return budget_row(rank, 0, budget, {"host-gap": rank})

    table = Table("breakdown", FIELDS, tuple(row(rank) for rank in range(MOST + 20)), ("a.sqlite",))
    shown = words(breakdown_figure(table)).split("\n")
    assert f"a.sqlite; the {MOST} most idle devices, 20 left out" in shown
    assert f"rank {MOST + 19}" in shown
    assert "rank 1" not in shown


def many_iterations(devices: int, count: int) -> Table:
    """Devices 0, 1, ...: all alike but the last, which computes longer."""
    rows = [
        (rank, number, 1000 * number, 900, 700, 500 + 50 * (rank == devices - 1), 100, 200, "it",
         0, "steady" if number else "warm-up")
        for rank in range(devices)
        for number in range(count)
    ]  # fmt: skip
    return Table("iterations", ITERATION_FIELDS, tuple(rows), ("a.sqlite",))


def test_iterations_of_many_devices_are_their_mean_and_maps() -> None:
    figure = iterations_figure(many_iterations(64, 6))
    about = "mean of 64 devices; line: shortest to longest"
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[:4] == [
        f"{about}; 5 of 6 iterations are steady, median 900 ns",
        *(f"{kind} of each device" for kind in ("duration", "compute", "exposed communication")),
    ]
    drawn: Any = [axes for axes in figure.axes if axes.images][1].images[0].get_array()
    assert drawn.shape == (64, 6)
    assert np.all(np.asarray(drawn)[63] > np.asarray(drawn)[62])
    assert len(iterations_figure(many_iterations(PANELS, 3)).axes) == PANELS
    rows = nsightpy.iterations(JOB).records()  # which the breakdown shows below its bars
    durations = [
        [float(row["duration_ns"] or 0) for row in rows if row["iteration"] == n] for n in range(8)
    ]
    bars = [patch.get_height() for patch in nsightpy.breakdown_figure(JOB).axes[-1].patches]
    assert sum(bars) * 1e6 == pytest.approx(sum(map(np.mean, durations)))


def test_collectives_are_drawn_where_their_sizes_are_known() -> None:
    table = nsightpy.collectives(JOB)
    figure = collectives_figure(table)
    assert {"2 ranks", "4 ranks"} <= set(words(figure).split("\n"))
    (axes,) = figure.axes
    drawn = {tuple(np.round(np.asarray(points.get_offsets())[0], 6)) for points in axes.collections}
    for row in table.records():
        ranks, size = int(row["ranks"] or 0), float(row["bytes"] or 0)
        for name in ("busbw_gb_per_s", "busbw_with_wait_gb_per_s"):
            if size and row[name]:
                assert (size, round(float(row[name]), 6)) in drawn
        if size and row["operation"] == "AllReduce":  # as nccl-tests have it
            wanted = size / float(row["duration_med_ns"] or 1) * 2 * (ranks - 1) / ranks
            assert row["busbw_with_wait_gb_per_s"] == pytest.approx(wanted)


def test_nothing_to_draw_is_refused() -> None:
    nothing = replace(nsightpy.collectives(JOB), rows=())
    for figure, table, said in (
        (collectives_figure, nothing, "no collectives of known size"),
        (breakdown_figure, Table("breakdown", FIELDS, ()), "no devices to draw"),
        (iterations_figure, Table("iterations", ITERATION_FIELDS, ()), "no iterations to draw"),
        (memory_figure, nsightpy.memory_usage(JOB), "--cuda-memory-usage=true"),
    ):
        with pytest.raises(NsightpyError, match=said):
            figure(table)


def many_kernels(count: int, folder: Path) -> Roofline:
    """Kernels all over the plane, some of them close together."""
    chance = random.Random(count)
    kernels = []
    for number in range(count):
        moved = 10 ** chance.uniform(6, 9.5)
        work = moved * 10 ** chance.uniform(-1.3, 2)
        tensor = {"bf16": moved * 10 ** chance.uniform(0.5, 3)} if number % 5 == 0 else {}
        kernels.append(
            SimulatedKernel(
                f"void ns::fused_{number}<float, (int){number}>(const float *, float *)",
                *((chance.choice([8, 64, 512, 4096]), 1, 1), (256, 1, 1), 8),
                fma=work / 2,
                tensor=tensor,
                dram_read=moved,
                l2_read=moved * chance.uniform(1, 4),
                l1_read=moved * chance.uniform(2, 12),
                efficiency=chance.uniform(0.1, 0.95),
            )
        )
    page = folder / "page.csv"
    page.write_text(raw_page(kernels, "app"), encoding="utf-8")
    return nsightpy.roofline(page)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 10, 100])
def test_numbers_and_key_keep_clear_of_each_other(count: int, tmp_path: Path) -> None:
    figure = roofline_figure(many_kernels(count, tmp_path))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    bold = [t for t in texts(figure) if t.get_weight() == "bold" and t.get_text().isdecimal()]
    assert bold
    boxes = [text.get_window_extent(renderer).shrunk(0.9, 0.8) for text in bold]
    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    for text in texts(figure):
        box = text.get_window_extent(renderer)
        assert figure.bbox.x0 - 1 <= box.x0 <= box.x1 <= figure.bbox.x1 + 1, text.get_text()


def test_what_a_roofline_says(tmp_path: Path) -> None:
    said = words(roofline_figure(nsightpy.roofline(MEASURED)))
    for word in (
        *("NVIDIA H100 PCIe", "1103 MHz", "profiled", "DRAM 2.04 TB/s", "L2 5.60 TB/s"),
        *("L1 16.1 TB/s", "fp32 32.2 TFLOP/s", "tensor_bf16 515 TFLOP/s", "ridge 15.8"),
        *("High Throughput", "Small Grid", "60 %", "80 %", "FLOP/byte", "share of time"),
    ):
        assert word in said, word
    ceilings = tmp_path / "ceilings.csv"
    ceilings.write_text("fp32, 28, TFLOP/s\ndram, 1.8, TB/s\n")
    figure = roofline_figure(nsightpy.roofline(MEASURED, ceilings=ceilings))
    assert "measured DRAM 1.80 TB/s" in words(figure)
    assert "measured fp32 28.0 TFLOP/s" in words(figure)
    assert {"-", "--"} <= {line.get_linestyle() for line in figure.axes[0].lines}


def test_without_flops_there_are_bars_and_what_to_collect() -> None:
    result = nsightpy.roofline(MEASURED)
    assert picture_bytes(roofline_figure(replace(result, variants=(), launches=())), "x.png")
    launches = tuple(replace(v.launches[0], points=()) for v in result.variants)
    bare = tuple(replace(v, launches=(o,)) for v, o in zip(result.variants, launches, strict=True))
    figure = roofline_figure(replace(result, variants=bare, launches=launches))
    assert len(figure.axes) == 1
    assert "NVIDIA H100 PCIe" in words(figure)


def hostile_breakdown(folder: Path) -> Figure:
    export = Export(folder / EVIL.replace("/", ""))
    export.kernel(100, 200, EVIL, launch=(10, 20))
    export.kernel(300, 400, EVIL, launch=(210, 220))
    return breakdown_figure(nsightpy.breakdown(export.write()))


def hostile_roofline(_: Path) -> Figure:
    result = nsightpy.roofline(MEASURED)
    variant = result.variants[0]
    machine = replace(variant.first.machine, gpu=EVIL)
    launch = replace(variant.first, name=EVIL, machine=machine, tool_version=EVIL)
    evil = {"variants": (replace(variant, launches=(launch,)),), "inputs": (f"$dir$/{EVIL}",)}
    return roofline_figure(replace(result, launches=(launch,), **evil))


@pytest.mark.slow
@pytest.mark.parametrize("draw", [hostile_breakdown, hostile_roofline])
def test_hostile_names_are_drawn_as_text(draw: Callable[[Path], Figure], tmp_path: Path) -> None:
    figure = draw(tmp_path)
    assert "\x1b" not in words(figure)
    for suffix in FORMATS:
        data = picture_bytes(figure, f"x{suffix}")
        assert data.startswith(MAGIC[suffix[1:]])
        assert b"<script" not in data


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "typed"),
    [
        ("svg", ["breakdown", JOB]),
        ("png", ["breakdown", JOB, "--bins", "200"]),
        ("pdf", ["breakdown", SINGLE]),
        ("svg", ["instances", JOB, "--of", "*gemm*"]),
        ("pdf", ["instances", JOB, "--of", "*", "--bins", "20"]),
        ("svg", ["collectives", JOB]),
        ("pdf", ["iterations", JOB]),
        *((suffix, ["timeline", JOB, "--from", "560ms", "--to", "565ms"]) for suffix in MAGIC),
        ("svg", ["roofline", MEASURED]),
        ("svg", ["headroom", JOB, "--ncu", OF_JOB]),
        ("svg", ["compare", *sorted(JOB.glob("*.sqlite"))[:2]]),
        ("png", ["memory-usage", SNAPSHOT]),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_pictures_are_the_same_bytes_every_time(
    suffix: str, typed: list[str | Path], tmp_path: Path
) -> None:
    files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for file in files:
        ask(*typed, "-q", "-o", file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_bytes().startswith(MAGIC[suffix])
    assert files[0].stat().st_size > 2_000
    assert sorted(tmp_path.iterdir()) == files
    ask(*typed, "-q", "-o", files[0], expect=1)  # not without --force
