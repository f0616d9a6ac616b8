"""What is made of a comparison: screens, a comment, a test report, a picture."""

import io
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from nsightpy.errors import NsightpyError
from nsightpy.output.escape import display_width
from nsightpy.output.formats import document_of
from nsightpy.render.comparison.for_ci import code, comparison_junit, comparison_markdown
from nsightpy.render.comparison.plot import comparison_figure, waterfall
from nsightpy.render.comparison.text import print_comparison
from nsightpy.render.plots.drawing import picture_bytes
from nsightpy.render.text.terminal import console
from nsightpy.results.comparison import COMPARE_FIELDS, Comparison, GateOutcome, Limits, NoiseFloor
from tests.support.comparisons import FLASH, comparison, five, hostile, quantity, side
from tests.support.golden import check_golden

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def screen(result: Comparison, width: int | None = None) -> str:
    text = io.StringIO()
    print_comparison(result, console(text, width))
    return ESCAPE.sub("", text.getvalue())


def one_run(**changes: Any) -> Comparison:
    """One run a side, whose steps stand in for the spread."""
    step = quantity("step", [41.2], [41.5], section="step", ratio_low=0.98, ratio_high=1.03)
    made = {
        "before": side("before", [41.2], 20),
        "after": side("after", [41.5], 18),
        "step": replace(step, runs_needed=6),
        "spread": "steps",
        "gate": None,
        "parts": (quantity("compute", [41.2], [41.5], section="time"),),
    }
    return comparison(**(made | changes))


@pytest.mark.parametrize("columns", [80, 160])
def test_the_screen(columns: int) -> None:
    """Rows without change are counted, not shown; of the parts only those that take time."""
    shown = screen(comparison(), columns)
    check_golden(f"comparison_{columns}.txt", shown)
    assert max(map(display_width, shown.splitlines())) <= columns
    assert "flash_fwd_kernel" in screen(comparison())  # piped: names are whole
    assert "and 16 more rows" in screen(comparison().cut(3), columns)


@pytest.mark.parametrize("columns", [60, 80, 240])
def test_hostile_names_stay_in_their_cells(columns: int) -> None:
    shown = screen(hostile(), columns)
    assert not CONTROL.search(shown)
    lines = [line for line in shown.splitlines() if "nsightpy kernels" not in line]
    assert max(map(display_width, lines)) <= columns
    shown.encode()


def test_one_run_a_side_says_what_its_interval_is() -> None:
    shown = " ".join(screen(one_run(), 80).split())
    assert "Cannot tell whether the step changed: 41.2 -> 41.5 ms, +0.7 %" in shown
    assert "over the steps of one run a side (the runs' own spread is not covered)" in shown
    assert "6 runs a side would tell" in shown
    assert "p =" not in shown
    bare = replace(one_run(), spread="nothing", step=quantity("step", [4.0], [5.0], section="step"))
    assert "one value a side, so no interval" in screen(bare, 80)
    assert "The window (no steps found) is slower" in screen(comparison(unit="window"), 80)


def test_noise_is_an_answer_of_its_own() -> None:
    made = comparison(noise=NoiseFloor(0.0213, 612_345, 10), gate=None)
    shown = screen(made, 80)
    assert "2.1 % and 612 us, from 10 runs" in " ".join(shown.split())
    assert "--gate 2.2% --gate-ns 612.4us" in shown
    assert "Answer" not in shown
    assert b"--gate-ns" in comparison_markdown(made)


def test_figures_of_ncu_stand_beside_the_change() -> None:
    sol = (("sol_compute_pct", 41.5, 62.25), ("roof_fraction", None, 0.5))
    made = comparison(unit="launch", kernels=(quantity("k", [1.0], [0.7], figures=sol),))
    for figures in ("41.5 -> 62.2", "- -> 0.500"):
        assert figures in screen(made, 160)


def test_the_comment() -> None:
    check_golden("comparison.md", comparison_markdown(comparison()).decode())
    text = comparison_markdown(hostile()).decode()
    assert not CONTROL.search(text)
    tags = set(re.findall(r"<[^>]*>", text))
    assert tags == {"<code>", "</code>", "<details>", "</details>", "<summary>", "</summary>"}
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in tables} <= {3, 7, 8, 9, 10}
    assert code("@all #1 $x$ ![a](b) http://c") == (
        "<code>&#64;all &#35;1 &#36;x&#36; &#33;&#91;a&#93;&#40;b&#41; http&#58;//c</code>"
    )
    assert "@<!-- -->all" in comparison_markdown(comparison(notes=("@all",))).decode()


