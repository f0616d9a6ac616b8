"""graphs: replays and nodes against plain loops and known truth."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given, strategies as st
from simulator import Export
from simulator.presets import PRESETS

import nsightpy
from nsightpy.analysis.graphs.replays import CALL_COLUMNS, OPERATION_COLUMNS, replays_of_nodes
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.analysis.operators.device_time import range_calls
from nsightpy.frames import Frame
from tests.support.frames import frame
from tests.support.plain_trace import KINETO, Event, load, of, union
from tests.support.reports import needs_reports

SINGLE = replace(PRESETS["single_process"], graph_mode="node")


def work_of(replays: list[list[tuple[int, int]]]) -> tuple[Frame, Frame, Frame]:
    """Operations (start, end) of each replay, and one launch call for each; no ranges."""
    flat = [
        (*span, 0, 0, call + 1, 0, "kernel") for call, spans in enumerate(replays) for span in spans
    ]
    calls = [(at, at + 1, 0, 0, at + 1, 0, "cudaGraphLaunch") for at in range(len(replays))]
    ranges = range_calls(frame(RANGE_COLUMNS, []))
    return frame((*OPERATION_COLUMNS, "name"), flat), frame(CALL_COLUMNS, calls), ranges


def chain(spans: list[tuple[int, int]]) -> int:
    """The work on the chain back from the last operation, one step after the other."""
    last = max(spans, key=lambda span: max(span[1], span[0] + 1))
    before = [span for span in spans if max(span[1], span[0] + 1) <= last[0]]
    return last[1] - last[0] + (chain(before) if before else 0)


OPERATION = st.tuples(st.integers(0, 40), st.integers(1, 12)).map(lambda s: (s[0], s[0] + s[1]))
# ends are all different, so that one chain is the last
REPLAY = st.lists(OPERATION, min_size=1, max_size=9, unique_by=lambda span: span[1])


@pytest.mark.slow
@given(st.lists(REPLAY, min_size=1, max_size=5))
def test_busy_time_and_chain_of_replays(replays: list[list[tuple[int, int]]]) -> None:
    found, operations, _ = replays_of_nodes(*work_of(replays))
    assert found.ints("operations").tolist() == [len(spans) for spans in replays]
    assert found.ints("start_ns").tolist() == [
        min(start for start, _ in spans) for spans in replays
    ]
    assert found.ints("end_ns").tolist() == [max(end for _, end in spans) for spans in replays]
    covered = [len({t for start, end in spans for t in range(start, end)}) for spans in replays]
    assert found.ints("busy_ns").tolist() == covered
    assert found.ints("chain_ns").tolist() == [chain(spans) for spans in replays]
    assert len(operations) == sum(map(len, replays))


def test_a_simulated_graph_by_replay_and_node(tmp_path: Path) -> None:
    (path,), _ = SINGLE.write(tmp_path)
    truth: dict[int, list[tuple[int, int]]] = {}
    nodes: dict[int, list[int]] = {}
    for op in SINGLE.run().ranks[0].operations:
        if op.node is not None:
            truth.setdefault(op.correlation, []).append((op.start, op.end))
            nodes.setdefault(op.node, []).append(op.end - op.start)
    (graph,) = nsightpy.graphs(path).records()
    spans = [(min(s for s, _ in ops), max(e for _, e in ops)) for ops in truth.values()]
    assert graph["replays"] == SINGLE.graph_replays == len(spans)
    assert graph["graph"] == 6
    assert graph["total_ns"] == sum(end - start for start, end in spans)
    assert graph["replay_med_ns"] == median(end - start for start, end in spans)
    gaps = [sum(b[0] - a[1] for a, b in pairwise(o)) for o in truth.values()]
    assert graph["gap_med_ns"] == median(gaps)
    assert graph["chain_med_ns"] == graph["busy_med_ns"]  # one stream
    assert graph["launched_in"] == "inference"
    replays = nsightpy.graphs(path, by="replay").records()
    assert [row["duration_ns"] for row in replays] == [end - start for start, end in sorted(spans)]
    rows = {row["node"]: row for row in nsightpy.graphs(path, by="node").records()}
    assert {node: row["total_ns"] for node, row in rows.items()} == {
        node: sum(times) for node, times in nodes.items()
    }
    assert sum(row["share_of_graph"] for row in rows.values()) == pytest.approx(1)


def test_nodes_know_where_they_were_captured(tmp_path: Path) -> None:
    path = tmp_path / "captured.sqlite"
    export = Export(path)
    export.nvtx_push_pop(100, 200, "layer 0")
    export.nvtx_push_pop(110, 150, "attention")
    export.graph_node(120, 1)
    export.graph_node(160, 2)
    export.graph_node(300, 11, original=1)  # instantiated, outside of all ranges
    export.graph_node(301, 12, original=2)
    for start in (1_000, 2_000):
        number = export.api(start - 100, start - 90, "cudaGraphLaunch_v10000")
        export.kernel(start, start + 10, "a", graph_node=11, correlation=number)
        export.kernel(start + 20, start + 50, "b", graph_node=12, correlation=number)
    export.kernel(3_000, 3_010, "eager", launch=(2_900, 2_930))
    table = nsightpy.graphs(export.write(), by="node")
    created = {row["name"]: row["created_in"] for row in table.records()}
    assert created == {"a": "layer 0/attention", "b": "layer 0"}


def test_graphs_traced_as_a_whole_have_no_inside(tmp_path: Path) -> None:
    (path,), truth = PRESETS["single_process"].write(tmp_path)
    (graph,), (rank,) = nsightpy.graphs(path).records(), truth["ranks"]
    figures = [graph[name] for name in ("traced", "operations", "busy_med_ns")]
    assert figures == ["as a whole", None, None]
    assert graph["replays"] == rank["graphs"]["count"]
    assert graph["total_ns"] == rank["graphs"]["total_ns"]
    notes = map(str, nsightpy.open_report(path).notes)
    assert any(f"{graph['replays']} CUDA graph launches" in note for note in notes)
    assert nsightpy.graphs(path, by="node").records() == []


@pytest.mark.parametrize("name", ["sglang_decode_graphs", "vllm_piecewise_graphs"])
@needs_reports
def test_replays_of_real_engines(name: str) -> None:
    path = KINETO / f"{name}.json.gz"
    events = load(path)
    calls = [e for e in of(events, "cuda_runtime", "cuda_driver") if "GraphLaunch" in e.name]
    launches = {e.args["correlation"]: e for e in calls}
    ran: dict[int, list[Event]] = {}
    for event in of(events, "kernel", "gpu_memcpy", "gpu_memset"):
        if event.args.get("correlation") in launches:
            ran.setdefault(event.args["correlation"], []).append(event)
    wanted = []
    for number, mine in ran.items():
        start, end = min(e.start for e in mine), max(e.end for e in mine)
        wanted.append((start, end - start, launches[number].duration, len(mine), union(mine)))
    columns = ("start_ns", "duration_ns", "launch_ns", "operations", "busy_ns")
    rows = nsightpy.graphs(path, by="replay", use_cache=False).records()
    zero = min(wanted)[0] - rows[0]["start_ns"]
    shown = [tuple(row[name] for name in columns) for row in rows]
    assert shown == [(start - zero, *figures) for start, *figures in sorted(wanted)]
    nodes = nsightpy.graphs(path, by="node", use_cache=False).records()
    work = [event for mine in ran.values() for event in mine]
    assert sum(row["instances"] for row in nodes) == len(work)
    assert sum(row["total_ns"] for row in nodes) == sum(event.duration for event in work)
    assert {row["name"] for row in nodes} == {event.name for event in work}
    assert min(row["node"] for row in nodes) >= 1
