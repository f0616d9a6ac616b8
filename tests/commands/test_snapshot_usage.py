"""memory-usage on memory snapshots: simulations with known truth, and real ones counted plainly."""

import copy
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulator import Export
from simulator.memory import (
    EARLIER,
    LEAK,
    NO_STACK,
    Allocator,
    Training,
    frame,
    snapshot,
    truth,
    write_snapshot,
)

import nsightpy
from nsightpy.analysis.memory.allocation_places import places
from nsightpy.errors import MissingDataError, NsightpyError, ReportError, UsageError
from nsightpy.frames import Frame, Labels
from nsightpy.render.plots.memory_plot import memory_figure
from tests.support.reports import REPORTS

REAL = REPORTS / "torch_memory"
real_snapshots = pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem) for path in sorted(REAL.glob("*.pickle"))]
    or [pytest.param(None, marks=pytest.mark.skip(reason="not here"), id="none")],
)
Rows = dict[str, dict[str, Any]]


def usage_of(path: Path, whole: object, **options: Any) -> Any:
    """What memory-usage says of a pickle of this."""
    path.write_bytes(pickle.dumps(whole))
    return nsightpy.memory_usage(path, **options)


def by_place(table: Any, device: int = 0) -> Rows:
    return {str(row["allocated_by"]): row for row in table.records() if row["device"] == device}


def held(rows: Rows, column: str) -> dict[str, int]:
    return {name: row[column] for name, row in sorted(rows.items()) if row[column]}


@pytest.mark.parametrize("most", [1_000_000, 150, 61, 20, 1])
def test_the_simulated_run_has_the_peak_that_was_counted(most: int, tmp_path: Path) -> None:
    """However much of the beginning the ring buffer has lost."""
    memory = Training(most=most).run()
    expected, rows = truth(memory), by_place(usage_of(tmp_path / "a.pickle", snapshot([memory])))
    for row in rows.values():
        assert {name: row[name] for name in ("peak_bytes", "peak_ns", "left_bytes")} == {
            name: expected[name] for name in ("peak_bytes", "peak_ns", "left_bytes")
        }
    assert sum(row["at_peak_bytes"] for row in rows.values()) == expected["peak_bytes"]
    # an allocation without a stack is one from before, once its event is lost
    found, known = (Counter(end) for end in (held(rows, "at_end_bytes"), expected["at_end"]))
    unknown = [end.pop(EARLIER, 0) + end.pop(NO_STACK, 0) for end in (found, known)]
    assert (found, unknown[0]) == (known, unknown[1])
    if most >= len(memory.events):
        assert held(rows, "at_peak_bytes") == expected["at_peak"]


def test_iterations_and_what_they_leave(tmp_path: Path) -> None:
    table = usage_of(tmp_path / "a.pickle", snapshot([Training(6).run()]))
    left = {(one.left_bytes, one.grown_at, one.grown_bytes) for one in table.iterations}
    assert (len(table.iterations), left) == (5, {(LEAK, "trainer/log.py:9 keep", LEAK)})
    assert max(one.peak_bytes for one in table.iterations) == table.records()[0]["peak_bytes"]
    assert any("5 iterations" in note and "3.00 MB are left behind" in note for note in table.notes)


def test_steps_of_the_profiler_come_before_those_of_the_optimizer(tmp_path: Path) -> None:
    memory = Allocator(recording=True)
    for number in range(3):
        memory.annotate(f"ProfilerStep#{number}", "START")
        kept = memory.alloc(1000 * (number + 1), "a.py:1 f", [frame("/x/a.py", 1, "f")])
        memory.free(kept) if number == 1 else None
        memory.annotate("Optimizer.step#SGD.step", "START")
        memory.annotate("Optimizer.step#SGD.step", "END")
        memory.annotate(f"ProfilerStep#{number}", "END")
    memory.annotate("ProfilerStep#3", "START")
    memory.alloc(1, "")
    table = nsightpy.memory_usage(write_snapshot(tmp_path / "a.pickle", [memory]))
    # the first begins before the first event, the last never ends
    assert [one.left_bytes for one in table.iterations] == [0, 3000]