HELD = GateOutcome(Limits(), "step", False, "same", False, "x")
UNSURE = replace(HELD, verdict="cannot tell", reason="too few runs")


@pytest.mark.parametrize(
    ("gate", "failures", "skipped"),
    [
        (comparison().gate, 1, 0),
        (HELD, 0, 0),
        (UNSURE, 0, 1),
        (replace(UNSURE, strict=True, failed=True), 1, 0),
        (None, 0, 1),
    ],
    ids=["failed", "held", "cannot tell", "strict", "no gate"],
)
def test_the_test_report(gate: GateOutcome | None, failures: int, skipped: int) -> None:
    suites = ET.fromstring(comparison_junit(comparison(gate=gate)))
    (suite,) = suites
    assert suites.tag == "testsuites"
    wanted = {"tests": "1", "errors": "0", "failures": f"{failures}", "skipped": f"{skipped}"}
    assert wanted.items() <= suite.attrib.items()
    (found,) = suite.findall("testcase")
    assert found.get("name") == "step"
    assert [len(found.findall(tag)) for tag in ("failure", "skipped")] == [failures, skipped]


def test_the_case_is_what_is_under_the_gate_and_names_do_no_harm() -> None:
    made = comparison(gate=GateOutcome(Limits(), FLASH.format(causal=1), False, "slower", True, ""))
    (case,) = ET.fromstring(comparison_junit(made)).iter("testcase")
    assert case.get("name") == FLASH.format(causal=1)
    data = comparison_junit(hostile())
    (case,) = ET.fromstring(data).iter("testcase")
    everything = "".join(ET.fromstring(data).itertext()) + str(case.attrib)
    assert not CONTROL.search(everything)
    assert "<script>" in (case.get("name") or "")
    assert b"<script" not in data


def test_the_waterfall_adds_up() -> None:
    made = comparison()
    bars = waterfall(made)
    assert (bars[0].end, bars[-1].end) == (made.step.before_ns, made.step.after_ns)
    assert sum(bar.delta for bar in bars[1:-1]) == made.step.delta_ns
    for one, following in pairwise(bars[:-1]):
        assert following.start == one.end
    bare = waterfall(replace(made, parts=()))
    assert bare[1].name == FLASH.format(causal=1)
    assert bare[-2].name == "all others"


def test_pictures() -> None:
    data = picture_bytes(comparison_figure(hostile()), "x.svg").decode()
    assert not [one for one in ET.fromstring(data).iter() if one.tag.endswith("script")]
    assert not CONTROL.search(data)
    for made in (
        one_run(),
        comparison(step=quantity("step", [44.0, 44.1], [41.0, 41.1], section="step")),
        comparison(step=quantity("step", five(1e-3), five(4e-3), section="step"), parts=()),
    ):
        figure = comparison_figure(made)
        assert len(figure.axes) == 2
        assert all(low < high for low, high in (axes.get_xlim() for axes in figure.axes))
    same = comparison(
        step=quantity("step", five(41.2), five(41.203), section="step"),
        parts=(quantity("compute", five(41.2), five(41.203), section="time"),),
    )
    bars, _ = comparison_figure(same).axes
    assert [bar.name for bar in waterfall(same)] == ["before", "after"]
    assert bars.get_xlim()[0] == 0
    with pytest.raises(NsightpyError, match="steps of both sides to draw"):
        comparison_figure(comparison(step=quantity("step", [1.0], [], section="step")))


def test_the_document_says_what_rows_do_not() -> None:
    document = document_of(comparison())
    assert document["schema"] == "nsightpy.compare/1"
    assert list(document["rows"][0]) == [field.name for field in COMPARE_FIELDS]
    assert document["gate"]["failed"] is True
    (differs,) = document["circumstances"]
    assert differs == {"name": "clocks", "before": "1980 MHz", "after": "1755 MHz"}
    document_of(hostile())
