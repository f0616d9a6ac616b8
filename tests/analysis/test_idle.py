"""Why devices are idle: hand cases with the numbers in sight, and a brute-force model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from simulator import Export

from nsightpy.analysis.idle.compute_gaps import compute_gaps, idle_causes, stream_waits
from nsightpy.analysis.idle.event_waits import event_waits
from nsightpy.analysis.idle.gpu_work import gpu_work
from nsightpy.analysis.intervals import Spans, union
from nsightpy.commands.breakdown import breakdown
from nsightpy.frames import Frame, Labels
from nsightpy.results import Value
from tests.support.enqueued import Action, placed

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
CAUSES = ("launch_starved_ns", "blocking_ns", "dependency_stalled_ns", "unattributed_ns")
WAITS = ("host_wait_ns", "kernel_wait_ns", "other_wait_ns")


def answer(path: Path, build: Callable[[Export], None], **options: object) -> dict[str, Value]:
    export = Export(path / "report.sqlite")
    build(export)
    (row,) = breakdown(str(export.write()), **options).records()  # type: ignore[arg-type]
    return row


def causes(row: dict[str, Value]) -> list[Value]:
    return [row[name] for name in CAUSES]


def test_starved_until_the_launch_begins(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        export.kernel(100, 200, "a", launch=(50, 60))
        export.kernel(300, 400, "b", launch=(260, 270))

    row = answer(tmp_path, build)
    assert causes(row) == [60, 0, 40, 0]
    assert [row[name] for name in WAITS] == [100, 0, 0]


def test_blocked_by_a_copy_before_it_on_the_stream(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        export.kernel(100, 200, "a", launch=(50, 60))
        export.memcpy(210, 280, 1000, launch=(61, 70))
        export.kernel(290, 400, "b", launch=(71, 80))

    row = answer(tmp_path, build)
    assert causes(row) == [0, 90, 0, 0]
    assert [row[name] for name in WAITS] == [0, 20, 0]


def test_blocked_only_while_launched(tmp_path: Path) -> None:
    # the copy is over before the kernel is launched: it did not hold it back
    def build(export: Export) -> None:
        export.kernel(100, 200, "a", launch=(50, 60))
        export.memcpy(210, 280, 1000, launch=(61, 70))
        export.kernel(320, 400, "b", launch=(300, 305))

    assert causes(answer(tmp_path, build)) == [100, 0, 20, 0]


def relay(export: Export, *, link: bool = True) -> None:
    """Copy on 13; event to 21, which has no work of its own; event to 7, where the kernel is."""
    export.kernel(100, 200, "a", launch=(10, 12))
    export.memcpy(110, 290, 1000, stream=13, launch=(20, 22))
    export.cuda_event(5, 1, stream=13, launch=(30, 31))
    if link:
        wait(export, 40, stream=21, event_sync=1)
    export.cuda_event(5, 2, stream=21, launch=(50, 51))
    wait(export, 60, stream=7, event_sync=2)
    export.kernel(295, 400, "b", launch=(70, 71))


def wait(export: Export, time: int, stream: int, event_sync: int) -> None:
    export.sync(
        time,
        time + 1,
        "stream_wait",
        stream=stream,
        event=5,
        event_sync=event_sync,
        launch=(time, time + 2),
    )


def test_blocked_through_a_relayed_event(tmp_path: Path) -> None:
    assert causes(answer(tmp_path, relay)) == [0, 95, 0, 0]


def test_no_producer_without_the_link(tmp_path: Path) -> None:
    row = answer(tmp_path, lambda export: relay(export, link=False))
    assert causes(row) == [0, 0, 95, 0]


def test_reused_event_ids_are_told_apart(tmp_path: Path) -> None:
    # event 5 is recorded twice; the kernel waits for the first recording, which is done early
    def build(export: Export) -> None:
        export.kernel(100, 200, "a", launch=(10, 12))
        export.memcpy(110, 150, 1000, stream=13, launch=(20, 22))
        export.cuda_event(5, 1, stream=13, launch=(30, 31))
        export.memcpy(151, 280, 1000, stream=13, launch=(32, 33))
        export.cuda_event(5, 2, stream=13, launch=(34, 35))
        wait(export, 40, stream=7, event_sync=1)
        export.kernel(260, 400, "b", launch=(70, 71))

    assert causes(answer(tmp_path, build)) == [0, 0, 60, 0]


def test_communication_on_the_compute_stream_is_no_compute(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        export.kernel(100, 200, "a", launch=(10, 12))
        export.kernel(205, 300, NCCL, launch=(14, 16))
        export.kernel(310, 400, "b", launch=(20, 22))

    assert causes(answer(tmp_path, build)) == [0, 110, 0, 0]


def test_the_tail_and_unrecorded_launches_stay_unattributed(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        export.kernel(100, 200, "a", launch=(50, 60))
        export.kernel(230, 400, "b", correlation=77)
        export.memcpy(410, 450, 1000, launch=(120, 130))

    row = answer(tmp_path, build)
    assert causes(row) == [0, 0, 0, 80]
    # a gap before an unrecorded launch cannot be host wait
    assert [row[name] for name in WAITS] == [0, 40, 0]


def test_a_long_gap_behind_an_early_launch_is_other_wait(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        export.kernel(100, 200, "a", launch=(50, 60))
        export.kernel(40_200, 40_300, "b", launch=(70, 80))

    row = answer(tmp_path, build)
    assert [row[name] for name in WAITS] == [0, 0, 40_000]
    assert causes(row) == [0, 0, 40_000, 0]


def test_stream_gaps_count_from_the_latest_end(tmp_path: Path) -> None:
    # the second kernel ends inside the first: HTA would see a gap from 120 on
    def build(export: Export) -> None:
        export.kernel(0, 200, "a", launch=(-50, -40))
        export.kernel(110, 120, "b", launch=(-30, -20))
        export.kernel(250, 300, "c", launch=(210, 220))

    assert [answer(tmp_path, build)[name] for name in WAITS] == [50, 0, 0]


def test_a_window_clips_every_cause(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        export.kernel(100, 200, "a", launch=(50, 60))
        export.kernel(300, 400, "b", launch=(260, 270))

    assert causes(answer(tmp_path, build, from_time=240, to_time=280)) == [20, 0, 20, 0]


def test_other_processes_calls_are_not_taken_for_launches(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        one, two = export.process(1000), export.process(2000)
        export.kernel(100, 200, "a", process=one, correlation=1, launch=(50, 60))
        export.kernel(300, 400, "b", process=one, correlation=2, launch=(260, 270))
        export.api(5, 6, "cudaLaunchKernel_v7000", process=two, correlation=2)

    assert causes(answer(tmp_path, build)) == [60, 0, 40, 0]


def test_calls_of_unusual_names_are_found_when_a_launch_is_missed(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        export.kernel(100, 200, "a", launch=(50, 60))
        export.kernel(300, 400, "b", launch=(260, 270, 1000, "hipModuleRun_v1"))

    assert causes(answer(tmp_path, build)) == [60, 0, 40, 0]


def test_without_api_calls_nothing_is_attributed(tmp_path: Path) -> None:
    export = Export(tmp_path / "report.sqlite", drop_tables=["CUPTI_ACTIVITY_KIND_RUNTIME"])
    export.kernel(100, 200, "a", correlation=1)
    export.kernel(300, 400, "b", correlation=2)
    table = breakdown(str(export.write()))
    (row,) = table.records()
    assert [row[name] for name in (*CAUSES, *WAITS)] == [None] * 7
    assert any("no CUDA API calls" in note for note in table.notes)


# A model, one kernel at a time


@st.composite
def captures(draw: st.DrawFn) -> list[Action]:
    """Host actions in order of time; operations of a stream run one after the other."""
    actions: list[Action] = []
    free: dict[int, int] = {}
    records = 0
    time = 0
    for _ in range(draw(st.integers(1, 24))):
        time += draw(st.integers(1, 9))
        stream = draw(st.sampled_from([7, 13, 21]))
        kind = draw(st.sampled_from(["op", "op", "op", "record", "wait"]))
        if kind == "op":
            start = max(time, free.get(stream, 0)) + draw(st.integers(0, 12))
            free[stream] = end = start + draw(st.integers(1, 15))
            role = draw(st.sampled_from(["compute", "compute", "communication", "copy"]))
            actions.append(Action(time, kind, stream, 0, start, end, role))
        elif kind == "record":
            records += 1
            actions.append(Action(time, kind, stream, records))
        elif records:
            actions.append(
                Action(time, kind, stream, draw(st.sampled_from([*range(1, records + 1), 99])))
            )
    return actions


def done_after(actions: list[Action], place: int, stream: int) -> int:
    """When all that a stream has to do before an action is done; -1 for nothing."""
    latest = -1
    for index in range(place - 1, -1, -1):
        one = actions[index]
        if one.stream != stream:
            continue
        if one.kind == "op":
            return max(latest, one.end)
        if one.kind == "wait":
            made = [
                i for i, a in enumerate(actions) if a.kind == "record" and a.number == one.number
            ]
            if made:
                latest = max(latest, done_after(actions, made[0], actions[made[0]].stream))
    return latest


def modelled(actions: list[Action], begin: int, end: int) -> tuple[int, int, int, int]:
    starved = blocking = stalled = 0
    opened = begin
    compute = [(a.start, i) for i, a in enumerate(actions) if a.role == "compute"]
    for start, index in sorted(compute):
        one = actions[index]
        if start > opened:
            launched = min(max(one.time, opened), start)
            starved += launched - opened
            held = done_after(actions, index, one.stream) > launched
            blocking += (start - launched) * held
            stalled += (start - launched) * (not held)
        opened = max(opened, one.end)
    return starved, blocking, stalled, max(end - opened, 0)


def ints(values: list[int]) -> np.ndarray:
    return np.asarray(values, dtype=np.int64)


@given(captures())
@settings(max_examples=200, deadline=None)
def test_the_vectors_agree_with_the_model(actions: list[Action]) -> None:
    ops = [a for a in actions if a.kind == "op"]
    if not ops:
        return
    kernels = sorted((a for a in ops if a.role != "copy"), key=lambda a: a.start)
    copies = sorted((a for a in ops if a.role == "copy"), key=lambda a: a.start)
    records = [a for a in actions if a.kind == "record"]
    waits = [a for a in actions if a.kind == "wait"]
    launched = [*kernels, *copies, *records]
    order = sorted(range(len(launched)), key=lambda i: launched[i].time)
    calls = Frame(
        {
            "start_ns": ints([launched[i].time for i in order]),
            "pid": ints([1] * len(order)),
            "correlation_id": ints([i + 1 for i in order]),
        }
    )
    operations = Frame(
        {
            **placed(copies, 1 + len(kernels)),
            "operation": Labels.of(["[CUDA memcpy Host-to-Device]"] * len(copies)),
        }
    )
    events = Frame(
        {
            **placed(records, 1 + len(kernels) + len(copies)),
            "event_sync_id": ints([a.number for a in records]),
        }
    )
    synchronizations = Frame(
        {
            **placed(waits, 0),
            "start_ns": ints([a.time for a in waits]),
            "kind": Labels.of(["stream wait"] * len(waits)),
            "event_sync_id": ints([a.number for a in waits]),
        }
    )
    communicates = np.asarray([a.role == "communication" for a in kernels], dtype=np.bool_)
    graphs = Frame({name: column[:0] for name, column in placed(ops, 1).items()})
    work = gpu_work(Frame(placed(kernels, 1)), communicates, operations, graphs, calls)
    awaited = event_waits(work, synchronizations, events, calls)
    begin, end = min(a.start for a in ops), max(a.end for a in ops)
    window = union(ints([begin]), ints([end]))
    gaps = compute_gaps(work, 0, window, work.previous, awaited.producer)
    found = idle_causes(work, gaps, window)
    expected = modelled(actions, begin, end)
    assert (
        found.launch_starved_ns,
        found.blocking_ns,
        found.dependency_stalled_ns,
        found.tail_ns,
    ) == expected
    assert found.unlaunched_ns == 0
    halves = [
        union(ints([begin]), ints([middle := (begin + end) // 2])),
        union(ints([middle]), ints([end])),
    ]
    split = [idle_causes(work, gaps, half) for half in halves]
    assert sum(one.blocking_ns for one in split) == found.blocking_ns
    in_parts = Spans(ints([begin, middle]), ints([middle, end]))
    if begin < middle < end:
        assert idle_causes(work, gaps, in_parts) == found
        assert stream_waits(work, {0: in_parts}) == stream_waits(work, {0: window})


@pytest.mark.parametrize("jobs", [1, 2])
def test_reports_of_several_devices_are_told_apart(tmp_path: Path, jobs: int) -> None:
    for rank in range(2):
        export = Export(tmp_path / f"rank{rank}.sqlite")
        for device in range(2):
            export.kernel(100, 200, "a", device=device, context=device + 1, launch=(50, 60))
            launch = (210 + 10 * device, 280)
            export.kernel(300, 400, "b", device=device, context=device + 1, launch=launch)
        export.write()
    rows = breakdown(str(tmp_path), jobs=jobs).records()
    assert [causes(row) for row in rows] == [[10, 0, 90, 0], [20, 0, 80, 0]] * 2
