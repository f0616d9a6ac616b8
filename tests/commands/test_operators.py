"""What is worked out from operators: modules, FLOP by shapes, steps of inference engines."""

from __future__ import annotations

import json

import numpy as np
import pytest

import nsightpy
from nsightpy.analysis.operators.flop import operator_flop, peak_flop_per_s
from nsightpy.analysis.operators.inference import Batch, batch_of
from nsightpy.errors import UsageError
from nsightpy.frames import Frame, Labels
from tests.support.plain_trace import KINETO, load, of
from tests.support.reports import needs_reports


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


CONVOLUTION = ["", "", "", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1"]
ATTENTION = [[2, 8, 128, 64], [2, 8, 256, 64], [2, 8, 256, 32]]


@pytest.mark.parametrize(
    ("name", "shapes", "inputs", "flop"),
    [
        ("aten::mm", [[3, 5], [5, 7]], [], 2 * 3 * 5 * 7),
        ("aten::addmm", [[7], [3, 5], [5, 7], [], []], [], 2 * 3 * 5 * 7),
        ("aten::bmm", [[4, 3, 5], [4, 5, 7]], [], 2 * 4 * 3 * 5 * 7),
        ("aten::mm", [[3, 5], [6, 7]], [], None),
        ("aten::mm", [], [], None),
        ("aten::relu", [[3, 5]], [], None),
        # 224 x 224 pixels, 7 x 7 filter, stride 2, padding 3: 112 x 112 remain (ResNet's first)
        (
            "aten::convolution",
            [[2, 3, 224, 224], [64, 3, 7, 7], []],
            CONVOLUTION,
            2 * 2 * 64 * 112 * 112 * 3 * 49,
        ),
        ("aten::convolution", [[2, 3, 224, 224], [64, 3, 7, 7], []], [], None),
        (
            "aten::_scaled_dot_product_flash_attention",
            ATTENTION,
            [],
            2 * 2 * 8 * 128 * 256 * (64 + 32),
        ),
        (
            "aten::_scaled_dot_product_flash_attention_backward",
            [[2, 8, 128, 32], *ATTENTION],
            [],
            2 * 2 * 8 * 128 * 256 * (3 * 64 + 2 * 32),
        ),
    ],
)
def test_flop_follow_from_shapes(
    name: str, shapes: object, inputs: object, flop: int | None
) -> None:
    (found,) = operator_flop(one_operator(name, shapes, inputs)).tolist()
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


@pytest.mark.parametrize(
    ("name", "batch"),
    [
        ("execute_context_1(888_788544)_generation_0(0)", Batch("prefill", 1, 888)),
        ("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk3)", Batch("decode", 32, 32)),
        (
            "execute_8192_context_9(sq8155sk8430sqsq7sqsk7)_generation_37(sq37sk3)",
            Batch("mixed", 46, 8192),
        ),
        ("step[DECODE bs=32]", Batch("decode", 32, 32)),
        ("step[EXTEND bs=2 toks=888]", Batch("prefill", 2, 888)),
        ("ProfilerStep#4", None),
    ],
)
def test_annotations_of_inference_engines(name: str, batch: Batch | None) -> None:
    assert batch_of(name) == batch


@needs_reports
def test_steps_and_graph_launches_of_real_captures() -> None:
    path = KINETO / "sglang_decode_graphs.json.gz"
    notes = nsightpy.operators(path, use_cache=False).notes
    assert any(note.startswith("1 decode step, median: 32 tokens") for note in notes)
    events = load(path)
    (launch,) = [e for e in of(events, "cuda_runtime") if e.name == "hipGraphLaunch"]
    mine = [
        e
        for e in of(events, "kernel", "gpu_memcpy")
        if e.args["correlation"] == launch.args["correlation"]
    ]
    assert any(f"1 CUDA-graph launch, median: {len(mine)} operations" in note for note in notes)


@pytest.mark.parametrize("name", ["sglang_decode_graphs", "vllm_piecewise_graphs"])
@needs_reports
def test_the_layers_of_one_engine_step_are_no_iterations(name: str) -> None:
    found = nsightpy.iterations(KINETO / f"{name}.json.gz", use_cache=False)
    assert found.records() == []
    (note,) = [note for note in found.notes if note.startswith("No iterations found")]
    assert "1 step that the inference engine annotated ('execute_#_context_#_generation_#'" in note


@needs_reports
def test_modules_hold_all_device_time() -> None:
    path = KINETO / "bert_small_h100.json.gz"
    rows = nsightpy.operators(path, by="module", use_cache=False).records()
    plain = nsightpy.operators(path, use_cache=False).records()
    for name in ("calls", "host_self_ns", "device_self_ns"):
        assert sum(row[name] for row in rows) == sum(row[name] for row in plain)
    attention = [row for row in rows if row["operator"] == "aten::_flash_attention_forward"]
    assert sorted(row["module"].split("/")[3] for row in attention) == [
        f"BertLayer_{layer}" for layer in range(4)
    ]


def test_unknown_splits_are_refused() -> None:
    with pytest.raises(UsageError, match="shape"):
        nsightpy.operators("sample_reports/torch_2rank", by="colour", use_cache=False)
