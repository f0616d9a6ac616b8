"""PyTorch traces: every figure equals a plain computation from the JSON, on every real trace."""

import csv
import gzip
import json
from pathlib import Path
from typing import NamedTuple

import pytest

import nsightpy
from nsightpy import frames
from nsightpy.commands.breakdown.command import breakdown
from nsightpy.reports.profiles import TorchTrace
from tests.support.plain_trace import CALLS, KINETO, TRACES, Event, load, of
from tests.support.reports import needs_reports
from tests.support.trace_events import event

pytestmark = pytest.mark.slow


class Loaded(NamedTuple):
    """One real trace: read the plain way, and by nsightpy."""

    events: list[Event]
    report: TorchTrace


@pytest.fixture(
    scope="module",
    params=[pytest.param(path, id=path.name.partition(".")[0]) for path in TRACES]
    or [pytest.param(None, marks=needs_reports, id="none")],
)
def trace(request: pytest.FixtureRequest) -> Loaded:
    return Loaded(load(request.param), TorchTrace(request.param, use_cache=False))


def tracelens(name: str, sheet: str) -> list[dict[str, str]]:
    """What TraceLens made of a trace."""
    with (KINETO / f"{name}.tracelens.{sheet}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_kernels_and_calls_are_those_of_the_file(trace: Loaded) -> None:
    report, events = trace.report, trace.events
    timed = (
        e.start for e in events if e.category not in ("python_function", "overhead", "cuda_sync")
    )
    zero = min(timed, default=0)
    kernels = report.frame("kernels").tuples("start_ns", "end_ns", "name", "stream")
    assert sorted(kernels) == sorted(
        (e.start - zero, e.end - zero, e.name, e.args["stream"]) for e in of(events, "kernel")
    )
    calls = report.frame("api_calls").tuples("start_ns", "correlation_id")
    assert sorted(calls) == sorted(
        (e.start - zero, e.args["correlation"]) for e in of(events, *CALLS)
    )
    assert report.frame("memory_operations").rows == len(of(events, "gpu_memcpy", "gpu_memset"))
    assert report.frame("python_functions").rows == len(of(events, "python_function"))
    ends = [e.end for e in events if e.category != "overhead"]
    assert report.session.duration_ns == max(ends) - zero


def test_every_frame_has_its_columns(trace: Loaded) -> None:
    for schema in (*frames.SCHEMAS.values(), frames.COLLECTIVES):
        for names in (schema.names, schema.names[:2]):
            assert tuple(trace.report.frame(schema.name, names)) == names
    with pytest.raises(KeyError):
        trace.report.frame("no_such_frame")


@pytest.mark.parametrize("name", ["bert_small_h100", "bert_small_mi300_rocm", "vit_h100"])
@needs_reports
def test_operators_agree_with_tracelens(name: str) -> None:
    rows = tracelens(name, "ops_summary")
    table = nsightpy.operators([KINETO / f"{name}.json.gz"], use_cache=False)
    found = {row["operator"]: row for row in table.records()}
    for row in rows:
        times = found[row["name"]]
        # TraceLens subtracts in float64 microseconds
        for own, theirs in (("device_self_ns", "direct"), ("device_total_ns", "subtree")):
            total = 1000 * float(row[f"total_{theirs}_kernel_time_sum"])
            assert times[own] == pytest.approx(total, abs=2 * int(row["Count"]))
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
    told = {row["type"]: 1e6 * float(row["time ms"]) for row in tracelens(name, "gpu_timeline")}
    (row,) = breakdown([KINETO / f"{name}.json.gz"], use_cache=False).records()
    # TraceLens adds float64 microseconds since the machine's start
    assert row["busy_ns"] == pytest.approx(told["busy_time"], abs=10)
    assert row["idle_ns"] == pytest.approx(told["idle_time"], abs=10)
    assert row["window_ns"] == pytest.approx(told["total_time"], abs=2)
    assert row["exposed_communication_ns"] == pytest.approx(told["exposed_comm_time"], abs=2)


@needs_reports
def test_what_a_trace_says_of_itself() -> None:
    report = TorchTrace(KINETO / "rank0_of2_nccl_a100.json.gz", use_cache=False)
    assert report.session.start_utc == "2024-05-23T00:15:22.416788Z"
    assert (report.session.host, report.pids) == ("", [2910249])
    assert report.rank_of(2910249) == (0, "distributedInfo")
    collectives = report.frame("collectives").to_pandas()
    assert len(collectives) == 21
    wanted = {
        "operation": "Broadcast",
        "communicator": "0[0,1]",
        "group_size": 2,
        "group_rank": 0,
        "bytes": 53120 * 4,
        "data_type": "f32",
        "evidence": "arguments",
    }
    assert collectives.iloc[0][list(wanted)].to_dict() == wanted


@needs_reports
def test_waits_name_the_recording_they_wait_for() -> None:
    report = TorchTrace(KINETO / "event_sync_multi_stream.json.gz", use_cache=False)
    waits = report.frame("synchronizations").tuples("kind", "stream", "event_sync_id")
    assert [rest for kind, *rest in waits if kind == "stream wait"] == [[24, 1385]]
    events = report.frame("cuda_events").tuples("event_sync_id", "stream")
    assert [stream for number, stream in events if number == 1385] == [20]


@pytest.mark.parametrize("name", ["bert_small_h100", "bert_small_mi300_rocm", "vit_h100"])
@needs_reports
def test_live_memory_is_what_the_allocator_said(name: str) -> None:
    path = KINETO / f"{name}.json.gz"
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    told = [e["args"] for e in events if e.get("name") == "[memory]"]
    told = [one for one in told if one["Device Type"] != 0]
    found = nsightpy.memory_usage([path], use_cache=False)
    (series,) = [one for one in found.series if one.memory == "Device"]
    before = told[0]["Total Allocated"] - told[0]["Bytes"]
    live = [before, *(one["Total Allocated"] for one in told)]
    assert set(series.live) <= set(live)
    assert (series.live[0], max(series.live), series.live[-1]) == (before, max(live), live[-1])
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
    told |= {"Process Group Name": "p"} if "Process Group Ranks" in arguments else {}
    kernel = event("kernel", "ncclDevKernel_SendRecv", 10.5, 4, **(told | arguments))
    header = {"schemaVersion": 1, "distributedInfo": {"rank": 2}, "traceEvents": [kernel]}
    path = tmp_path / "one.pt.trace.json"
    path.write_text(json.dumps(header), encoding="utf-8")
    (row,) = TorchTrace(path, use_cache=False).frame("collectives").to_pandas().itertuples()
    assert (row.operation, row.bytes, row.peer) == ("SendRecv", 32, peer)
    assert communicator in (None, row.communicator)
