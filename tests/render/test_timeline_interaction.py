"""What people do on the page: totals of a stretch, launches, hits, counters, marks, addresses."""

from collections import Counter as Tally
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulator.export import Export

import nsightpy
from nsightpy.results.tracks import STREAM
from tests.support.browser import Browser, find_chromium, settled
from tests.support.reports import ask
from tests.support.samples import TRAINING

START, END = 552_000_000, 566_000_000
VIEW = "[view.start, view.end]"
pytestmark = pytest.mark.skipif(find_chromium() is None, reason="no Chromium here")


def top_of(page: Browser) -> float:
    return float(page.run("$('canvas').getBoundingClientRect().top"))


def test_a_stretch_has_the_exact_time_of_each_name_stream_and_rank(
    training: Path, chromium: Browser
) -> None:
    clipped: Tally[str] = Tally()
    events: Tally[str] = Tally()
    for track in nsightpy.timeline(str(TRAINING)):
        for lane in track.lanes_of(STREAM):
            inside = np.minimum(lane.ends, END) - np.maximum(lane.starts, START)
            for row in np.flatnonzero((lane.ends > START) & (lane.starts < END)).tolist():
                clipped[lane.names[row]] += int(inside[row])
                events[lane.names[row]] += 1
    chromium.open(training, f"#stretch={START}-{END}")
    found = chromium.run(
        f"(() => {{ const all = totalsByName('stream', {{start: {START}, end: {END}}});"
        " return head.names.map((name, k) => [name, all.time[k], all.count[k]])"
        ".filter((one) => one[2]); })()"
    )
    assert sorted(found) == sorted([name, ns, events[name]] for name, ns in clipped.items())
    most = chromium.run("$('totals').querySelector('tbody tr').cells[0].title")
    assert most == clipped.most_common(1)[0][0]
    chromium.run(
        "[...$('totals').querySelectorAll('button')]"
        ".find((one) => one.textContent === 'ranks').click()"
    )
    table = chromium.run("$('totals').innerText")
    assert "communication alone" in table
    assert "rank 2 · GPU 0" in table
    budgets = nsightpy.breakdown(str(TRAINING), from_time=START, to_time=END).records()
    busy = chromium.run(
        "state.tracks.map((track) => track.strips.reduce((sum, { set }) => sum"
        f" + before(set, {END}) - before(set, {START}), 0))"
    )
    assert busy == pytest.approx([row["busy_ns"] for row in budgets], abs=3)


def test_dragging_on_the_ruler_chooses_a_stretch_and_esc_drops_it(
    training: Path, chromium: Browser
) -> None:
    chromium.open(training)
    ruler = top_of(chromium) + 8
    view = chromium.run(VIEW)
    chromium.drag((500, ruler), (700, ruler))
    assert chromium.run(VIEW) == view
    chosen = chromium.run("[state.stretch.start, state.stretch.end]")
    assert chosen == pytest.approx(chromium.run("[timeAt(500), timeAt(700)]"), abs=1)
    assert chromium.run("paneOpen()") == "totals"
    chromium.press("z")
    assert chromium.run(VIEW) == pytest.approx(chosen)
    chromium.press("Escape")
    assert chromium.run("[state.stretch, $('panel').hidden]") == [None, True]
    chromium.drag((500, ruler + 200), (600, ruler + 300), modifiers=8)
    assert chromium.run("state.stretch.end > state.stretch.start")


def test_from_a_kernel_to_its_launch_and_back(training: Path, chromium: Browser) -> None:
    """The call whose correlation id the kernel has, as the report joins them."""
    report = nsightpy.open_report(TRAINING / "train_rank0.sqlite")
    kernels = list(report.frame("kernels").tuples("start_ns", "stream", "correlation_id"))
    started = dict(report.frame("api_calls").tuples("correlation_id", "start_ns"))
    shown = "[state.chosen.lane.kind, state.chosen.lane.start[state.chosen.row]]"
    chromium.open(training)
    for start, stream, correlation in (kernels[0], kernels[500], kernels[-1]):
        chromium.run(
            "(() => { const track = state.tracks[0], lane = track.lanes.find((one) =>"
            f" one.label === 'stream {stream}'); choose({{ track, lane,"
            f" row: lane.start.indexOf({start}) }}); }})()"
        )
        for expected in (["calls", started[correlation]], ["stream", start]):
            chromium.press("l")
            assert chromium.run(shown) == expected
    chromium.press("b")
    ends = chromium.run("[state.chosen, ...state.links].map(({ lane, row }) => lane.start[row])")
    low, high = chromium.run(VIEW)
    assert low < min(ends) < max(ends) < high


