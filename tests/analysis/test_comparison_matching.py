"""What is taken for the same kernel, and by what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from nsightpy.analysis.comparison.alignment import blocks_between
from nsightpy.analysis.comparison.kernel_names import base_of, category_of
from nsightpy.analysis.comparison.matching import Item, Match, match

ADD = "void at::native::vectorized_elementwise_kernel<4, AddFunctor<float>>(int, T2)"
ADD8 = "void at::native::vectorized_elementwise_kernel<8, AddFunctor<float>>(int, T2)"
MUL = "void at::native::vectorized_elementwise_kernel<4, MulFunctor<float>>(int, T2)"
GEMM, TILE = "ampere_sgemm_128x64_nn", "ampere_sgemm_64x64_nn"


def items(*names: str, path: str = "", **paths: str) -> dict[str, Item]:
    return {
        name: Item(name, 1.0, 10.0, paths.get(name, path), place / 10, category_of(name))
        for place, name in enumerate(names)
    }


def changes(found: Sequence[Match]) -> set[tuple[tuple[str, ...], tuple[str, ...], str, str]]:
    return {(one.before, one.after, one.matched_by, one.change) for one in found}


def test_everything_is_in_one_match() -> None:
    before, after = items(ADD, GEMM, "softmax", "old"), items(ADD8, TILE, "softmax", "new", "more")
    found = match(before, after)
    assert sorted(n for one in found for n in one.before) == sorted(before)
    assert sorted(n for one in found for n in one.after) == sorted(after)


def test_another_template_argument_is_a_new_name_and_another_tile_a_variant() -> None:
    found = changes(match(items(ADD, GEMM), items(ADD8, TILE)))
    by = "name without arguments"
    assert found == {((ADD,), (ADD8,), by, "renamed"), ((GEMM,), (TILE,), by, "variant")}


def test_other_functors_of_one_template_are_other_kernels_and_other_types_are_not() -> None:
    found = changes(match(items(ADD), items(MUL)))
    assert found == {((ADD,), (), "", "gone"), ((), (MUL,), "", "new")}
    half = ADD.replace("float", "__half")
    by = "name without arguments"
    assert changes(match(items(ADD), items(half))) == {((ADD,), (half,), by, "renamed")}
    replaced = match(items(ADD, "copy"), items(MUL, "copy"), ([ADD, "copy"], [MUL, "copy"]))
    assert ((ADD,), (MUL,), "order", "replaced") in changes(replaced)


def test_a_tile_that_took_some_launches_of_another_is_no_new_kernel() -> None:
    def often(name: str, count: float) -> Item:
        return replace(items(name)[name], count=count)

    before = {GEMM: often(GEMM, 10.0), "softmax": often("softmax", 4.0)}
    after = {GEMM: often(GEMM, 6.0), TILE: often(TILE, 4.0), "softmax": often("softmax", 4.0)}
    moved = ((GEMM,), (GEMM, TILE), "category", "variant")
    assert changes(match(before, after)) == {moved, (("softmax",), ("softmax",), "full name", "")}
    back = ((GEMM, TILE), (GEMM,), "category", "variant")
    assert back in changes(match(after, before))
    # more launches in all: one that was added
    more = match(before, after | {TILE: often(TILE, 9.0)})
    assert ((), (TILE,), "", "new") in changes(more)


def test_numbers_count_before_arguments() -> None:
    # both have one base; the functor tells which is which
    found = changes(match(items(ADD, MUL), items(ADD8, MUL)))
    assert ((ADD,), (ADD8,), "name without arguments", "renamed") in found
    assert ((MUL,), (MUL,), "full name", "") in found


def test_several_tiles_for_one_are_one_change_of_variant() -> None:
    found = changes(match(items(GEMM), items(TILE, "ampere_sgemm_32x32_nn")))
    both = (TILE, "ampere_sgemm_32x32_nn")
    assert found == {((GEMM,), both, "name without arguments", "variant")}


def test_the_path_tells_where_names_do_not() -> None:
    before = items("alpha", "beta", alpha="forward / norm", beta="forward / mlp")
    after = items("gamma", "delta", gamma="forward / mlp", delta="forward / norm")
    assert changes(match(before, after)) == {
        (("alpha",), ("delta",), "path and position", "replaced"),
        (("beta",), ("gamma",), "path and position", "replaced"),
    }


def test_a_fusion_a_division_and_a_replacement_are_seen_in_the_order() -> None:
    same = ["a", "b", "c", "d"]
    before = ["a", "x1", "x2", "b", "y", "c", "z", "d"] * 3
    after = ["a", "fused", "b", "y1", "y2", "c", "other", "d"] * 3
    found = changes(match(items(*before), items(*after), (before, after)))
    assert {one for one in found if one[0] != one[1]} == {
        (("x1", "x2"), ("fused",), "order", "fused"),
        (("y",), ("y1", "y2"), "order", "split"),
        (("z",), ("other",), "order", "replaced"),
    }
    assert {one[0][0] for one in found if one[0] == one[1]} == set(same)


def test_a_kernel_that_still_runs_elsewhere_can_be_fused_away() -> None:
    before = ["add", "a", "add", "gelu", "b"]
    after = ["add", "a", "add_gelu_fused", "b"]
    found = match(items(*before), items(*after), (before, after))
    fused = next(one for one in found if one.change == "fused")
    assert (fused.before, fused.after, fused.context) == (("gelu",), ("add_gelu_fused",), ("add",))


def test_what_nothing_answers_to_is_new_or_gone() -> None:
    found = changes(match(items("a", "old"), items("a", "new"), (["a", "old"], ["new", "a"])))
    assert (("old",), (), "", "gone") in found
    assert ((), ("new",), "", "new") in found


def test_tuned_kernels_of_one_class_are_variants() -> None:
    before, after = items("nvjet_tst_128x256_h_bz"), items("cutlass_80_wmma_gemm_x")
    assert changes(match(before, after)) == {
        (("nvjet_tst_128x256_h_bz",), ("cutlass_80_wmma_gemm_x",), "category", "variant")
    }


def test_blocks_lie_between_common_launches() -> None:
    found = blocks_between("axbxc", "aybyc", {name: name for name in "abc"})
    assert found == {(("x",), ("y",)): 2}
    assert blocks_between("ab", "ab", {"a": "a", "b": "b"}) == {}
    assert blocks_between("", "ab", {}) == {((), ("a", "b")): 1}


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT", "matrix product"),
        ("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128>>(Params)", "attention"),
        (
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096>)",
            "communication",
        ),
        ("sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc", "convolution"),
        ("triton_poi_fused_add_3", "element-wise"),
        ("add_arrays_", ""),
    ],
)
def test_classes_of_kernels(name: str, category: str) -> None:
    assert category_of(name) == category


def test_a_base_has_no_arguments_and_no_numbers() -> None:
    assert base_of(ADD) == base_of(ADD8) == base_of(MUL)
    assert base_of(GEMM) == base_of(TILE)
    assert base_of(ADD) != base_of(GEMM)


def test_beside_graphs_of_one_side_places_say_nothing() -> None:
    before, graph = items("first", "second", "last"), "CUDA graph 4"
    after = items("first", "apply", "last", graph)
    orders = (["first", "second", "last"], ["first", "apply", "last"])
    found = changes(match(before, after, orders))
    assert {(("second",), (), "", "gone"), ((), ("apply",), "", "new")} <= found
    graphs_too = match({**before, **items(graph)}, after, orders)
    assert (("second",), ("apply",), "order", "replaced") in changes(graphs_too)
