"""Iterations of twenty more kinds of programs, with the numbers that they may have.

The numbers were written down before any of the programs was looked at.
"""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tests.support.programs import Part, Program, backward, forward, named, optimizer

CHOSEN = random.Random(8)
WAIT = "!cudaStreamSynchronize"


def training(layers: int = 3) -> Part:
    """One step of a network."""
    return (1, forward(layers), backward(layers), optimizer())


def loading(program: Program) -> None:
    """Ranges of a thread that loads 240 samples while the others train."""
    last, some = program.host, range(241)
    edges = [1_000_000 + (last - 1_000_000) * place // 240 for place in some]
    program.ranges += [(start, end - 100, "load sample", 7) for start, end in pairwise(edges)]


FUSED = "rms_norm gemm_qkv:60 flash_fwd:80 gemm_o:40 rms_norm silu_gemm:90 gemm_down:60"
COMPILED = "triton_red_0 nvjet_tst:80 triton_poi_1 nvjet_tst_2:90 triton_poi_2"
MIXER = "layer_norm mixer_gemm:50 gelu_kernel transpose mixer_gemm_2:50 add_kernel"
PIPE_F, PIPE_B = "fprop_gemm:60 relu_kernel", "dgrad_gemm:60 wgrad_gemm:60 relu_bwd"
KINDS: dict[str, tuple[set[int], tuple[Part, ...]]] = {
    "three unrelated loops": (
        {0, 20},
        ((20, "a:50 b c"), (20, "d:50 e f g"), (20, "h:50 i")),
    ),
    "a loop with most of the work between two": (
        {0, 60},
        ((20, "a b", WAIT), (60, "d:200 e f"), (20, "h i j", WAIT)),
    ),
    "sizes of a product, fifty launches of each": (
        {0, 50},
        tuple((1, (50, f"gemm_{n}:{n // 16}"), WAIT) for n in (256, 512, 1024, 2048)),
    ),
    "one pass of equal fused layers": ({0}, ("embed:30", (32, FUSED), "head:300")),
    "one pass of equal compiled layers": ({0}, ("embed:30", (28, COMPILED), "head:300")),
    "a capture of two training steps": ({0}, ((2, training(12), WAIT),)),
    "passes of layers in ranges of unknown names": (
        {20},
        ((20, "gather", (8, named("Mixer stage", MIXER)), "head:90 argmax", WAIT),),
    ),
    "steps in ranges of another language": (
        {10},
        ((10, named("Schritt", (4, "a:50 b c"), "d:70"), WAIT),),
    ),
    "ranges around ten steps each": ({6}, ((6, named("chunk", (10, "spmv:60 dot axpy"))),)),
    "samples loaded by another thread": ({30}, ((30, training()), loading)),
    "cycles of a multigrid method": (
        {40},
        ((40, (5, "smooth smooth restrict"), "coarse:40", (5, "prolong smooth"), "norm", WAIT),),
    ),
    "two stages of transforms a time step": (
        {60},
        ((60, (2, "fft_x fft_y multiply fft_y fft_x"), "advance:50"),),
    ),
    "fifty cells of a recurrent network each way": (
        {20},
        ((20, (50, "lstm_gemm cell"), "loss", (50, "cell_bwd lstm_gemm_t"), "fused_adam:90"),),
    ),
    "micro-batches of a pipeline stage": (
        {9},
        ((9, (3, PIPE_F), (5, PIPE_F, PIPE_B), (3, PIPE_B), "multi_tensor_apply:120"),),
    ),
    "restarts of a method that converges": (
        set(range(100, 201)),
        tuple((1, "seed", (CHOSEN.randint(20, 40), "assign:90 sum div", WAIT)) for _ in range(5)),
    ),
    "radix sorts": ({10}, ((10, (4, "histogram scan scatter:60"), "check", WAIT),)),
    "two kernels by turns": ({500, 1_000}, ((500, "even:60 odd:60"),)),
    "candidates are tried first": (
        {40},
        (
            *((1, (3, f"candidate_{number}"), WAIT) for number in range(60)),
            (40, "tuned:90 axpy norm:30", WAIT),
        ),
    ),
    "training that leaves layers out by chance": (
        {29, 30},
        tuple(training(CHOSEN.randint(3, 6)) for _ in range(30)),
    ),
    "frames with more or fewer objects": (
        {60},
        tuple(
            (
                *(1, "resize", (6, "conv_gemm:50 cudnn_relu"), "boxes"),
                *((CHOSEN.randint(1, 4), "crop"), WAIT),
            )
            for _ in range(60)
        ),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_programs_have_the_iterations_that_they_may_have(kind: str) -> None:
    expected, parts = KINDS[kind]
    found = Program().run(*parts).found()
    assert len(found) in expected, [(len(one), one.source, one.why) for one in found.levels]


def test_loops_of_which_none_is_the_program_are_listed() -> None:
    found = Program().run(*KINDS["three unrelated loops"][1]).found()
    assert len(found) == 0
    assert [len(one) for one in found.levels] == [20, 20, 20]


def test_a_pass_has_more_kinds_of_kernels_than_a_block() -> None:
    """Thirty images that a network of convolutions is asked about, without a wait."""
    block = " ".join(f"conv_{place} cudnn_bn relu" for place in range(12))
    assert len(Program().run((30, block, "fc_gemm")).found()) == 30