def test_hits_are_listed_and_numbered(training: Path, chromium: Browser) -> None:
    chromium.open(training)
    chromium.press("/", *"reduce")
    hits = chromium.run("state.hits")
    assert chromium.run("$('hits').textContent") == f"{hits:,} hits"
    chromium.press("Enter", "Enter", "Enter", "ArrowDown", "ArrowUp")
    assert chromium.run("$('hits').textContent") == f"3 of {hits:,}"
    here = "$('found').querySelector('tr.here').cells[0].textContent"
    assert chromium.run(here) == "3"
    rows = "[...$('found').querySelectorAll('tbody tr')]"
    times = chromium.run(f"{rows}.map((row) => parseFloat(row.cells[1].textContent))")
    assert len(times) == 80
    assert times == sorted(times)
    chromium.run(f"{rows}[60].click()")
    assert chromium.run("numberOf(state.cursor)") == 61
    chromium.run("Array.from({ length: 30 }, () => jump(true)).length")  # the list moves along
    assert chromium.run(here) == "91"


def test_the_address_restores_the_view(training: Path, chromium: Browser) -> None:
    chromium.open(training)
    chromium.run(
        "(show(560000000, 570000000), setStretch({ start: 561000000, end: 562000000 }),"
        " choose({ track: state.tracks[1], lane: state.tracks[1].lanes[2], row: 7 }))"
    )
    settled(chromium, "location.hash.includes('sel=1.2.7')")
    facts = "[view.start, view.end, state.stretch, facts().chosen, state.chosen.row]"
    address, before = chromium.run("location.hash"), chromium.run(facts)
    chromium.open(training, address)
    assert chromium.run(facts) == before
    chromium.open(training, "#t=560000000-570000000")
    assert chromium.run(VIEW) == [560_000_000, 570_000_000]
    chromium.open(training, "#fold=all&theme=dark")
    assert chromium.run("[state.rows.length, document.documentElement.dataset.theme]") == [
        4,
        "dark",
    ]
    chromium.open(training, "#t=560000000-570000000")
    # the address is written once the view rests, not at every step
    chromium.run("(window.written = 0, history.replaceState = () => { window.written++; })")
    chromium.run(
        "new Promise((done) => { let n = 0; const step = () => { pan(0.01);"
        " draw(); if (++n < 50) setTimeout(step, 5); else setTimeout(done, 600); }; step(); })"
    )
    assert chromium.run("window.written") == 1


def test_iterations_and_findings_are_marks(training: Path, chromium: Browser) -> None:
    chromium.open(training)
    iterations = nsightpy.iterations(str(TRAINING)).records()
    findings = nsightpy.findings(str(TRAINING)).records()
    marks: Any = chromium.run("Object.groupBy(head.marks, (mark) => mark.kind)")
    for number, mark in enumerate(marks["iteration"]):
        own = [row for row in iterations if row["iteration"] == number]
        assert mark["start"] == min(row["start_ns"] for row in own)
        assert mark["end"] == max(row["start_ns"] + row["duration_ns"] for row in own)
    assert [(flag["label"], flag["start"]) for flag in marks["finding"]] == [
        (row["finding"], row["start_ns"]) for row in findings
    ]
    listed = chromium.run("LISTED.map((mark) => mark.label)")
    assert listed.count("critical path") == 1
    assert len(listed) == len(findings) + len(marks["iteration"]) + 1
    gap = next(k for k, row in enumerate(findings) if row["id"] == "host-gap")
    chromium.run(f"($('marks-button').click(), $('marks').querySelectorAll('li')[{gap}].click())")
    low, high = chromium.run(VIEW)
    start, length = int(findings[gap]["start_ns"]), int(findings[gap]["duration_ns"])  # type: ignore[arg-type]
    assert low < start < start + length < high
    chromium.press(".")
    assert chromium.run("state.flag.start") > start
    x, y, label = chromium.run(
        "(draw(), [xOf(state.flag.start) + 1, $('canvas').getBoundingClientRect().top + 30,"
        " state.flag.label])"
    )
    chromium.run("(setStretch(null), state.flag = null)")
    chromium.drag((x, y), (x, y))
    assert chromium.run("state.flag.label") == label


