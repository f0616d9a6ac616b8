"""What is worked out from operators: modules, FLOP by shapes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import nsightpy
from nsightpy.analysis.operators.flop import operator_flop, peak_flop_per_s
from nsightpy.errors import UsageError
from nsightpy.frames import Frame, Labels
from nsightpy.results import number
from tests.support.plain_trace import KINETO
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
def test_flop_follow_from_shapes(
    name: str, shapes: object, inputs: object, flop: int | None
) -> None:
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


@needs_reports
def test_modules_hold_all_device_time() -> None:
    path = KINETO / "bert_small_h100.json.gz"
    rows = nsightpy.operators(path, by="module,thread", use_cache=False).records()
    plain = nsightpy.operators(path, use_cache=False).records()
    for name in ("calls", "host_self_ns", "device_self_ns"):
        assert sum(row[name] for row in rows) == sum(row[name] for row in plain)
    attention = [row for row in rows if row["operator"] == "aten::_flash_attention_forward"]
    assert sorted(row["module"].split("/")[3] for row in attention) == [
        f"BertLayer_{layer}" for layer in range(4)
    ]


@pytest.mark.parametrize(
    ("options", "said"), [({"by": "colour"}, "shape"), ({"depth": 2}, "--by module")]
)
def test_unknown_splits_and_levels_of_no_modules_are_refused(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        nsightpy.operators("sample_reports/torch_2rank", **options)


def test_operators_are_sorted_and_own_times_are_shares_of_all() -> None:
    table = nsightpy.operators("sample_reports/torch_2rank", sort="calls", top=0)
    calls = [number(count) for count in table.column("calls")]
    assert calls == sorted(calls, reverse=True)
    assert calls[0] > calls[-1]
    for kind in ("host_self", "device_self"):
        times = np.asarray(table.column(f"{kind}_ns"), dtype=float)
        shares = np.asarray(table.column(f"{kind}_share"), dtype=float)
        assert np.allclose(shares, times / times.sum())
