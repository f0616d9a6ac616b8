"""NCCL operations: arguments of their calls, ranks that took part, rates, abnormal ones."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulator import PRESETS, Export, TrainingJob

from nsightpy import open_report
from nsightpy.analysis.ranks.collective_groups import beyond_usual, middle
from nsightpy.commands.collectives import collectives
from nsightpy.readers.nccl.names import Payload, json_fields, parse_kernel
from tests.support.jobs import on_two_nodes, simulate, split_by_process
from tests.support.reports import DDP, NSYS, ask, needs_reports, rows_of

BIG = 0xFEDC_BA98_7654_3210
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
MOVE = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)"

NAMES = {
    "ncclAllReduceRingLLKernel_sum_f32(ncclColl)": ("AllReduce", "f32"),
    "ncclBroadcastTreeLL128Kernel_copy_i8(ncclColl)": ("Broadcast", "i8"),
    "ncclSendRecvKernel_copy_i8": ("SendRecv", "i8"),
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, ncclWork*)": ("AllReduce", "f32"),
    "ncclKernel_ReduceScatter_RING_LL_Sum___nv_bfloat16": ("ReduceScatter", "bf16"),
    "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t": ("SendRecv", "i8"),
    "ncclDevKernel_AllGather_RING_LL(ncclDevComm*)": ("AllGather", ""),
    "ncclDevKernel_AllGatherV_RING_LL": ("AllGatherV", ""),
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL": ("AllReduce", "bf16"),
    "ncclDevKernel_Reduce_Sum_f8e4m3_RING_LL": ("Reduce", "f8e4m3"),
    "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096>)": ("Generic", ""),
    "ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_f16": ("AllReduce", "f16"),
    "ncclSymkDevKernel_ReduceScatter_LDMC_sum_f32": ("ReduceScatter", "f32"),
    # of other libraries
    "cross_device_reduce_1stage": ("AllReduce", ""),
    "vllm::cross_device_reduce_2stage": ("AllReduce", ""),
    "multimem_all_reduce_kernel": ("AllReduce", ""),
    "one_shot_all_reduce_kernel": ("AllReduce", ""),
    "tensorrt_llm::kernels::twoShotAllReduceKernel": ("AllReduce", ""),
    "lamport_style_one_shot_all_reduce_norm_kernel": ("AllReduce", ""),
    "allreduce_fusion_kernel_oneshot_lamport": ("AllReduce", ""),
    "quickreduce::allreduce_prototype_twoshot": ("AllReduce", ""),
    "multimem_all_gather_kernel": ("AllGather", ""),
    **dict.fromkeys(("void nccl_made_up(int)", "gemm_kernel", "reduce_1Block_kernel")),
    "all_reduce_norm_backward": None,
}


@pytest.mark.parametrize("name", NAMES)
def test_kernel_names_of_all_generations(name: str) -> None:
    assert parse_kernel(name) == NAMES[name]


def test_payloads_of_all_generations() -> None:
    plain = json_fields('{"NCCL communicator ID":18364758544493064720,"Message size [bytes]":24}')
    assert Payload.of(plain) == Payload(communicator=str(BIG), bytes=24)
    generic = json_fields('{"data":[{"NCCL communicator ID":{"uint64":7}},{"Root":{"int32":1}}]}')
    assert Payload.of(generic) == Payload(communicator="7", root=1)
    signed = Payload.of({"NCCL communicator ID": BIG - 2**64})
    assert signed.communicator == str(BIG)
    assert json_fields("no json") == json_fields("[1]") == {}
    traced = {"commHash": hex(BIG), "count": 100, "dataType": "ncclFloat32", "seqNumber": 9}
    assert Payload.of(traced) == Payload(communicator=str(BIG), bytes=400, sequence=9)
    assert Payload.of({"Message size [bytes]": None}).bytes == -1


def frame_of(path: Path) -> list[dict[str, Any]]:
    """The collectives frame as records."""
    return open_report(path).collectives.to_dict("records")


def export_of(path: Path) -> Export:
    """An export of one process with NCCL's domain."""
    export = Export(path / "a.sqlite")
    export.nvtx_domain("NCCL", process=export.process())
    return export


