"""operators, their FLOP and modules; kernels --by line: where kernels were launched."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import nsightpy
from nsightpy.analysis.operators.flop import operator_flop, peak_flop_per_s
from nsightpy.frames import Frame, Labels
from nsightpy.results import Table, number
from tests.support.plain_trace import KINETO, load, of
from tests.support.reports import NSYS, needs_reports
from tests.support.trace_events import AUTOGRAD, FORWARD, Event, event, launch, operator, written


def one_operator(name: str, shapes: object, inputs: object = ()) -> Frame:
    return Frame(
        {
            "name": Labels.of([name]),
            "shapes": Labels.of([json.dumps(shapes)]),
            "inputs": Labels.of([json.dumps(inputs)]),
            "parent": np.asarray([-1]),
            "depth": np.asarray([0]),
        }
    )


FLASH = "_scaled_dot_product_flash_attention"
CONVOLUTION = ["", "", "", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1"]
IMAGES = [[2, 3, 224, 224], [64, 3, 7, 7], []]
ATTENTION = [[2, 8, 128, 64], [2, 8, 256, 64], [2, 8, 256, 32]]


@pytest.mark.parametrize(
    ("name", "shapes", "inputs", "flop"),
    [
        ("mm", [[3, 5], [5, 7]], [], 2 * 3 * 5 * 7),
        ("addmm", [[7], [3, 5], [5, 7], [], []], [], 2 * 3 * 5 * 7),
        ("bmm", [[4, 3, 5], [4, 5, 7]], [], 2 * 4 * 3 * 5 * 7),
        ("mm", [[3, 5], [6, 7]], [], None),
        ("mm", [], [], None),
        ("relu", [[3, 5]], [], None),
        # 224 x 224 pixels, 7 x 7 filter, stride 2, padding 3: 112 x 112 remain (ResNet's first)
        ("convolution", IMAGES, CONVOLUTION, 2 * 2 * 64 * 112 * 112 * 3 * 49),
        ("convolution", IMAGES, [], None),
        (FLASH, ATTENTION, [], 2 * 2 * 8 * 128 * 256 * (64 + 32)),
        (
            *(f"{FLASH}_backward", [[2, 8, 128, 32], *ATTENTION], []),
            2 * 2 * 8 * 128 * 256 * (3 * 64 + 2 * 32),
        ),
    ],
)
def test_flop_by_shapes(name: str, shapes: object, inputs: object, flop: int | None) -> None:
    (found,) = operator_flop(one_operator(f"aten::{name}", shapes, inputs)).tolist()
    assert np.isnan(found) if flop is None else found == flop


def test_an_operator_under_one_that_counts_does_not_count() -> None:
    twice = Frame.concatenate([one_operator("aten::mm", [[2, 2], [2, 2]])] * 2)
    nested = Frame({**twice, "parent": np.asarray([-1, 0]), "depth": np.asarray([0, 1])})
    first, second = operator_flop(nested).tolist()
    assert first == 16
    assert np.isnan(second)


@pytest.mark.parametrize(
    ("gpu", "types", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", ["c10::BFloat16", "c10::BFloat16"], 989.4e12),
        ("NVIDIA A100-SXM4-80GB", ["c10::Half", "Scalar"], 312e12),
        ("NVIDIA A100-SXM4-80GB", ["float", "float"], None),
        ("NVIDIA GeForce RTX 9999", ["c10::Half"], None),
        ("", ["c10::Half"], None),
    ],
)
def test_peaks_are_known_or_not(gpu: str, types: list[str], peak: float | None) -> None:
    assert peak_flop_per_s(gpu, json.dumps(types)) == peak


def test_operators_are_sorted_and_own_times_are_shares_of_all() -> None:
    table = nsightpy.operators("sample_reports/torch_2rank", sort="calls", top=0)
    calls = [number(count) for count in table.column("calls")]
    assert calls == sorted(calls, reverse=True)
    assert calls[0] > calls[-1]
    for kind in ("host_self", "device_self"):
        times = np.asarray(table.column(f"{kind}_ns"), dtype=float)
        shares = np.asarray(table.column(f"{kind}_share"), dtype=float)
        assert np.allclose(shares, times / times.sum())


def module(name: str, at: float, length: float) -> Event:
    return event("python_function", f"nn.Module: {name}", at, length)


def a_training_step() -> list[Event]:
    """Net calls Linear_0 and Linear_1; each has a backward operator, and one has none."""
    return [
        module("Net_0", 0, 100),
        module("Linear_0", 10, 20),
        operator("aten::linear", 12, 10, 1, **{"Fwd thread id": 0}),
        operator("aten::addmm", 13, 8, 1, **{"Fwd thread id": 0}),
        *launch(1, 14, 5),
        module("Linear_1", 40, 20),
        operator("aten::linear", 42, 10, 2, **{"Fwd thread id": 0}),
        *launch(2, 44, 7),
        *launch(3, 80, 2),  # Net's own
        *launch(4, 150, 3),  # an optimizer, in no module
        operator("AddmmBackward0", 200, 20, 2, AUTOGRAD, **{"Fwd thread id": 1}),
        operator("aten::mm", 205, 10, -1, AUTOGRAD),
        *launch(5, 206, 11, AUTOGRAD),
        operator("AddmmBackward0", 240, 20, 1, AUTOGRAD, **{"Fwd thread id": 1}),
        *launch(6, 246, 13, AUTOGRAD),
        operator("AccumulateGrad", 280, 20, 9, AUTOGRAD, **{"Fwd thread id": 1}),
        *launch(7, 286, 17, AUTOGRAD),  # of no forward operator
    ]


def test_backward_operators_belong_to_the_module_of_their_forward_one(tmp_path: Path) -> None:
    path = written(a_training_step(), tmp_path)
    table = nsightpy.operators(path, by="module", use_cache=False)
    threads = nsightpy.operators(path, by="thread", use_cache=False).column("thread")
    assert set(threads) == {FORWARD, AUTOGRAD}
    shown = {
        row["module"]: (row["device_total_ns"], row["device_self_ns"], row["attributed_ns"])
        for row in table.records()
    }
    assert list(shown) == ["Net_0", "Net_0/Linear_0", "Net_0/Linear_1"]  # 18 us and 18 us: by name
    assert shown == {
        "Net_0": (14_000, 2_000, 24_000),
        "Net_0/Linear_0": (5_000, 5_000, 13_000),
        "Net_0/Linear_1": (7_000, 7_000, 11_000),
    }
    (outside,) = [note for note in table.notes if "in no module" in note]
    assert outside.startswith("20.0 us of 58.0 us of device work (34.5 %)")


@pytest.mark.parametrize("name", ["bert_small_h100", "vit_h100", "rank0_of8_b200"])
@needs_reports
def test_device_time_of_real_modules(name: str) -> None:
    path = KINETO / f"{name}.json.gz"
    rows = nsightpy.operators(path, by="module", use_cache=False).records()
    events = load(path)
    modules = [e for e in of(events, "python_function") if e.name.startswith("nn.Module: ")]
    calls = {e.args["correlation"]: e for e in of(events, "cuda_runtime", "cuda_driver")}
    total: dict[str, int] = {}
    for work in of(events, "kernel", "gpu_memcpy", "gpu_memset"):
        call = calls.get(work.args["correlation"])
        for held in modules:
            if call and held.tid == call.tid and held.start <= call.start < held.end:
                name = held.name.removeprefix("nn.Module: ")
                total[name] = total.get(name, 0) + work.end - work.start
    shown: dict[str, int] = {}
    for row in rows:
        last = row["module"].rsplit("/", 1)[-1]
        shown[last] = shown.get(last, 0) + row["device_total_ns"]
    assert {name: time for name, time in shown.items() if time} == total
    assert total


@needs_reports
def test_ranges_of_nsys_are_modules_and_hold_the_backward_pass() -> None:
    path = NSYS / "train_nvtx_a100_2026.3.sqlite"
    rows = {row["module"]: row for row in nsightpy.operators(path, by="module").records()}
    ranges = {row["range"]: row for row in nsightpy.nvtx(path, tree=True).records()}
    assert rows.keys() == {name for name, row in ranges.items() if row["style"] == "PushPop"}
    # one stream: the sum of its operations is the time in which any of them ran
    backward = "profile/backward pass"
    assert rows[backward]["attributed_ns"] == ranges[backward]["attributed_ns"]
    assert ranges[backward]["share_of_busy"] == pytest.approx(0.622, abs=0.0005)
    for name, row in ranges.items():
        share = rows[name]["share_of_device_time"]
        assert row["share_of_busy"] == pytest.approx(share, abs=1e-9), name


def test_a_report_without_modules_says_so(tmp_path: Path) -> None:
    path = written([e for e in a_training_step() if e["cat"] != "python_function"], tmp_path)
    answer = nsightpy.operators(path, by="module", use_cache=False)
    assert not answer.rows
    assert [str(note) for note in answer.notes] == [
        "The capture holds no modules. Record them with_stack (or with_modules)."
    ]


PYTHON = "python_function"


def a_step() -> list[Event]:
    graph = [*launch(6, 90, 32), event("kernel", "node", 700, 64, correlation=6, stream=7)]
    graph[0]["name"] = "cudaGraphLaunch"
    return [
        event(PYTHON, "/home/me/job/train.py(9): step", 0, 120),
        event(PYTHON, "/home/me/job/model.py(252): forward", 10, 40),
        event(PYTHON, "nn.Module: Linear_0", 11, 30),
        event(PYTHON, "torch/nn/modules/linear.py(124): forward", 12, 28),
        event(PYTHON, "<built-in method linear of type object at 0x7f>", 13, 20),
        operator("aten::linear", 14, 10, 1, **{"Fwd thread id": 0}),
        *launch(1, 15, 1),
        event(PYTHON, "contextlib.py(299): helper", 60, 10),
        *launch(2, 61, 2),
        *graph,
        event(PYTHON, "/usr/lib/python3.12/site-packages/apex/optim.py(7): step", 200, 20),
        *launch(3, 205, 4),
        operator("AddmmBackward0", 300, 20, 1, AUTOGRAD, **{"Fwd thread id": 1}),
        operator("aten::mm", 305, 10, -1, AUTOGRAD),
        *launch(4, 306, 8, AUTOGRAD),
        *launch(5, 400, 16, AUTOGRAD),
    ]


def by_line(table: Table) -> Counter[str | None]:
    times: Counter[str | None] = Counter()
    for row in table.records():
        times[row["line"]] += int(number(row["Total Time (ns)"]))  # type: ignore[index]
    return times


def test_kernels_have_the_line_of_the_program_around_their_launch(tmp_path: Path) -> None:
    table = nsightpy.kernels(written(a_step(), tmp_path), by="line", use_cache=False)
    assert by_line(table) == {
        "job/model.py:252 forward": 9_000,  # the forward kernel, and that of its backward operator
        "job/train.py:9 step": 2_000,
        "job/train.py:9 step (graph replay)": 96_000,
        "apex/optim.py:7 step": 4_000,
        None: 16_000,
    }
    (note,) = [note for note in table.notes if "has a line" in note]
    assert note.startswith("87.4 % of the kernels' time has a line: the innermost Python function")


def test_findings_about_a_kernel_say_which_line_launched_it(tmp_path: Path) -> None:
    trace = written([*a_step(), *launch(9, 45, 3_000)], tmp_path)
    rows = nsightpy.findings(trace, use_cache=False).records()
    (told,) = [str(row["evidence"]) for row in rows if row["id"] == "dominating-kernel"]
    assert told.endswith("; most of it from job/model.py:252 forward")


def test_without_stacks_a_line_is_a_range_or_missing(tmp_path: Path) -> None:
    events = [each for each in a_step() if each["cat"] != PYTHON]
    silent = nsightpy.kernels(written(events, tmp_path), by="line", use_cache=False)
    assert not silent.rows
    assert "holds no lines of the program. Record them with_stack." in " ".join(silent.notes)
    ranges = [event("user_annotation", "## forward ##", 5, 50), *events]
    named = nsightpy.kernels(written(ranges, tmp_path), by="line", use_cache=False)
    assert by_line(named)["## forward ##"] == 1_000
    assert "the innermost code range" in " ".join(named.notes)
