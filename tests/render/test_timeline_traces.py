"""Chrome and Perfetto traces, read back strictly."""

import gzip
import importlib.util
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import nsightpy
from nsightpy.render.timeline.chrome_trace import write_chrome_trace
from nsightpy.render.timeline.perfetto import write_perfetto
from nsightpy.results.tracks import (
    CATEGORIES,
    CRITICAL,
    Mark,
    Timeline,
)
from tests.support.reports import DDP, ask, exports, needs_reports, refused
from tests.support.samples import TRAINING
from tests.support.timelines import lane_of, timeline_of, written as made_file
from tests.support.trace_checks import Trace, read_chrome, read_perfetto

HOSTILE = ('"},{"ph":"X"', "a\\b\n\x00</script>", "汉字\ud800", "")


needs_perfetto = pytest.mark.skipif(
    importlib.util.find_spec("perfetto") is None, reason="no perfetto package"
)
FORMATS = [
    pytest.param("json", id="chrome"),
    pytest.param("json.gz", id="chrome-gz"),
    pytest.param("pftrace", marks=needs_perfetto, id="perfetto"),
]


def trace_of(path: Path) -> Trace:
    data = path.read_bytes()
    if path.suffix == ".pftrace":
        return read_perfetto(data)
    return read_chrome(gzip.decompress(data) if path.suffix == ".gz" else data)


def written(folder: Path, suffix: str, *arguments: str | Path) -> Trace:
    path = folder / f"t.{suffix}"
    ask("timeline", *arguments, "-o", path)
    return trace_of(path)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", FORMATS)
def test_the_training_job(tmp_path: Path, suffix: str) -> None:
    trace = written(tmp_path, suffix, TRAINING)
    assert [trace.processes[n].split(",")[0] for n in range(1, 5)] == [
        f"rank {rank} on node{rank // 2}" for rank in range(4)
    ]
    assert {"GPU 0 stream 7", "NVTX, thread 21000"} <= {*trace.threads.values()}
    made = nsightpy.timeline(str(TRAINING))
    zero = made.earliest()
    wanted: Counter[str] = Counter()
    events = set()
    for lane in (lane for track in made for lane in track.lanes):
        wanted.update(CATEGORIES[c] for c in lane.categories.tolist())
        times = ((times - zero).tolist() for times in (lane.starts, lane.ends))
        events |= {*zip(*times, lane.names, strict=True)}
    assert trace.categories == wanted
    assert {(one.start, one.end, one.name) for one in trace.slices} == events
    assert len(trace.launches) == 4 * (1344 + 32)
    assert all(call.name.startswith("cu") for call, _ in trace.launches)
    assert all(call.start <= work.start for call, work in trace.launches)
    assert all(call.thread[0] == work.thread[0] for call, work in trace.launches)
    assert len(trace.collectives) > 300
    for parts in trace.collectives:
        assert len({one.thread[0] for one in parts}) == len(parts) in (2, 4)
        assert {one.category for one in parts} == {"communication"}
        assert max(one.end for one in parts) - min(one.end for one in parts) < 5_000
    assert any(one.details.startswith("grid ") for one in trace.slices)


@pytest.mark.parametrize("suffix", FORMATS[::2])
def test_in_a_window_nothing_dangles(tmp_path: Path, suffix: str) -> None:
    window = ("--from", "560ms", "--to", "562ms", "--rank", "1-2", "--force")
    trace = written(tmp_path, suffix, TRAINING, *window)
    assert len(trace.processes) == 2
    assert trace.slices
    assert all(len(parts) >= 2 for parts in trace.collectives)


def crossing_timeline() -> Timeline:
    """One stream whose kernels cross, hold and touch each other, with hostile names."""
    starts = np.asarray([5, 10, 12, 30, 30, 40], dtype=np.int64)
    ends = np.asarray([20, 25, 14, 40, 40, 40], dtype=np.int64)
    lane = lane_of(starts, ends, [*HOSTILE, "plain", "plain"])
    whole = Mark(CRITICAL, "critical path", "", 5, 40)
    legs = (Mark(CRITICAL, *HOSTILE[:2], 5, 12), Mark(CRITICAL, "rank 0 · GPU 0", "", 12, 40))
    return timeline_of(40, lane, start=5, path=lambda: (whole, *legs))


@pytest.mark.parametrize("suffix", FORMATS[::2])
def test_kernels_that_cross_get_threads_of_their_own(tmp_path: Path, suffix: str) -> None:
    write = write_chrome_trace if suffix == "json" else write_perfetto
    trace = trace_of(made_file(write, crossing_timeline(), tmp_path / f"t.{suffix}"))
    assert len(trace.slices) == 6
    assert sorted(trace.threads.values()) == [
        "GPU 0 stream 7",
        "GPU 0 stream 7, beside (2)",
        "GPU 0 stream 7, beside (3)",
    ]
    names = {one.name for one in trace.slices}
    assert {HOSTILE[0], HOSTILE[1], ""} <= names
    assert sum(one.end == one.start for one in trace.slices) == 1
    assert [(one.name, one.start, one.end) for one in trace.marks] == [
        ("critical path", 0, 35),
        (HOSTILE[0], 0, 7),
        ("rank 0 · GPU 0", 7, 35),
    ]
    assert {one.thread[0] for one in trace.marks} == {2}
    assert trace.marks[1].details == HOSTILE[1]


def test_without_the_package_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "perfetto.trace_builder.proto_builder", None)
    answer = ask("timeline", TRAINING, "-o", tmp_path / "t.pftrace", expect=1)
    assert "nsightpy[perfetto]" in answer.stderr
    assert list(tmp_path.iterdir()) == []


@exports
@needs_reports
def test_every_real_export(path: Path, tmp_path: Path) -> None:
    if path.stem.startswith("no_kernels"):
        assert "holds no GPU work" in refused("timeline", path, "-o", tmp_path / "t.json")
        return
    trace = written(tmp_path, "json", path)
    assert trace.slices
    if path.name == DDP:
        kinds = ("compute", "communication")
        assert sum(work.category in kinds for _, work in trace.launches) == 4652
        assert len(trace.collectives) > 100
