"""The picture: what is on it, that labels keep clear of each other, that any name is harmless."""

from __future__ import annotations

import dataclasses
import random
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from simulator.ncu import SimulatedKernel, raw_page

from nsightpy.commands.roofline.command import roofline
from nsightpy.render.plots.drawing import FORMATS, picture_bytes
from nsightpy.render.roofline.plot import roofline_figure
from nsightpy.results.rooflines import Roofline
from tests.support.ncu_bench import REPORTS, SAMPLE, needs_library, needs_reports

HOSTILE = "$x^2$ <script>alert(1)</script> \x1b[31mred\x1b[0m \u202eevil 中文 & \\frac{"


def many(count: int, folder: Path) -> Roofline:
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
                (chance.choice([8, 64, 512, 4096]), 1, 1),
                (256, 1, 1),
                8,
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
    return roofline(page)


def texts(figure: Figure) -> list[Text]:
    return [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]


def words(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in texts(figure))


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 10, 100])
def test_numbers_and_key_keep_clear_of_each_other(count: int, tmp_path: Path) -> None:
    figure = roofline_figure(many(count, tmp_path))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    bold = [t for t in texts(figure) if t.get_weight() == "bold" and t.get_text().isdecimal()]
    assert bold
    boxes = [text.get_window_extent(renderer).shrunk(0.9, 0.8) for text in bold]
    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    whole = figure.bbox
    for text in texts(figure):
        box = text.get_window_extent(renderer)
        assert box.x0 >= whole.x0 - 1, text.get_text()
        assert box.x1 <= whole.x1 + 1, text.get_text()


def test_what_the_picture_says() -> None:
    said = words(roofline_figure(roofline(SAMPLE)))
    for word in (
        *("NVIDIA H100 PCIe", "1103 MHz", "profiled", "DRAM 2.04 TB/s", "L2 5.60 TB/s"),
        *("L1 16.1 TB/s", "fp32 32.2 TFLOP/s", "tensor_bf16 515 TFLOP/s", "ridge 15.8"),
        *("High Throughput", "Small Grid", "60 %", "80 %", "FLOP/byte", "share of time"),
    ):
        assert word in said, word


@needs_reports
@needs_library
def test_without_flops_there_are_bars_and_what_to_collect() -> None:
    figure = roofline_figure(roofline(REPORTS / "a10g_11kernels_2023.1.ncu-rep"))
    assert len(figure.axes) == 1
    said = words(figure)
    assert "--set roofline" in said
    assert "NVIDIA A10G" in said
    assert "ncu 2023.1.1.0" in said


def test_measured_ceilings_are_solid_and_theory_is_dashed(tmp_path: Path) -> None:
    ceilings = tmp_path / "ceilings.csv"
    ceilings.write_text("fp32, 28, TFLOP/s\ndram, 1.8, TB/s\n")
    figure = roofline_figure(roofline(SAMPLE, ceilings=ceilings))
    said = words(figure)
    assert "measured DRAM 1.80 TB/s" in said
    assert "measured fp32 28.0 TFLOP/s" in said
    styles = {line.get_linestyle() for line in figure.axes[0].lines}
    assert {"-", "--"} <= styles


@pytest.mark.slow
def test_hostile_names_are_drawn_as_text(tmp_path: Path) -> None:
    found = roofline(SAMPLE)
    variant = found.variants[0]
    renamed = dataclasses.replace(variant.first, name=HOSTILE)
    machine = dataclasses.replace(renamed.machine, gpu="$\\alpha$ & <b>")
    launch = dataclasses.replace(renamed, machine=machine, tool_version="$1$")
    hostile = dataclasses.replace(
        found,
        variants=(dataclasses.replace(variant, launches=(launch,)),),
        launches=(launch,),
        inputs=("$dir$/<i>$\\x$",),
    )
    drawn = roofline_figure(hostile)
    for suffix in FORMATS:
        data = picture_bytes(drawn, f"x{suffix}")
        assert data
        if suffix == ".svg":
            root = ElementTree.fromstring(data)
            assert not [node for node in root.iter() if node.tag.endswith("script")]
    assert "\x1b" not in words(drawn)


def test_no_points_and_no_bars_still_draw() -> None:
    found = roofline(SAMPLE)
    empty = dataclasses.replace(found, variants=(), launches=())
    assert picture_bytes(roofline_figure(empty), "x.png")
