"""The timeline's arithmetic: levels, lanes on one clock, and pictures that lose nothing."""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from simulator.presets import PRESETS

import nsightpy
from nsightpy.analysis.intervals import union
from nsightpy.analysis.timeline.lanes import by_start, is_nested, levels_of
from nsightpy.analysis.timeline.picture import picture
from nsightpy.render.timeline.plot import caption, draw
from nsightpy.results.tracks import COMMUNICATION, COMPUTE, RANGES, STREAM
from tests.support.reports import DDP, NSYS, needs_reports, refused
from tests.support.samples import TRAINING
from tests.support.timelines import lane_of, timeline_of

SINGLE = str(TRAINING / "train_rank0.sqlite")
intervals = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=40)


def arrays(found: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.asarray([start for start, _ in found], dtype=np.int64)
    ends = starts + np.asarray([length for _, length in found], dtype=np.int64)
    order = by_start(starts, ends)
    return starts[order], ends[order]


@given(intervals)
def test_events_of_one_level_never_overlap_and_nested_ones_have_a_parent(
    found: list[tuple[int, int]],
) -> None:
    starts, ends = arrays(found)
    levels = levels_of(starts, ends)
    for level in range(int(levels.max(initial=-1)) + 1):
        own = levels == level
        assert own.any()
        assert (starts[own][1:] >= ends[own][:-1]).all()
    if is_nested(starts, ends, levels):
        for start, end, level in zip(starts, ends, levels, strict=True):
            around = (levels == level - 1) & (starts <= start) & (ends >= end)
            assert level == 0 or around.any()


def test_proper_nesting_gives_call_depth() -> None:
    starts, ends = arrays([(0, 100), (10, 30), (15, 5), (50, 40), (100, 10)])
    levels = levels_of(starts, ends)
    assert levels.tolist() == [0, 1, 2, 1, 0]
    assert is_nested(starts, ends, levels)


@given(intervals, st.integers(1, 50))
def test_columns_add_up_to_the_time_of_the_union(
    found: list[tuple[int, int]], columns: int
) -> None:
    starts, ends = arrays(found)
    made = picture(timeline_of(100, lane_of(starts.tolist(), ends.tolist())), columns)
    bands = {band.kind: band for band in made.rows[0].bands}
    band, boxes = bands["compute"], bands["compute"].boxes
    alone = 0 if boxes is None else union(boxes.starts, boxes.ends).total
    widths = np.diff(np.rint(np.arange(columns + 1) / columns * 100))
    assert band.shares @ np.maximum(widths, 1) + alone == pytest.approx(union(starts, ends).total)
    assert band.events == len(starts[(ends > 0) & (starts < 100)])
    assert bands["idle"].shares @ widths == pytest.approx(100 - union(starts, ends).total)


def test_a_tiny_event_is_seen_and_events_at_the_edges_are_clipped() -> None:
    tiny = lane_of([500_000_000, 500_000_010], [500_000_001, 500_000_012])
    made = picture(timeline_of(1_000_000_000, tiny), 100)
    (band,) = [band for band in made.rows[0].bands if band.kind == "compute"]
    assert np.flatnonzero(band.shares).tolist() == [50]
    assert band.events == 2
    assert "2 events" in " ".join(caption(made))
    made = picture(timeline_of(100, lane_of([0, 90], [20, 200]), start=10), 90)
    idle = made.rows[0].bands[-1]
    assert idle.shares.mean() == pytest.approx(70 / 90)


def test_many_rows_are_stacked_and_exclude_each_other() -> None:
    lanes = (
        lane_of([0, 50], [40, 60]),
        lane_of([30], [70], category=COMMUNICATION),
        lane_of([0], [100], kind=RANGES),
    )
    made = picture(timeline_of(100, *lanes, ranks=9), 10)
    assert made.stacked
    kinds = {band.kind: band.shares for band in made.rows[0].bands}
    assert kinds["compute"].sum() == pytest.approx(5.0)
    assert kinds["communication"].sum() == pytest.approx(2.0)
    assert (sum(kinds.values()) <= 1).all()


def test_hostile_names_are_drawn_as_text() -> None:
    names, starts = ["$\\frac{1}{0}$", "\x1b[31mred", "汉字\u202e", "<script>"], range(0, 400, 100)
    lane = lane_of(starts, [start + 90 for start in starts], names)
    draw(picture(timeline_of(400, lane), 400)).canvas.draw()


def test_the_window_is_where_the_ranks_worked_on_one_clock() -> None:
    made = nsightpy.timeline(str(TRAINING))
    assert [p.label for p in made.owners] == [f"rank {n} · GPU {n % 2}" for n in range(4)]
    streams = [track.lanes_of(STREAM) for track in made]
    starts = [min(int(lane.starts.min()) for lane in lanes) for lanes in streams]
    ends = [max(int(lane.ends.max()) for lane in lanes) for lanes in streams]
    assert (min(starts), max(ends)) == (made.start_ns, made.end_ns)
    # node 1's clock is 3.4 ms off: once aligned all ranks end within a tenth of that
    assert max(ends) - min(ends) < 300_000
    assert "aligned by the ends of" in made.clock


def test_scope_and_window() -> None:
    made = nsightpy.timeline(str(TRAINING), rank="1,3", from_time="560ms", to_time="570ms")
    assert [p.rank for p in made.owners] == [1, 3]
    assert (made.start_ns, made.end_ns) == (560_000_000, 570_000_000)
    for lane in (lane for track in made for lane in track.lanes):
        assert ((lane.ends > made.start_ns) & (lane.starts < made.end_ns)).all()
    made = nsightpy.timeline(str(TRAINING), iteration=4)
    found = nsightpy.iterations(SINGLE).records()[4]
    start, duration = int(found["start_ns"] or 0), int(found["duration_ns"] or 0)
    assert made.start_ns <= start < start + duration <= made.end_ns
    assert made.end_ns - made.start_ns < 1.3 * duration


@pytest.mark.slow
def test_a_report_that_fails_leaves_the_others_drawn(tmp_path: Path) -> None:
    paths, _ = PRESETS["pipeline_4"].write(tmp_path)
    with closing(sqlite3.connect(paths[0])) as export, export:
        export.execute("UPDATE NVTX_EVENTS SET textId = 'seven' WHERE eventType = 59")
    made = picture(nsightpy.timeline(tmp_path))
    assert len(made.rows) == 3
    assert made.joins
    draw(made)


def test_the_critical_path_is_marked_on_whom_it_runs_over() -> None:
    made = nsightpy.timeline(str(TRAINING))
    whole, *legs = made.path()
    assert whole.text == nsightpy.summarize(str(TRAINING)).header["critical_path"]
    # one after the other, from the first steady iteration to the end of the last one
    ends = [leg.end_ns for leg in legs]
    assert [leg.start_ns for leg in legs] == [whole.start_ns, *ends[:-1]]
    steady = [r for r in nsightpy.iterations(str(TRAINING)).records() if r["phase"] == "steady"]
    first = min(int(row["start_ns"] or 0) for row in steady)
    last = max(int(row["start_ns"] or 0) + int(row["duration_ns"] or 0) for row in steady)
    assert (whole.start_ns, whole.end_ns) == (pytest.approx(first, abs=1e5), ends[-1])
    assert ends[-1] == pytest.approx(last, abs=1e6)
    # two of the three others wait for the straggler all the time
    long = [leg for leg in legs if leg.owner is not None and leg.owner.rank == 2]
    assert sum((leg.end_ns or 0) - (leg.start_ns or 0) for leg in long) > 0.9 * (last - first)
    assert made.picture is not None
    assert made.picture(100).path == (whole, *legs)
    assert set(made.path()) <= set(made.marks())


def test_one_report_of_two_ranks_has_a_track_for_each(tmp_path: Path) -> None:
    PRESETS["one_report_2rank"].write(tmp_path)
    made = nsightpy.timeline(tmp_path)
    assert [p.rank for p in made.owners] == [0, 1]
    for track in made:
        assert track.lanes_of(RANGES)
        assert all(one.launch_tid is not None for one in track.lanes_of(STREAM))


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ("-o t.png --iteration 99", 1, "iteration"),
        ("-o t.png --iteration 1 --from 1ms", 2, "iteration"),
        ("-o t.png --rank 9", 1, "--rank"),
        *((output, 2, ".html, ") for output in ("", "-o x.doc", "-o -", "-o html")),
    ],
)
def test_what_is_refused(
    more: str, code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused("timeline", TRAINING, *more.split(), code=code)
    assert not list(tmp_path.iterdir())


@needs_reports
def test_crossing_streams_of_a_real_capture_keep_all_events() -> None:
    made = nsightpy.timeline(NSYS / DDP)
    streams = (lane for track in made for lane in track.lanes_of(STREAM))
    kinds = np.concatenate([lane.categories for lane in streams])
    assert np.isin(kinds, (COMPUTE, COMMUNICATION)).sum() == 4652