def test_devices_out_of_memory_and_what_was_reserved(tmp_path: Path) -> None:
    memories = [Training(fails=True).run(), Training(2).run(1)]
    path = write_snapshot(tmp_path / "job_rank3.pickle", memories)
    table = nsightpy.memory_usage(path)
    notes = " ".join(table.notes)
    for device, memory in enumerate(memories):
        rows = by_place(table, device)
        assert held(rows, "at_peak_bytes") == truth(memory)["at_peak"]
        assert {row["rank"] for row in rows.values()} == {3}
    assert "Device 0 ran out of memory 1 time, first at 1.58 ms: 68.7 GB were asked for" in notes
    assert "the device had 12.3 MB free" in notes
    blocks = [block for held_blocks in memories[1].segments for block in held_blocks]
    free = [block.size for block in blocks if block.place is None]
    used = sum(block.requested for block in blocks if block.place)
    assert f"{len(free)} pieces, the largest {max(free) / 1e6:.1f} MB" in notes
    assert f"{used / 1e6:.1f} MB allocated" in notes
    only = nsightpy.memory_usage(path, device=1, rank=3, top=2)
    assert [row["device"] for row in only.records()] == [1, 1]


def test_a_stretch_of_time(tmp_path: Path) -> None:
    memory = Training().run()
    start, (first, last) = memory.events[0]["time_us"], (100, 160)
    low, high = ((memory.states[k].time_us - start) * 1000 for k in (first, last))
    whole = snapshot([memory])
    table = usage_of(tmp_path / "a.pickle", whole, from_time=low, to_time=high)
    inside = [state.total for state in memory.states[first - 1 : last + 1]]
    row = table.records()[0]
    assert (row["peak_bytes"], row["left_bytes"]) == (max(inside), inside[-1])
    assert held(by_place(table), "at_end_bytes") == dict(sorted(memory.states[last].live.items()))


def test_old_snapshots(tmp_path: Path) -> None:
    """Before torch 2.1: no times, the stack and the size in a block's history, no addresses."""
    memory = Training().run()
    whole = copy.deepcopy(snapshot([memory]))
    for block in (block for segment in whole["segments"] for block in segment["blocks"]):
        del block["address"]
        frames, real = block.pop("frames"), block.pop("requested_size")
        if block["state"] != "inactive":
            block["history"] = [{"addr": 1, "real_size": real, "frames": frames}]
    for event in whole["device_traces"][0]:
        del event["time_us"]
    del whole["external_annotations"], whole["allocator_settings"]
    table = usage_of(tmp_path / "old.pickle", whole)
    assert held(by_place(table), "at_peak_bytes") == truth(memory)["at_peak"]
    assert held(by_place(table), "at_end_bytes") == truth(memory)["at_end"]
    assert {row["peak_ns"] for row in table.records()} == {None}
    assert "events" in memory_figure(table).axes[0].get_xlabel()
    with pytest.raises(MissingDataError, match="no times"):
        nsightpy.memory_usage(tmp_path / "old.pickle", from_time=5)


@pytest.mark.parametrize("traces", [{}, {"device_traces": [[]]}, {"device_traces": None}])
def test_without_a_history_the_dump_is_shown(traces: dict[str, object], tmp_path: Path) -> None:
    memory = Training().run()
    whole = {name: part for name, part in snapshot([memory]).items() if name != "device_traces"}
    table = usage_of(tmp_path / "a.pickle", whole | traces)
    rows = by_place(table)
    assert {row["peak_bytes"] for row in rows.values()} == {truth(memory)["left_bytes"]}
    # stacks of blocks are known, whether or not the events are
    assert rows["trainer/log.py:9 keep"]["at_end_bytes"] == 4 * LEAK
    assert any("no history" in note for note in table.notes)
    assert memory_figure(table).axes


def test_expandable_segments_grow_and_shrink(tmp_path: Path) -> None:
    memory = Allocator(recording=True)
    kept = [memory.alloc(15_000_000, "a.py:1 f", [frame("a.py", 1, "f")]) for _ in range(3)]
    for address in kept[1:]:
        memory.free(address)
    whole = snapshot([memory])
    for event in whole["device_traces"][0]:
        event["action"] = event["action"].replace("segment_alloc", "segment_map")
    gone = whole["segments"].pop()
    unmap = {"action": "segment_unmap", "addr": gone["address"], "size": gone["total_size"]}
    last = {"stream": 0, "time_us": memory.clock_us + 1, "frames": []}
    whole["device_traces"][0].append(unmap | last)
    (series,) = usage_of(tmp_path / "a.pickle", whole).series
    assert list(series.reserved)[1:-1] == [state.reserved for state in memory.states]
    assert series.reserved[-1] == memory.reserved - gone["total_size"]