def call(export: Export, at: int, text: str, payload: Mapping[str, object] | None = None) -> int:
    """A range of NCCL's, 100 ns long; returns when something in it can be launched."""
    export.nvtx_push_pop(at, at + 100, text, domain=1, registered=True, payload=payload)
    return at + 10


def launched(export: Export, at: int, name: str, start: int, **more: Any) -> None:
    export.kernel(start, start + 50, name, launch=(at, at + 20), stream=21, **more)


def test_payloads_of_a_job(tmp_path: Path) -> None:
    paths, truth = PRESETS["pipeline_4"].write(tmp_path)
    found = [row for path in paths for row in frame_of(path)]
    known = {str(group["communicator"]): group["ranks"] for group in truth["groups"]}
    assert max(map(int, known)) > 2**63
    for row in found:
        assert row["group_size"] == len(known[row["communicator"]])
        assert row["evidence"] == ("group" if row["operation"] == "SendRecv" else "range")


def test_a_group_of_calls_shares_its_launch(tmp_path: Path) -> None:
    export = export_of(tmp_path)
    same = {"NCCL communicator ID": BIG}
    call(export, 1_000, "ncclGroupStart")
    call(export, 1_100, "ncclGroupStart")
    call(export, 1_200, "ncclSend", same | {"Message size [bytes]": 30, "Peer rank": 1})
    call(export, 1_400, "ncclRecv", same | {"Message size [bytes]": 50, "Peer rank": 1})
    call(export, 1_600, "ncclAllReduce", same | {"Message size [bytes]": 8})
    call(export, 1_800, "ncclGroupEnd")
    launch = call(export, 2_000, "ncclGroupEnd")
    launched(export, launch, MOVE, 3_000)
    launched(export, launch + 30, REDUCE, 3_100)
    launched(export, launch + 60, REDUCE, 3_200)
    moved, reduced = frame_of(export.write())
    figures = ("operation", "bytes", "peer", "calls")
    assert [moved[name] for name in figures] == ["SendRecv", 50, 1, 2]
    assert [reduced[name] for name in figures] == ["AllReduce", 8, -1, 1]
    assert (reduced["start_ns"], reduced["end_ns"]) == (3_100, 3_250), "split, but one operation"
    assert {moved["evidence"], reduced["evidence"]} == {"group"}


def test_a_call_that_never_ends_launches_what_comes_in_it(tmp_path: Path) -> None:
    export = export_of(tmp_path)
    told = {"NCCL communicator ID": 7, "Message size [bytes]": 64}
    export.nvtx_push_pop(1_000, None, "ncclAllReduce", domain=1, registered=True, payload=told)
    launched(export, 1_010, REDUCE, 3_000)
    (row,) = frame_of(export.write())
    assert (row["bytes"], row["communicator"]) == (64, "7")


def test_groups_of_several_communicators_go_by_device_or_order(tmp_path: Path) -> None:
    export = export_of(tmp_path)
    for place, number in enumerate((7, 8)):
        made = {"NCCL communicator ID": number, "No. of ranks": 2, "Rank": place}
        call(export, 100 + place * 200, "ncclCommInitRank", made | {"CUDA device": place})
    call(export, 1_000, "ncclGroupStart")
    call(export, 1_200, "ncclAllReduce", {"NCCL communicator ID": 7, "Message size [bytes]": 4})
    call(export, 1_400, "ncclAllReduce", {"NCCL communicator ID": 8, "Message size [bytes]": 4})
    launch = call(export, 1_800, "ncclGroupEnd")
    launched(export, launch, REDUCE, 3_000, device=1)
    launched(export, launch + 30, REDUCE, 3_000, device=0)
    rows = {row["device"]: row for row in frame_of(export.write())}
    assert [rows[device]["communicator"] for device in (0, 1)] == ["7", "8"]
    assert [rows[device]["group_rank"] for device in (0, 1)] == [0, 1]


