"""Iterations of more small programs, whose number was written down before any was looked for."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from nsightpy.analysis.iterations.steady import STEADY
from tests.support.programs import (
    ADD,
    EXP,
    GEMM,
    MUL,
    SUM,
    Program,
    backward,
    forward,
    layer,
    optimizer,
)


def _run(program: Program, names: str, length: int = 30_000) -> None:
    for name in names.split():
        program.launch(name, length)


def nested_loops(program: Program) -> None:
    """A time step of five stages, each of four sweeps."""
    for _ in range(12):
        program.launch("predict", 150_000)
        for _ in range(5):
            program.launch("stage", 20_000)
            for _ in range(4):
                _run(program, "relax restrict")
        program.launch("correct", 150_000)


def accumulation(program: Program) -> None:
    """Eight micro-batches before each update, the first passes slower."""
    for step in range(10):
        for _ in range(8):
            program.think(3_000_000 if step == 0 else 0)
            forward(program, 2)
            backward(program, 2)
        optimizer(program)
        program.wait("cudaStreamSynchronize")


def _convolutions(program: Program, names: str) -> None:
    for number in range(9):
        for name in names.split():
            program.launch(f"sm80_xmma_{name}_{number % 4}", 30_000 + 4_000 * number)
        program.launch("void cudnn::bn_kernel", 9_000)


def evaluation(program: Program) -> None:
    """Five epochs of twenty training steps and eight passes of an evaluation."""
    for _ in range(5):
        for _ in range(20):
            _convolutions(program, "fprop")
            _convolutions(program, "dgrad wgrad")
            program.launch("multi_tensor_apply_kernel<SGDFunctor>", 60_000)
        for _ in range(8):
            _convolutions(program, "fprop")
            program.wait("cudaMemcpy")


def decoding(program: Program) -> None:
    """Tokens of batches whose size changes, and with it the matrix products; no ranges."""
    chosen = random.Random(1)
    for _ in range(80):
        size = chosen.choice((8, 8, 8, 16, 32))
        forward(program, 5, size / 16, f"gemm_{size}x64_tn")
        program.launch("argmax_kernel", 4_000)
        program.wait("cudaMemcpy")
        program.think(chosen.randint(10_000, 900_000))


def two_phases(program: Program) -> None:
    """Each round solves two systems in turn, fifty iterations of either."""
    for _ in range(6):
        for _ in range(50):
            _run(program, "spmv_u dot axpy")
        for _ in range(50):
            _run(program, "spmv_p precondition")


def warm_up(program: Program) -> None:
    """Autotuning in the first three of sixty steps."""
    for step in range(60):
        if step < 3:
            for candidate in range(30):
                program.launch(f"triton_candidate_{candidate}", 40_000)
            program.think(50_000_000)
        forward(program, 3)
        backward(program, 3)
        optimizer(program)
        program.wait("cudaStreamSynchronize")


def jitter(program: Program) -> None:
    """Two kernels in any order, and up to three of a third kind in each step."""
    chosen = random.Random(2)
    for _ in range(40):
        _run(program, "gather force integrate")
        _run(program, chosen.choice(("left right", "right left")))
        program.launch("memset", 2_000, repeat=chosen.randint(0, 3))
        _run(program, "scatter reduce")
        program.think(chosen.randint(0, 60_000))


def graph_of_layers(program: Program) -> None:
    """Each token replays one graph of ten layers, then samples."""
    for _ in range(25):
        program.replay([(name, 20_000) for _ in range(10) for name in (GEMM, EXP, GEMM, ADD)])
        program.launch("void at::native::reduce_kernel<argmax>", 3_000)
        program.wait("cudaStreamSynchronize")


def graph_and_kernels(program: Program) -> None:
    """A solver's step: one graph of twelve kernels, some kernels, two graphs of three."""
    for _ in range(30):
        program.replay([(f"stage_{n % 4}", 15_000) for n in range(12)])
        _run(program, "limit flux update")
        for _ in range(2):
            program.replay([("halo", 9_000), ("pack", 4_000), ("unpack", 4_000)])