def test_recordings_that_do_not_fit_together(tmp_path: Path) -> None:
    """Recording stopped, went on, and the dump came later."""
    freed, made = "free_completed", "alloc"
    actions = [
        *((freed, 1, 10), (freed, 1, 10), (made, 2, 100)),
        *((made, 2, 30), (made, 3, 5), (freed, 3, 5)),
    ]
    common = {"stream": 0, "frames": []}
    trace = [
        {"action": action, "addr": address, "size": size, "time_us": time, **common}
        for time, (action, address, size) in enumerate(actions)
    ]
    blocks = [
        {"address": address, "size": 512, "requested_size": size, "state": "active_allocated"}
        for address, size in ((2, 30), (3, 70), (4, 1000))
    ]
    segment = {"device": 0, "address": 1, "total_size": 1536, "blocks": blocks}
    table = usage_of(tmp_path / "a.pickle", {"segments": [segment], "device_traces": [trace]})
    row = by_place(table)[EARLIER]
    assert (row["at_end_bytes"], row["allocations"]) == (1000, 2)
    assert (row["peak_bytes"], row["left_bytes"]) == (1100, 1030)


def stack_frames(files: list[str], functions: list[str], line: int, stacks: list[int]) -> Frame:
    return Frame(
        {
            "stack": np.asarray(stacks, dtype=np.int64),
            "function": Labels.of(functions),
            "file": Labels.of(files),
            "line": np.full(len(files), line, dtype=np.int64),
        }
    )


@pytest.mark.parametrize(
    ("files", "by", "expected"),
    [
        *((["/job/a.py"], *row) for row in (("place", "job/a.py:7 f"), ("function", "job/a.py f"))),
        (["??", "/v/lib/python3/site-packages/torch/nn/modules/linear.py", "b.py"], "file", "b.py"),
        (["/src/torch/_ops.py", "/src/torch/functional.py", "b.py"], "file", "b.py"),
        ([r"C:\x\Lib\site-packages\torch\optim\adam.py", r"D:\job\t.py"], "file", "job/t.py"),
        (["/home/torch/train.py"], "file", "torch/train.py"),
        (["/tmp/torchinductor_me/ab/cabc.py", "<eval_with_key>.5", "b.py"], "file", "b.py"),
        (["<string>", "/x/torch/nn/functional.py"], "file", "<string>"),
        (["<ipython-input-3-abc>", "b.py"], "file", "<ipython-input-3-abc>"),
        (["??", "/x/torch/nn/functional.py"], "file", "nn/functional.py"),
        (["a.py", "/x/torch/nn/functional.py", "b.py"], "stack", "a.py:7 f < b.py:7 f"),
        ([r"C:\Python312\Lib\site-packages\einops\einops.py", r"D:\j\t.py"], "file", "j/t.py"),
        (["/usr/lib/python3.12/contextlib.py", "b.py"], "file", "b.py"),
        (["/v/lib/python3.11/site-packages/a/b.py", "/x/torch/_ops.py"], "file", "a/b.py"),
        (["/v/site-packages/a/b.py", "/j/t.py"], "stack", "a/b.py:7 f < j/t.py:7 f"),
    ],
)
def test_the_place_is_the_first_frame_of_the_user(files: list[str], by: str, expected: str) -> None:
    frames = stack_frames(files, ["f"] * len(files), 7, [0] * len(files))
    assert places(frames, by).values == (expected,)


def test_stacks_of_cpp_name_what_asked_the_allocator_and_files_are_told_apart() -> None:
    names = ["torch::unwind::unwind()", "c10::cuda::malloc()", "at::native::add(at::Tensor)"]
    cpp = stack_frames(["??", "", "??"], names, 0, [0, 0, 0])
    assert places(cpp).values == ("at::native::add(at::Tensor)",)
    files = ["/a/x/model.py", "/b/x/model.py", "/b/y/model.py"]
    found = places(stack_frames(files, ["f"] * 3, 0, [0, 1, 2]), "file").values
    assert set(found) == {"a/x/model.py", "b/x/model.py", "y/model.py"}
    nameless = stack_frames(
        ["??", "", "??", "c.py"], ["at::add", "at::add", "at::mul", "f"], 0, [*range(4)]
    )
    assert list(places(nameless, "file")) == ["at::add", "at::add", "at::mul", "c.py"]


def plain(path: Path) -> tuple[int, int, int]:
    """Peak, its moment and what is left on device 0, one event after the other."""
    whole = pickle.loads(path.read_bytes())
    trace = whole["device_traces"][0]
    known = {event["addr"] for event in trace if event["action"] == "alloc"}
    live = {
        block["address"]: block["requested_size"]
        for segment in whole["segments"]
        for block in segment["blocks"]
        if block["state"].startswith("active") and block["address"] not in known
    }
    steps = {"alloc": 1, "free_completed": -1}
    seen = set()
    for event in trace:
        if event["action"] == "free_completed" and event["addr"] not in seen:
            live[event["addr"]] = event["size"]
        seen |= {event["addr"]} if event["action"] in steps else set()
    begin = trace[0]["time_us"]
    totals = [(sum(live.values()), begin)]
    for event in trace:
        total = totals[-1][0] + steps.get(event["action"], 0) * event["size"]
        totals.append((total, event["time_us"]))
    peak, moment = max(totals, key=lambda one: one[0])
    return peak, (moment - begin) * 1000, totals[-1][0]