def touch(page: Browser, kind: str, *points: tuple[float, float]) -> None:
    found = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
    page.call("Input.dispatchTouchEvent", type=kind, touchPoints=found)


def test_two_fingers_zoom_about_what_lies_between_them(training: Path, chromium: Browser) -> None:
    chromium.open(training, "#t=560000000-570000000")
    y = top_of(chromium) + 120
    times = chromium.run("[timeAt(600), timeAt(800)]")
    touch(chromium, "touchStart", (600, y), (800, y))
    touch(chromium, "touchMove", (550, y), (800, y))
    touch(chromium, "touchMove", (500, y), (900, y))
    settled(chromium, "view.end - view.start < 5.01e6")
    # what was under the fingers still is
    assert chromium.run("[timeAt(500), timeAt(900)]") == pytest.approx(times, abs=1e3)
    touch(chromium, "touchEnd", (500, y))
    assert chromium.run("state.chosen") is None  # no finger that is lifted chooses an event
    touch(chromium, "touchEnd")
    start, end = chromium.run(VIEW)
    touch(chromium, "touchStart", (700, y))
    touch(chromium, "touchMove", (600, y))
    touch(chromium, "touchEnd")
    moved = chromium.run(VIEW)
    assert moved[0] > start
    assert moved[1] - moved[0] == pytest.approx(end - start)


def test_counters_are_memory_metrics_and_the_queue(tmp_path: Path, chromium: Browser) -> None:
    export = Export(tmp_path / "job.sqlite")
    export.gpu(0)
    for k in range(10):
        export.gpu_metric(1_000 + 1_000 * k, "SM Active [Throughput %]", 10 * k)
        export.gpu_metric(1_000 + 1_000 * k, "DRAM Read Bandwidth [Throughput %]", 5)
        export.gpu_metric(1_000 + 1_000 * k, "PCIe RX Requests", 7)
    export.kernel(2_000, 4_000, "first", launch=(500, 600))
    export.kernel(4_500, 9_000, "second", launch=(700, 800))
    export.memory_usage(900, 4_000_000, address=1)
    export.memory_usage(3_000, 1_000_000, address=2)
    export.memory_usage(5_000, 4_000_000, "free", address=1)
    page = tmp_path / "page.html"
    ask("timeline", export.write(), "-o", page)
    said = len(chromium.messages)
    facts = chromium.open(page)
    assert facts["counters"] == [
        ["Device memory, live", "DRAM Read Bandwidth", "SM Active", "queue: launched, not begun"]
    ]
    # of each the mean between times; kernels are launched at 500 and 700, begun at 2000 and 4500
    for counter, (times, means) in enumerate(
        [
            ([1_000, 3_000, 5_000, 9_000], [4_000_000, 5_000_000, 1_000_000]),
            ([2_500, 3_500], [5]),
            ([1_000, 2_000, 3_000], [0, 10]),
            ([500, 700, 2_000, 4_500, 9_000], [1, 2, 1, 0]),
        ]
    ):
        points = f"pointsIn(state.tracks[0].counters[{counter}])"
        sums = chromium.run(f"{times}.map((time) => sumUntil({points}, time))")
        assert (np.diff(sums) / np.diff(times)).tolist() == means
    assert chromium.run(f"highestIn({points}, 0, 9000)") == 2
    assert chromium.messages[said:] == []