def two_streams(program: Program) -> None:
    """Gradients are reduced on a stream of their own, launched when a thread comes to it."""
    chosen = random.Random(3)
    for _ in range(30):
        forward(program, 3)
        due = sorted(chosen.sample(range(12), 3))
        for place in range(12):
            for name in (GEMM + "_nt", GEMM + "_nn", SUM):
                program.launch(name, 40_000)
            if place in due:
                program.launch("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 200_000, stream=1)
        optimizer(program)


def no_steps(program: Program) -> None:
    """A pipeline that is run once: a sort, a scan, reductions of halves, a join."""
    for digit in range(4):
        _run(program, f"histogram scan_{digit} scatter_{digit}")
    for level in range(12):
        program.launch("reduce", 400_000 >> level)
    _run(program, "build probe probe probe compact filter project write", 200_000)


def one_pass(program: Program) -> None:
    """One pass of a network with stages of equal blocks."""
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for _ in range(blocks):
            for kind in ("1x1", "3x3", "1x1"):
                program.launch(f"xmma_fprop_{kind}_{stage}", 40_000)
                program.launch("void cudnn::bn_fw_inf_kernel", 8_000)
            program.launch(ADD, 5_000)
    program.launch(GEMM, 20_000)


def irregular_lists(program: Program) -> None:
    """Molecular dynamics with a new neighbour list whenever an atom has moved far."""
    chosen = random.Random(4)
    for _ in range(150):
        if chosen.random() < 0.12:
            _run(program, "cells sort build", 150_000)
        _run(program, "pair bond kspace integrate", 90_000)
        program.wait("cudaStreamSynchronize")


def diffusion(program: Program) -> None:
    """Three images of twenty-five denoising steps, each decoded at the end."""
    for _ in range(3):
        for _ in range(25):
            _convolutions(program, "fprop_down")
            for _ in range(4):
                layer(program)
            _convolutions(program, "fprop_up")
            for name in (MUL, ADD, MUL):
                program.launch(name, 2_000)
        _convolutions(program, "decode_a decode_b")
        program.wait("cudaMemcpy")
        program.think(20_000_000)


def compiled(program: Program) -> None:
    """Fusions numbered through; the host looks at the loss every tenth step."""
    for step in range(60):
        for number in range(45):
            program.launch(f"loop_fusion_{number}" if number % 3 else f"gemm_fusion_dot_{number}")
        if step % 10 == 9:
            program.wait("cuMemcpyDtoH")


def trajectories(program: Program) -> None:
    """Five trajectories of about four hundred iterations of a solver."""
    chosen = random.Random(5)
    for _ in range(5):
        _run(program, "momenta gauge_force", 500_000)
        for _ in range(chosen.randint(380, 420)):
            _run(program, "dslash_even dslash_odd axpy norm", 20_000)
            program.wait("cudaMemcpy")
        program.launch("plaquette", 300_000)


def speculation(program: Program) -> None:
    """Four passes of a draft model, then one of the large one, for each round."""
    for _ in range(30):
        for _ in range(4):
            for _ in range(3):
                _run(program, "draft_gemm_qkv flash_fwd_draft draft_gemm_mlp rms_norm_draft", 6_000)
            program.launch("sample_draft_argmax", 3_000)
        forward(program, 6)
        program.launch("verify_argmax", 5_000)
        program.wait("cudaMemcpy")


def frames(program: Program) -> None:
    """A renderer whose host runs ahead, with a range around the calls of each frame."""
    for number in range(50):
        with program.range(f"Frame {number}"):
            for bounce in range(4):
                _run(program, "trace shade compact", 90_000 >> bounce)
            program.launch("tonemap", 60_000)


def checkpoints(program: Program) -> None:
    """A stencil whose host writes a file every twenty-fifth of a hundred steps."""
    for step in range(100):
        _run(program, "pack stencil_inner unpack stencil_outer")
        if step % 25 == 24:
            _run(program, "gather_field convert")
            program.wait("cudaMemcpy")
            program.think(90_000_000)


def rollouts(program: Program) -> None:
    """Eight rounds of thirty-two short passes that the host waits for, and four updates."""
    for _ in range(8):
        for _ in range(32):
            program.launch(ADD, 8_000)
            for number in range(2):
                program.launch(f"ampere_sgemm_32x32_{number}", 8_000)
                program.launch(MUL, 8_000)
            program.launch("argmax_kernel", 4_000)
            program.wait("cudaMemcpy")
            program.think(30_000)
        for _ in range(4):
            for _ in range(6):
                _run(program, "ampere_sgemm_128x64 ampere_sgemm_nt", 90_000)
                program.launch("void at::native::relu_backward", 90_000)
            program.launch("multi_tensor_apply_kernel<Adam>", 60_000)


def late_rank(program: Program) -> None:
    """One that did seven steps of what others do more often, and no more."""
    for _ in range(7):
        forward(program, 3)
        backward(program, 3)
        program.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 300_000)
        optimizer(program)


PROGRAMS: list[tuple[Callable[[Program], None], int, int]] = [
    (nested_loops, 12, 0),
    (accumulation, 10, 0),
    (evaluation, 100, 1),
    (decoding, 80, 1),
    (two_phases, 6, 0),
    (warm_up, 60, 0),
    (jitter, 40, 1),
    (graph_of_layers, 25, 0),
    (graph_and_kernels, 30, 0),
    (two_streams, 30, 0),
    (no_steps, 0, 0),
    (one_pass, 0, 0),
    (irregular_lists, 150, 1),
    (diffusion, 75, 2),
    (compiled, 60, 0),
    (trajectories, 2_000, 60),
    (speculation, 30, 0),
    (frames, 50, 0),
    (checkpoints, 100, 1),
    (late_rank, 7, 0),
    (rollouts, 8, 0),
]


@pytest.mark.parametrize(("make", "count", "within"), PROGRAMS)
def test_programs_have_as_many_iterations_as_their_loop(
    make: Callable[[Program], None], count: int, within: int
) -> None:
    program = Program()
    make(program)
    found = program.found()
    assert abs(len(found) - count) <= within, [(len(one), one.text) for one in found.levels]


def test_what_is_tuned_first_is_warm_up() -> None:
    program = Program()
    warm_up(program)
    phase = program.found().phase
    assert phase[3:].count(STEADY) == 57
    assert STEADY not in phase[:3]
