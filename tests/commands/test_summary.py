"""The summary says what its figures are shares of, and what the capture does not show."""

import io
from pathlib import Path

import pytest
from simulator import Export

import nsightpy
from nsightpy.render.text.summary import MOST_LINES, print_summary
from nsightpy.render.text.terminal import console
from tests.support.reports import NSYS, ask, exports, findings_of, needs_reports
from tests.support.trace_events import event, written

US, MS = 1_000, 1_000_000


@pytest.mark.parametrize(
    ("duration", "said"),
    [
        (5 * MS, None),
        (8 * MS, "no GPU work in the other 4.00 ms, 50 % of the capture"),
        (20_000 * MS, "no GPU work in the other 20.0 s, 99.9 % of the capture"),
    ],
)
def test_how_much_the_windows_are(duration: int, said: str | None, tmp_path: Path) -> None:
    export = Export(tmp_path / "report.sqlite", duration_ns=duration)
    start = 450 * US if said is None else MS
    export.kernel(start, 2 * MS, "a", launch=(10, 20))
    export.kernel(3 * MS, 5 * MS, "b", launch=(30, 40))
    path = export.write()
    shown = ask("summarize", path).text
    assert (said is None) == ("no GPU work" not in shown)
    if said:
        assert said in shown
        assert "no GPU work" not in ask("summarize", path, "--from", "0").text
    outside = ask("summarize", path, "--format", "json").json["header"]["outside_ns"]
    assert outside == duration - (5 * MS - start)


def test_a_stretch_without_gpu_work_has_no_bars(tmp_path: Path) -> None:
    export = Export(tmp_path / "report.sqlite")
    export.kernel(MS, 2 * MS, "a", launch=(10, 20))
    shown = ask("summarize", export.write(), "--from", "1s").text
    assert "What was asked for holds no GPU time." in shown
    assert "Where the device time went" not in shown


def test_what_stands_out_is_what_matters(tmp_path: Path) -> None:
    """Launches come late; the kernels' grids are small, and nothing repeats: both matter little."""
    export = Export(tmp_path / "report.sqlite")
    export.gpu()
    export.cuda_device(process=export.process())
    for place, start in enumerate(range(MS, 21 * MS, MS)):
        export.kernel(start, start + 50 * US, f"k{place}", launch=(start - 10 * US, start - 5 * US))
    path = export.write()
    assert {"small-grid", "no-steady-state"} < set(findings_of(path))
    shown = ask("summarize", path).text
    assert "Steps    fewer than three steps that repeat were found, so no step" in shown
    said = shown[shown.index("What stands out") :]
    assert said.count("  ! ") == 1
    assert "launch-bound" in said
    assert "more: nsightpy findings" in said


@exports
def test_everything_is_on_one_screen(path: Path) -> None:
    for columns in (80, 160):
        out = io.StringIO()
        print_summary(nsightpy.summarize(path), console(out, columns))
        assert len(out.getvalue().splitlines()) <= MOST_LINES


def test_what_takes_no_time_is_not_named(tmp_path: Path) -> None:
    export = Export(tmp_path / "report.sqlite")
    export.kernel(MS, 5 * MS, "a", launch=(10, 20))
    export.memcpy(6 * MS, 6 * MS + 10 * US, 1000)
    for number, end in enumerate((9 * MS, 8 * MS, 2 * MS, MS + 600 * US)):
        export.nvtx_push_pop(MS, end, f"range {number}")
    shown = ask("summarize", export.write()).text
    (bar,) = [line for line in shown.splitlines() if "idle" in line and "█" in line]
    assert "comm" not in bar
    assert "memcpy" not in shown
    assert "range 2" in shown
    assert "range 3" not in shown
    assert shown.count("Next") == 1


@needs_reports
def test_what_is_in_graphs_that_nobody_knows_is_no_compute() -> None:
    shown = ask("summarize", NSYS / "cudagraph_a100_2024.6.sqlite").text
    assert "░░░░░░░░░░░░ compute  0%  graphs 100%  idle  0%\n" in shown
    first = shown[shown.index("What stands out") :].splitlines()[1]
    assert first.startswith("  ! opaque CUDA graphs: 7.81 s, 99.9 % of the window")


def test_a_trace_without_gpu_work_says_so_and_what_to_do(tmp_path: Path) -> None:
    rows = findings_of(written([event("cpu_op", "aten::add", 0, 5)], tmp_path), use_cache=False)
    assert list(rows) == ["no-gpu-work"]
    assert "ProfilerActivity.CUDA" in rows["no-gpu-work"]["evidence"]
