"""PyTorch traces: every figure equals a plain computation from the JSON, on every real trace."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import nsightpy
from nsightpy import frames
from nsightpy.commands.breakdown.command import breakdown
from nsightpy.report_sets.rank_opening import open_ranks
from nsightpy.reports.torch import TorchTrace
from tests.support.plain_trace import (
    CALLS,
    GPU,
    KINETO,
    TRACES,
    Event,
    key_averages,
    load,
    of,
    union,
)
from tests.support.reports import needs_reports

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Loaded:
    """One real trace: read the plain way, and by nsightpy."""

    path: Path
    events: list[Event]
    report: TorchTrace


@pytest.fixture(
    scope="module",
    params=[pytest.param(path, id=path.name.partition(".")[0]) for path in TRACES]
    or [pytest.param(None, marks=needs_reports, id="none")],
)
def trace(request: pytest.FixtureRequest) -> Loaded:
    return Loaded(request.param, load(request.param), TorchTrace(request.param, use_cache=False))


COMMUNICATION = re.compile("^nccl|multimem_all_reduce")
RANKS_OF_128 = [KINETO / f"sampled_rank{rank}_of128.json.gz" for rank in (0, 1)]


def test_kernels_and_calls_are_those_of_the_file(trace: Loaded) -> None:
    report, events = trace.report, trace.events
    zero = min(
        (e.start for e in events if e.category not in ("python_function", "overhead", "cuda_sync")),
        default=0,
    )
    kernels = report.frame("kernels")
    wanted = [(e.start - zero, e.end - zero, e.name) for e in of(events, "kernel")]
    names = kernels.labels("name")
    found = [
        (start, end, names[row])
        for row, (start, end) in enumerate(
            zip(kernels.ints("start_ns").tolist(), kernels.ints("end_ns").tolist(), strict=True)
        )
    ]
    assert sorted(found) == sorted(wanted)
    assert Counter(e.args["stream"] for e in of(events, "kernel")) == Counter(
        kernels.ints("stream").tolist()
    )
    calls = report.frame("api_calls")
    assert sorted(
        zip(calls.ints("start_ns").tolist(), calls.ints("correlation_id").tolist(), strict=True)
    ) == sorted((e.start - zero, e.args["correlation"]) for e in of(events, *CALLS))
    assert report.frame("memory_operations").rows == len(of(events, "gpu_memcpy", "gpu_memset"))
    assert report.frame("python_functions").rows == len(of(events, "python_function"))
    ends = [e.end for e in events if e.category != "overhead"]
    assert report.session.duration_ns == max(ends) - zero


def test_every_frame_has_its_columns(trace: Loaded) -> None:
    report = trace.report
    for schema in (*frames.SCHEMAS.values(), frames.COLLECTIVES):
        assert tuple(report.frame(schema.name)) == schema.names
        assert tuple(report.frame(schema.name, schema.names[:2])) == schema.names[:2]
    with pytest.raises(KeyError):
        report.frame("no_such_frame")


def test_busy_time_is_a_union(trace: Loaded) -> None:
    events = trace.events
    work = of(events, *GPU)
    rows = breakdown([trace.report]).records()
    assert sum(row["busy_ns"] for row in rows) == union(work)
    if work:
        (row,) = rows
        assert row["window_ns"] == max(e.end for e in work) - min(e.start for e in work)
        assert row["memory_ns"] == union(of(events, "gpu_memcpy", "gpu_memset"))
        talking = [e for e in of(events, "kernel") if COMMUNICATION.search(e.name)]
        rest = [e for e in of(events, "kernel") if not COMMUNICATION.search(e.name)]
        assert row["communication_ns"] == union(talking)
        assert row["compute_ns"] == union(rest)
        assert row["exposed_communication_ns"] == union(work) - union(
            [e for e in work if e not in talking]
        )


def test_operators_are_those_of_key_averages(trace: Loaded) -> None:
    wanted = key_averages(trace.events)
    table = nsightpy.operators([trace.report])
    found = {row["operator"]: row for row in table.records()}
    assert found.keys() == wanted.keys()
    for name, sums in wanted.items():
        row = found[name]
        assert (row["calls"], row["host_total_ns"], row["host_self_ns"]) == (
            sums.calls,
            sums.host_total,
            sums.host_self,
        )
        assert (row["device_total_ns"], row["device_self_ns"]) == (
            sums.device_total,
            sums.device_self,
        )


@pytest.mark.parametrize("name", ["bert_small_h100", "bert_small_mi300_rocm", "vit_h100"])
@needs_reports
def test_operators_agree_with_tracelens(name: str) -> None:
    with (KINETO / f"{name}.tracelens.ops_summary.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    table = nsightpy.operators([KINETO / f"{name}.json.gz"], use_cache=False)
    found = {row["operator"]: row for row in table.records()}
    for row in rows:
        mine = found[row["name"]]
        own, total = (float(row[f"total_{kind}_kernel_time_sum"]) for kind in ("direct", "subtree"))
        # TraceLens subtracts in float64 microseconds
        assert mine["device_self_ns"] == pytest.approx(1000 * own, abs=2 * int(row["Count"]))
        assert mine["device_total_ns"] == pytest.approx(1000 * total, abs=2 * int(row["Count"]))
    assert sum(r["device_self_ns"] for r in found.values()) == pytest.approx(
        1000 * sum(float(r["total_direct_kernel_time_sum"]) for r in rows), abs=200
    )


@pytest.mark.parametrize(
    "name",
    [
        *("bert_small_h100", "bert_small_mi300_rocm", "vit_h100", "torch_compile_triton"),
        *("sglang_decode_graphs", "vllm_piecewise_graphs"),
    ],
)
@needs_reports
def test_budget_agrees_with_tracelens(name: str) -> None:
    with (KINETO / f"{name}.tracelens.gpu_timeline.csv").open(encoding="utf-8") as file:
        told = {row["type"]: 1e6 * float(row["time ms"]) for row in csv.DictReader(file)}
    (row,) = breakdown([KINETO / f"{name}.json.gz"], use_cache=False).records()
    # TraceLens adds float64 microseconds since the machine's start
    assert row["busy_ns"] == pytest.approx(told["busy_time"], abs=10)
    assert row["idle_ns"] == pytest.approx(told["idle_time"], abs=10)
    assert row["window_ns"] == pytest.approx(told["total_time"], abs=2)
    assert row["exposed_communication_ns"] == pytest.approx(told["exposed_comm_time"], abs=2)


@pytest.mark.parametrize(
    "name", ["bert_small_h100", "bert_small_mi300_rocm", "vit_h100", "torch_compile_triton"]
)
@needs_reports
def test_kernels_agree_with_tracelens(name: str) -> None:
    counts: Counter[str] = Counter()
    times: Counter[str] = Counter()
    with (KINETO / f"{name}.tracelens.kernel_summary.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            counts[row["Kernel name"]] += int(row["Kernel duration (µs)_count"])
            times[row["Kernel name"]] += float(row["Kernel duration (µs)_sum"])
    kernels = TorchTrace(KINETO / f"{name}.json.gz", use_cache=False).frame("kernels").to_pandas()
    lasted = (
        (kernels.end_ns - kernels.start_ns).groupby(kernels.name.astype(str)).agg(["count", "sum"])
    )
    shown = {kernel: counts[kernel] for kernel in lasted.index}
    assert shown == lasted["count"].to_dict()
    for kernel, total in lasted["sum"].items():
        assert total == pytest.approx(1000 * times[kernel], abs=1 + counts[kernel])


@needs_reports
def test_what_a_trace_says_of_itself() -> None:
    report = nsightpy.open_report(KINETO / "rank0_of2_nccl_a100.json.gz", use_cache=False)
    assert report.kind == "torch"
    assert report.session.start_utc == "2024-05-23T00:15:22.416788Z"
    assert report.session.host == ""
    assert report.pids == [2910249]
    assert report.rank_of(2910249) == (0, "distributedInfo")
    collectives = report.frame("collectives")
    assert collectives.rows == 21
    first = collectives.to_pandas().iloc[0]
    assert (first.operation, first.communicator, first.group_size) == ("Broadcast", "0[0,1]", 2)
    assert (first.bytes, first.data_type, first.group_rank) == (53120 * 4, "f32", 0)
    assert (first.evidence, first.kernel) == (
        "arguments",
        "ncclKernel_Broadcast_RING_LL_Sum_int8_t",
    )


@needs_reports
def test_waits_name_the_recording_they_wait_for() -> None:
    report = TorchTrace(KINETO / "event_sync_multi_stream.json.gz", use_cache=False)
    waits = report.frame("synchronizations").to_pandas()
    (wait,) = waits[waits.kind == "stream wait"].itertuples()
    assert (wait.stream, wait.event_sync_id) == (24, 1385)
    events = report.frame("cuda_events").to_pandas()
    assert list(events[events.event_sync_id == 1385].stream) == [20]


@needs_reports
def test_ranks_of_traces_make_a_set() -> None:
    ranks = open_ranks(RANKS_OF_128, use_cache=False)
    ranks.find_ranks()
    assert [list(report.ranks.values()) for report in ranks] == [
        [(0, "distributedInfo")],
        [(1, "distributedInfo")],
    ]
    rows = nsightpy.kernels(RANKS_OF_128, by="rank", use_cache=False).records()
    counts = Counter({0: 0, 1: 0})
    for row in rows:
        counts[row["rank"]] += row["Instances"]
    assert counts == {0: 1154, 1: 1104}


@needs_reports
def test_allocations_of_the_allocator() -> None:
    path = KINETO / "vit_h100.json.gz"
    text = json.loads(gzip.decompress(path.read_bytes()))
    events = [e["args"] for e in text["traceEvents"] if e.get("name") == "[memory]"]
    frame = TorchTrace(path, use_cache=False).frame("memory_usage").to_pandas()
    assert len(frame) == len(events) == 620
    device = frame[frame.memory == "Device"]
    signed = np.where(device.operation == "free", -device.bytes, device.bytes)
    assert signed.sum() == sum(e["Bytes"] for e in events if e["Device Type"] == 1)


@pytest.mark.parametrize("name", ["bert_small_h100", "bert_small_mi300_rocm", "vit_h100"])
@needs_reports
def test_live_memory_is_what_the_allocator_said(name: str) -> None:
    path = KINETO / f"{name}.json.gz"
    text = json.loads(gzip.decompress(path.read_bytes()))
    events = [e for e in text["traceEvents"] if e.get("name") == "[memory]"]
    told = [e["args"] for e in events if e["args"]["Device Type"] != 0]
    found = nsightpy.memory_usage([path], use_cache=False)
    (series,) = [one for one in found.series if one.memory == "Device"]
    before = told[0]["Total Allocated"] - told[0]["Bytes"]
    live = [before, *(one["Total Allocated"] for one in told)]
    assert series.live[0] == before
    assert set(series.live) <= set(live)
    assert max(series.live) == max(live)
    assert series.live[-1] == told[-1]["Total Allocated"]
    assert set(series.reserved) == {one["Total Reserved"] for one in told}
    rows = [row for row in found.records() if row["memory"] == "Device"]
    assert {row["peak_bytes"] for row in rows} == {max(live)}
    assert sum(row["at_peak_bytes"] for row in rows) == max(live)
    assert sum(row["at_end_bytes"] for row in rows) == live[-1]
    # every allocation was made by an operator
    (first,) = [row for row in rows if row["allocations"] is None]
    assert first["allocated_by"] == "(before the capture)"
    others = [row for row in rows if row is not first]
    assert all(row["allocated_by"].startswith("aten::") for row in others)
    assert sum(row["allocations"] for row in others) == sum(e["Bytes"] > 0 for e in told)


@pytest.mark.parametrize(
    ("arguments", "peer", "communicator"),
    [
        # ranks of the job, of the group, and a number that may be either
        ({"Collective name": "send", "Dst Rank": 6, "Process Group Ranks": "[2, 6]"}, 1, "p[2,6]"),
        ({"Collective name": "recv", "Src Rank": 1, "Process Group Ranks": "[2, 6]"}, 1, "p[2,6]"),
        ({"Collective name": "recv", "Src Rank": 3, "Process Group Ranks": "[0,1,2,3]"}, 3, None),
        ({"Collective name": "send", "Dst Rank": 1, "Process Group Ranks": "[2, 3, 1]"}, -1, None),
        ({"Collective name": "send", "Process Group Ranks": "[2, 6]"}, -1, None),
        ({"Collective name": "send", "Dst Rank": "4", "Comms Id": "77"}, 4, "77"),
    ],
)
def test_point_to_point_names_its_peer(
    arguments: dict[str, object], peer: int, communicator: str | None, tmp_path: Path
) -> None:
    told = {"device": 0, "stream": 7, "correlation": 1, "dtype": "Float", "In msg nelems": 8}
    if "Process Group Ranks" in arguments:
        told["Process Group Name"] = "p"
    kernel = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv", "pid": 0, "tid": 7}
    event = kernel | {"ts": 10.5, "dur": 4, "args": told | arguments}
    path = tmp_path / "one.pt.trace.json"
    header = {"schemaVersion": 1, "distributedInfo": {"rank": 2}, "traceEvents": [event]}
    path.write_text(json.dumps(header), encoding="utf-8")
    (row,) = TorchTrace(path, use_cache=False).frame("collectives").to_pandas().itertuples()
    assert (row.operation, row.bytes, row.peer) == ("SendRecv", 32, peer)
    if communicator is not None:
        assert row.communicator == communicator