def test_the_layout_of_advanced_tracing(tmp_path: Path) -> None:
    export = export_of(tmp_path)
    told = {"commHash": BIG, "count": 10, "dataType": "ncclBfloat16", "seqNumber": 5}
    export.nvtx_push_pop(1_000, 2_000, "API Group", domain=1)
    export.nvtx_push_pop(1_100, 1_200, "AllReduce", domain=1, payload=told)
    export.nvtx_push_pop(1_300, 1_900, "GroupLaunch", domain=1)
    export.nvtx_push_pop(1_400, 1_800, "KernelLaunch", domain=1)
    on_gpu = told | {"operationId": 1, "seqNumber": 99}
    export.nvtx_push_pop(1_410, 1_700, "AllReduce", domain=1, payload=on_gpu)
    export.nvtx_push_pop(5_000, 5_900, "AllReduce")  # somebody's own range
    launched(export, 1_500, REDUCE, 3_000)
    launched(export, 5_100, REDUCE, 6_000)
    traced, plain = frame_of(export.write())
    assert (traced["communicator"], traced["bytes"], traced["sequence"]) == (str(BIG), 20, 5)
    assert (plain["operation"], plain["communicator"], plain["bytes"]) == ("AllReduce", "", -1)
    assert (plain["evidence"], plain["data_type"]) == ("kernel name", "f32")


def test_sequence_numbers_are_those_of_one_operation(tmp_path: Path) -> None:
    # two ranks in two processes; the second misses the first AllReduce, as late captures do
    export = Export(tmp_path / "a.sqlite")
    gather = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
    for rank, pid in enumerate((1000, 2000)):
        process = export.process(pid)
        export.nvtx_domain("NCCL", process=process)
        for number in range(rank, 4):
            for place, (kind, kernel) in enumerate((("AllReduce", REDUCE), ("AllGather", gather))):
                at = 10_000 * number + 1_000 * place
                told = {"commHash": BIG, "count": 10, "dataType": "ncclFloat32"}
                told |= {"seqNumber": number, "commRank": rank}
                export.nvtx_push_pop(at, at + 100, kind, domain=1, process=process, payload=told)
                late = 10**8 + 300 * rank * place
                export.kernel(
                    at + late, 10**8 + at + 900, kernel, launch=(at + 10, at + 20), process=process,
                    device=rank, stream=21,
                )  # fmt: skip
    rows = {row["operation"]: row for row in collectives(export.write()).records()}
    assert {kind: row["instances"] for kind, row in rows.items()} == dict.fromkeys(rows, 3)
    assert rows["AllGather"]["transfer_med_ns"] == 600
    assert rows["AllGather"]["bytes"] == 2 * 40
    assert rows["AllGather"]["algbw_gb_per_s"] == pytest.approx(80 / 600)
    assert rows["AllGather"]["busbw_gb_per_s"] == pytest.approx(40 / 600)
    assert (rows["AllReduce"]["transfer_med_ns"], rows["AllReduce"]["bytes"]) == (900, 40)