@pytest.mark.slow
@real_snapshots
def test_real_snapshots_agree_with_a_plain_computation(path: Path) -> None:
    expected = plain(path)
    for by in ("place", "function", "file", "stack"):
        rows = nsightpy.memory_usage(path, by=by).records()
        figures = {(row["peak_bytes"], row["peak_ns"], row["left_bytes"]) for row in rows}
        assert figures == {expected}
        assert sum(int(row["at_peak_bytes"] or 0) for row in rows) == expected[0]


def test_two_snapshots_side_by_side(tmp_path: Path) -> None:
    one, other = Training(2).run(), Training(5).run()
    before = write_snapshot(tmp_path / "z_before.pickle", [one])
    after = write_snapshot(tmp_path / "a_after.pickle", [other])
    table = nsightpy.memory_usage([before, after], diff=True)
    assert table.inputs == (str(before), str(after))
    rows = by_place(table)
    assert next(iter(rows)) == "trainer/log.py:9 keep"
    leak = rows["trainer/log.py:9 keep"]
    assert (leak["before_at_end_bytes"], leak["after_at_end_bytes"]) == (2 * LEAK, 5 * LEAK)
    assert (leak["delta_at_end_bytes"], leak["delta_at_peak_bytes"]) == (3 * LEAK, 3 * LEAK)
    for side, memory in (("before", one), ("after", other)):
        assert held(rows, f"{side}_at_peak_bytes") == truth(memory)["at_peak"]


@pytest.mark.parametrize(
    ("files", "options", "error", "said"),
    [
        (["a.pickle"], {"by": "line"}, UsageError, "function, file, stack"),
        (["b.sqlite"], {"by": "file"}, UsageError, "are for memory snapshots"),
        (["a.pickle", "b.sqlite"], {}, ReportError, "not read together"),
        (["a.pickle"], {"nvtx": "forward"}, NsightpyError, "no NVTX ranges"),
        (["a.pickle"], {"rank": 0}, NsightpyError, "no snapshot has it"),
        (["a.pickle"], {"diff": True}, UsageError, "two snapshots, and 1 are given"),
        (["a.pickle"], {"on_error": "ignore"}, UsageError, "on_error"),
    ],
    ids=str,
)
def test_wrong_requests(
    files: list[str], options: dict[str, Any], error: type[Exception], said: str, tmp_path: Path
) -> None:
    write_snapshot(tmp_path / "a.pickle", [Training(1).run()])
    Export(tmp_path / "b.sqlite").write()
    with pytest.raises(error, match=said):
        nsightpy.memory_usage([tmp_path / name for name in files], **options)


def test_many_snapshots_with_a_damaged_one(tmp_path: Path) -> None:
    for rank in (0, 2):
        write_snapshot(tmp_path / f"rank{rank}.pickle", [Training(1 + rank).run()])
    (tmp_path / "rank1.pickle").write_bytes(b"\x80\x04cos\nsystem\n.")
    table = nsightpy.memory_usage(tmp_path)
    ranks = [row["rank"] for row in table.records()]
    assert (ranks, set(ranks)) == (sorted(ranks), {0, 2})
    assert any("left out" in note and "rank1.pickle" in note for note in table.notes)
    assert len(memory_figure(table).axes) == 2
    with pytest.raises(ReportError, match=r"os\.system"):
        nsightpy.memory_usage(tmp_path, on_error="raise")
    with pytest.raises(ReportError, match=r"memory snapshot of PyTorch.*\n.*memory-usage"):
        nsightpy.kernels(tmp_path / "rank0.pickle")


def test_the_picture_stacks_places_below_what_was_reserved(tmp_path: Path) -> None:
    memory = Training(fails=True).run()
    table = usage_of(tmp_path / "a.pickle", snapshot([memory]))
    (series,) = table.series
    stacked = zip(*(live for _, live in series.layers), strict=True)
    assert list(map(sum, stacked)) == list(series.live)
    assert max(series.live) == truth(memory)["peak_bytes"]
    (axes,) = memory_figure(table).axes
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert (texts[0].endswith("out of memory"), texts[-1].endswith(EARLIER)) == (True, True)
    for part in (" reserved", "trainer/model.py:40 attend"):
        assert any(part in text for text in texts)
    long = Training(60).run()
    (drawn,) = usage_of(tmp_path / "b.pickle", snapshot([long])).series
    assert len(drawn.live) < 1_300 < len(long.events)
    assert max(drawn.live) == truth(long)["peak_bytes"]