def test_other_threads_and_processes_are_not_confused(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    first, second = export.process(1000), export.process(2000)
    for process, size in ((first, 4), (second, 8)):
        export.nvtx_domain("NCCL", process=process)
        payload = {"NCCL communicator ID": 7, "Message size [bytes]": size}
        export.nvtx_push_pop(
            1_000, 1_100, "ncclAllReduce", domain=1, process=process, payload=payload
        )
        export.kernel(3_000, 3_100, REDUCE, launch=(1_010, 1_020), process=process, correlation=77)
    export.kernel(4_000, 4_100, REDUCE, launch=(1_030, 1_040, 1_001), process=first)
    rows = [(row["pid"], row["bytes"], row["evidence"]) for row in frame_of(export.write())]
    assert rows == [(1000, 4, "range"), (2000, 8, "range"), (1000, -1, "kernel name")]


def grouped_jobs() -> Iterator[tuple[str, TrainingJob]]:
    """Jobs whose groups work in lockstep, on two nodes; others with and without payload."""
    for layout in ((2, 2, 1), (4, 2, 1), (2, 4, 1), (1, 8, 1), (2, 2, 2), (4, 2, 2), (8, 4, 1)):
        for seed in (1, 2):
            more = {"seed": seed, "microbatches": layout[2], "sharded": seed == 2}
            yield f"{layout}, {seed}", on_two_nodes(*layout, payload=None, iterations=8, **more)
    for name in ("ranks_8", "training_4rank", "pipeline_4"):
        for payload in ("json", None):
            yield f"{name}, {payload}", replace(PRESETS[name], payload=payload)


@pytest.mark.slow
@pytest.mark.parametrize("job", [pytest.param(job, id=name) for name, job in grouped_jobs()])
def test_groups_are_the_true_ones(tmp_path: Path, job: TrainingJob) -> None:
    reports = simulate(job, tmp_path)
    alignment = reports.alignment()
    found, truth = reports.groups(alignment)
    assert found == truth
    assert alignment.instances.count == len(reports.truth["collectives"])


@pytest.mark.slow
def test_bandwidths_are_those_of_nccl_tests(tmp_path: Path) -> None:
    job = simulate(replace(PRESETS["pipeline_4"], data=4, straggler=1), tmp_path)
    true: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for one in job.truth["collectives"]:
        kind = (one["operation"], one["total_bytes"], _shown(one["ranks"]))
        true[kind].append(one["busbw_gb_per_s"])
    rows = collectives(tmp_path).records()
    assert {row["operation"] for row in rows} == {kind for kind, *_ in true}
    for row in rows:
        usual = sorted(true[row["operation"], row["bytes"], row["group"]])
        assert row["instances"] == len(usual)
        assert row["busbw_gb_per_s"] == pytest.approx(usual[len(usual) // 2], rel=0.03)
        assert row["algbw_gb_per_s"] == pytest.approx(row["bytes"] / row["transfer_med_ns"])


def _shown(ranks: list[int]) -> str:
    run = list(range(ranks[0], ranks[-1] + 1)) == ranks and len(ranks) > 1
    return f"{ranks[0]}-{ranks[-1]}" if run else ",".join(map(str, ranks))


def test_no_payload_no_bandwidth_and_why(tmp_path: Path) -> None:
    simulate(replace(PRESETS["ranks_2"], payload=None), tmp_path)
    table = collectives(tmp_path)
    assert set(table.column("algbw_gb_per_s")) == set(table.column("bytes")) == {None}
    assert all(row["transfer_med_ns"] for row in table.records())
    assert any("--include-json true" in note for note in table.notes)


@pytest.mark.slow
def test_ranks_that_were_not_captured(tmp_path: Path) -> None:
    simulate(PRESETS["ranks_8"], tmp_path, lambda paths: paths[7].unlink())
    rows = {row["group"]: row for row in collectives(tmp_path).records()}
    assert rows["1,3,5,?"]["ranks"] == 4
    assert rows["0-6,?"]["ranks"] == 8
    lonely = rows["6,?"]
    assert lonely["transfer_med_ns"] is lonely["algbw_gb_per_s"] is lonely["last_rank"] is None
    assert lonely["instances"] == 40
    assert lonely["bytes"] == 16 * 2**20
    notes = collectives(tmp_path).notes
    assert any("were captured" in note for note in notes)
    assert lonely["abnormal"] == 9, "judged by its own durations"


@pytest.mark.parametrize(
    ("lengths", "sized", "abnormal"),
    [
        # median 100, median deviation 0: from twice the median on
        ([100] * 9 + [200, 201], True, [201]),
        # median 100, deviations 10: 100 + 8 x 1.4826 x 10 = 218.6
        ([90, 90, 90, 100, 110, 110, 110, 218, 219], True, []),
        ([80, 90, 90, 100, 100, 110, 110, 211, 225], True, [225]),
        # beyond twice the usual, and within what is usual of such scatter
        ([50, 100, 150] * 7 + [350], True, []),
        ([100] * 6 + [900], True, []),
        # five that are equally long may be of another size where sizes are not known
        ([100] * 20 + [900] * 5, True, [900] * 5),
        ([100] * 20 + [900] * 5, False, []),
        ([100] * 20 + [900, 905, 910, 920, 930, 5_000], False, [5_000]),
    ],
)
def test_what_is_abnormal(lengths: list[int], sized: bool, abnormal: list[int]) -> None:
    found, _ = beyond_usual(np.asarray(lengths), sized)
    assert np.asarray(lengths)[found].tolist() == abnormal


def test_how_long_an_instance_lasts() -> None:
    assert beyond_usual(np.asarray([100] * 9 + [200, 201]), sized=True)[1] == 100.0
    assert [middle(np.asarray(v)) for v in ([7], [1, 9], [1, 5, 9], [1, 2, 8, 9])] == [7, 9, 5, 8]


def test_one_process_of_many_devices(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.process()
    for step in range(21):
        for device in (0, 1):
            start = 1_000_000 * step + 10_000 * device
            end = 1_000_000 * step + (90_000 if step < 20 else 45_000_000)
            export.kernel(start, end, REDUCE, device=device, stream=21)
    table = collectives(export.write())
    (row,) = table.records()
    assert (row["ranks"], row["instances"], row["abnormal"]) == (2, 21, 1)
    assert row["last_share"] == 1
    assert str(row["last_rank"]).endswith("/1")
    assert (row["transfer_med_ns"], row["duration_med_ns"]) == (80_000, 90_000)


@needs_reports
@pytest.mark.parametrize("split", [False, True])
def test_the_real_pair(tmp_path: Path, split: bool) -> None:
    rows = collectives(split_by_process(NSYS / DDP, tmp_path) if split else NSYS / DDP).records()
    assert sum(row["instances"] for row in rows) == 230
    assert {row["operation"] for row in rows} == {"AllReduce", "Broadcast"}
    assert {(row["group"], row["ranks"]) for row in rows} == {("0-1", 2)}
    for row in rows:
        assert row["busbw_gb_per_s"] == pytest.approx(row["algbw_gb_per_s"])
        assert 0 < row["algbw_gb_per_s"] < 30, "two RTX 3090 over PCIe"


def test_groups_within_a_node_and_across_nodes(tmp_path: Path) -> None:
    """Tensor groups stay within a node, data groups cross; the network is six times slower."""
    job = on_two_nodes(2, 2, 1, payload="json")
    paths = simulate(job, tmp_path).paths
    found = rows_of("collectives", *paths, "--by", "node")
    by_group = rows_of("collectives", *paths)
    places = {(row["place"], row["operation"]): row for row in found}
    within = places["within a node", "AllReduce"]
    across = places["across nodes", "AllReduce"]
    assert (within["groups"], within["nodes"]) == (2, 2)
    assert across["nodes"] == 2
    reduces = [row for row in by_group if row["operation"] == "AllReduce"]
    inside = [row for row in reduces if row["group"] in ("0-1", "2-3")]
    assert within["instances"] == sum(row["instances"] for row in inside)
    assert within["bytes"] == sum(row["instances"] * row["bytes"] for row in inside)
    total = sum(row["instances"] for row in reduces)
    assert within["instances"] + across["instances"] == total
    assert within["busbw_gb_per_s"] == pytest.approx(job.bandwidth_in_node, rel=0.3)
    assert across["busbw_gb_per_s"] == pytest.approx(job.bandwidth_between_nodes, rel=0.15)
    assert all(0 <= row["wait_share"] < 1 for row in found)
    half = ask("collectives", *paths[:2], "--by", "node", "--format", "json").json
    assert {row["place"] for row in half["rows"]} == {"within a node", "not known"}
    assert any("they may cross nodes" in note for note in half["notes"])
    assert rows_of("collectives", paths[0], "--by", "node") == []
