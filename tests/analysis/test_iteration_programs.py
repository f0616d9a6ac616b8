"""Iterations of small programs of many kinds: steps, not layers, launches or warm-up."""

import random
from itertools import pairwise
from typing import Any

import pytest

from nsightpy.analysis.iterations.steady import EDGE, STEADY, WARM_UP, steady_state
from nsightpy.analysis.iterations.vocabulary import Role, role_of
from tests.support.programs import (
    ADD,
    EXP,
    GEMM,
    MUL,
    SUM,
    Part,
    Program,
    backward,
    forward,
    kernel,
    layer,
    named,
    optimizer,
)

STEP = (1, forward(2), backward(2), optimizer())
TRAINING = (1, forward(4), backward(4), optimizer())
ARGMAX = kernel("void at::native::reduce_kernel<512, ArgMaxOps<float>> argmax", 5)
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
CG = (1, (9, "spmv:30 dot:30 axpy:30 axpy2:30 norm2:30 scale:30"))


def convolutions(names: str) -> Part:
    """A pass of a convolutional network without stacks of equal blocks."""
    norm = kernel("void cudnn::bn_kernel", 9)
    lines = (
        " ".join(f"sm80_xmma_{name}_{n % 4}:{30 + 4 * n}" for name in names.split())
        for n in range(9)
    )
    return (1, *(part for line in lines for part in (line, norm)))


def graph(*kernels: tuple[str, int], times: int = 1) -> Part:
    """One call that launches kernels, names and us, so many times over."""
    return lambda program: program.replay([(name, 1_000 * us) for name, us in kernels] * times)


def two_streams(program: Program) -> None:
    """Gradients are reduced on a stream of their own, launched when a thread comes to it."""
    chosen = random.Random(3)
    for _ in range(30):
        program.run(forward(3))
        due = sorted(chosen.sample(range(12), 3))
        for place in range(12):
            program.run(f"{GEMM}_nt:40 {GEMM}_nn:40", kernel(SUM, 40))
            if place in due:
                program.launch(ALL_REDUCE, 200_000, stream=1)
        program.run(optimizer())


def two_threads(program: Program) -> None:
    """A thread of its own launches the backward pass, another one loads data meanwhile."""
    chosen = random.Random(5)
    for _ in range(16):
        program.run(forward(3))
        program.thread = 2
        program.run(backward(3))
        program.launch(f"decode_image_{chosen.randint(0, 3)}", 8_000, repeat=chosen.randint(1, 4))
        program.thread = 1
        program.run(optimizer())


def lost_launches(program: Program) -> None:
    """The host ran ahead when the capture began: what was queued then has no launch."""
    program.run((6, forward()))
    lost = len(program.kernels) // 4
    program.kernels = [
        (start, end, 0 if place < lost else number, name)
        for place, (start, end, number, name) in enumerate(program.kernels)
    ]


DRAWN = random.Random(1)


# Tokens of batches whose size changes, and with it the matrix products; no ranges.
BATCHES = tuple(
    (
        *(1, forward(5, size / 16, f"gemm_{size}x64_tn"), "argmax_kernel:4 !cudaMemcpy"),
        f"~{DRAWN.randint(10, 900)}",
    )
    for _ in range(80)
    for size in [DRAWN.choice((8, 8, 8, 16, 32))]
)
# Each step's matrix products run in one of three kernels, by its length.
SHAPES = tuple(
    (
        *(1, forward(4, scale, f"ampere_sgemm_{tile}_tn")),
        *(backward(4, scale, f"ampere_sgemm_{tile}"), optimizer(), "!cudaMemcpyAsync"),
    )
    for tile in DRAWN.choices(("128x64", "64x64", "256x128"), k=24)
    for scale in [DRAWN.uniform(0.5, 2.0)]
)
# Two kernels in any order, and up to three of a third kind in each step.
JITTER = tuple(
    (
        *(1, "gather:30 force:30 integrate:30", order, (DRAWN.randint(0, 3), "memset:2")),
        *("scatter:30 reduce:30", f"~{DRAWN.randint(0, 60)}"),
    )
    for order in DRAWN.choices(("left:30 right:30", "right:30 left:30"), k=40)
)
# Molecular dynamics with a new neighbour list whenever an atom has moved far.
LISTS = tuple(
    lists + "pair:90 bond:90 kspace:90 integrate:90 !cudaStreamSynchronize"
    for lists in DRAWN.choices(("cells:150 sort:150 build:150 ", ""), (12, 88), k=150)
)
SOLVE = "dslash_even:20 dslash_odd:20 axpy:20 norm:20 !cudaMemcpy"
ANYTHING = [f"kernel_{DRAWN.randint(0, 60)}:{DRAWN.randint(2, 90)}" for _ in range(2_000)]
TUNED = (
    1,
    (3, " ".join(f"triton_candidate_{n}:40" for n in range(30)), "~50000", forward(3), backward(3),
     optimizer(), "!cudaStreamSynchronize"),
    (57, forward(3), backward(3), optimizer(), "!cudaStreamSynchronize"),
)  # fmt: skip
EXPERTS = (
    *("nvjet_tst_64x64_bias_TNT", "void vllm::rotary_embedding_kernel<c10::BFloat16>"),
    *("fmhaSm100aKernel", "nvjet_tst_144x128", "vllm::fused_add_rms_norm_kernel"),
    *("_topk_forward", "moe::dev::routing::kernel", "bmm_MxE4m3", "moe::finalize"),
)
XLA = " ".join(
    f"loop_add_fusion_{n % 4}:20 ampere_bf16_s16816gemm_bf16_128x128_nn:120 "
    "input_reduce_fusion:25 gemm_fusion_dot_7:60"
    for n in range(24)
)
NUMBERED = " ".join(f"loop_fusion_{n}" if n % 3 else f"gemm_fusion_dot_{n}" for n in range(45))
SWEEP = "flux_{0}:60 cell_{0}:60 momentum_{0}:60"
HYDRO = "reset:50 halo:50 gas:50 viscosity:50 pdv:50 accelerate:50"
STAGE = "gradient:80 flux:80 rhs:80 boundary:80 axpy:80"
BLOCK = tuple(
    part
    for kind in ("1x1", "3x3", "1x1")
    for part in (f"xmma_fprop_{kind}_{{}}:40", kernel("void cudnn::bn_fw_inf_kernel", 8))
)
DRAFT = "draft_gemm_qkv:6 flash_fwd_draft:6 draft_gemm_mlp:6 rms_norm_draft:6"
POLICY = (1, kernel(ADD, 8), (2, "ampere_sgemm_32x32:8", kernel(MUL, 8)))
UPDATE = (
    *(1, (6, "ampere_sgemm_128x64:90 ampere_sgemm_nt:90", kernel("relu_backward", 90))),
    kernel("multi_tensor_apply_kernel<Adam>", 60),
)
# How many iterations a program has, and what it does. One more or less is at the ends.
PROGRAMS: dict[str, tuple[Any, ...]] = {
    # what is no step
    "one forward pass": (0, forward()),
    "blocks with waits": (0, (15, named("FSDP::pre_forward (blocks.{n})", kernel(ADD)), layer(),
         "!cudaStreamSynchronize")),
    "one step with its parts": (0, named("forward pass", forward()),
        named("backward pass", backward()),
        named("optimizer step", (100, *(kernel(n, 3) for n in (MUL, ADD, MUL, SUM, ADD))))),
    "modules in a list": (0, kernel(ADD), (12, named("h.{n}", layer())), kernel(GEMM, 90)),
    "experts of layers": (0, kernel("void vllm::embedding_kernel"),
        (36, *(kernel(n, 30) for n in EXPERTS)), "nvjet_head:100"),
    "stages of equal blocks": (0,
        *(part.format(stage) if isinstance(part, str) else part
          for stage, blocks in enumerate((3, 4, 6, 3))
          for part in (*BLOCK, kernel(ADD, 5)) * blocks)),
    "a few kernels": (0, "init ! add ! add ! mul ! dot ! dot !"),
    "a query": (0, " ".join(f"histogram:30 scan_{n}:30 scatter_{n}:30" for n in range(4)),
        " ".join(f"reduce:{400 >> n}" for n in range(9)),
        "build:200 probe:200 probe:200 probe:200 compact:200 filter:200 project:200 write:200"),
    "nothing repeats": (0, *ANYTHING),
    "lengths of all kinds": (0,
        *(f"traverse:{us} !" for us in DRAWN.choices((20, 400, 9_000), k=40))),
    "growing sizes of a benchmark": (0,
        *((1, (20, f"all_to_all:{10 << size}"), "!") for size in range(10))),
    "equal sizes of a benchmark": (200, (10, (20, "all_to_all:10"), "!")),
    # passes and steps of training
    "three passes": (3, (3, forward())),
    "passes told by waits alone": (3,
        (3, (12, "elementwise ampere_sgemm_tn softmax_warp_forward ampere_sgemm_nn"), "!")),
    "passes told by their loss alone": (30,
        (30, "embedding:20 ampere_sgemm_tn:90 relu:10 ampere_sgemm_nn:80 cross_entropy:8")),
    "passes whose first launches were lost": (6, lost_launches),
    "warm-up steps of their own name": (6, (20, named("warmup step {n}", forward())),
        (6, named("measured step {n}", forward()))),
    "training with evaluation": ({39, 40, 41}, (4, (10, TRAINING), (3, forward(4), "!"))),
    "epochs of convolutions with evaluation": ({99, 100, 101},
        (5, (20, convolutions("fprop"), convolutions("dgrad wgrad"),
         "multi_tensor_apply_kernel<SGDFunctor>:60"), (8, convolutions("fprop"), "!cudaMemcpy"))),
    "micro-steps with waits": (10, (8, "~3000", forward(2), backward(2)), optimizer(),
        "!cudaStreamSynchronize",
        (9, (8, forward(2), backward(2)), optimizer(), "!cudaStreamSynchronize")),
    "changing shapes": ({23, 24, 25}, *SHAPES),
    "ranges of steps in epochs": (21,
        (3, named("epoch {n}", (7, named("train_step {n}", STEP)), "!"))),
    "epochs without ranges of steps": (60, (3, named("epoch {n}",
         named("train", (20, STEP, "!cudaMemcpy")),
         named("eval", (4, forward(2), "!cudaMemcpy"))))),
    "two optimizers": (20, (20, forward(2), backward(2), "multi_tensor_apply_kernel<FusedAdam>:60",
         forward(2), backward(3), "multi_tensor_apply_kernel<FusedAdam>:40", "!cudaMemcpy")),
    "autotuning first": (60, TUNED),
    "numbered fusions": (15, " ".join(f"init_{n}:70" for n in range(9)),
        (15, " ".join(f"loop_fusion_{n}" for n in range(60)))),
    "fusions and a look at the loss": (60, (6, (10, NUMBERED), "!cuMemcpyDtoH")),
    "layers of several kinds": (20, (20, XLA,
         "input_concatenate_reduce_select_fusion:30 wrapped_slice:4",
         "!cuStreamSynchronize ~2000")),
    "collectives on a stream of their own": (30, two_streams),
    "two threads": (16, two_threads),
    "rollouts and updates": (8, (8, (32, POLICY, "argmax_kernel:4 !cudaMemcpy ~30"), (4, UPDATE))),
    # inference
    "growing tokens": ({59, 60, 61}, forward(4, 8.0, "prefill_gemm"),
        *((1, forward(4, 0.1 + 0.01 * n), ARGMAX, "!cudaMemcpy") for n in range(60))),
    "tokens of changing batches": ({79, 80, 81}, *BATCHES),
    "tokens whatever requests begin with": (164,
        (4, forward(6, 15.0), "argmax_kernel:9 !cudaMemcpy", (40, forward(6, 1.0, "gemvx_kernel"),
         "argmax_kernel:9 !cudaMemcpy"))),
    "a draft and a large model": (30,
        (30, (4, (3, DRAFT), "sample_draft_argmax:3"), forward(6), "verify_argmax:5 !cudaMemcpy")),
    "irregular requests": (30,
        *((1, f"~{DRAWN.randint(1_000, 40_000)}", forward(), "!cudaMemcpy") for _ in range(30))),
    "images asked about": (20,
        (20, convolutions("fprop"), kernel("void cudnn::softmax_fw_kernel", 4), "!cudaMemcpy")),
    "denoising": (range(73, 78), (3,
         (25, convolutions("fprop_down"), (4, layer()), convolutions("fprop_up"),
          kernel(MUL, 2), kernel(ADD, 2), kernel(MUL, 2)),
         convolutions("decode_a decode_b"), "!cudaMemcpy ~20000")),
    "graphs of two streams": (12, (12, "CUDA_graph_0:4000 CUDA_graph_1:4000 !")),
    "a graph of layers": (25, (25, graph(*((name, 20) for name in (GEMM, EXP, GEMM, ADD)),
         times=10), ARGMAX, "!cudaStreamSynchronize")),
    "graphs and kernels": (30, (30, graph(*((f"stage_{n}", 15) for n in range(4)), times=3),
         "limit:30 flux:30 update:30", (2, graph(("halo", 9), ("pack", 4), ("unpack", 4))))),
    # solvers, molecules, renderers
    "nested loops": (12,
        (12, "predict:150", (5, "stage", (4, "relax:30 restrict:30")), "correct:150")),
    "two solvers in turn": (6,
        (6, (50, "spmv_u:30 dot:30 axpy:30"), (50, "spmv_p:30 precondition:30"))),
    "trajectories of a solver": (range(1_940, 2_061), *((1, "momenta:500 gauge_force:500",
         (DRAWN.randint(380, 420), SOLVE), "plaquette:300") for _ in range(5))),
    "unlike halves of a solver's step": (100,
        (100, "spmv dot reduce !cudaMemcpy axpy axpy dot reduce !cudaMemcpy axpy")),
    "a check now and then": (100,
        (10, CG, "spmv:30 dot:30 axpy:30 axpy2:30 norm2:30 scale:30 residual:5 !cudaMemcpy")),
    "neighbour lists now and then": (200, (20,
         "force:60 bond:60 angle:60 drift:60 kick:60 neighbours:400 !cudaMemcpy ~40", (9,
         "force:60 bond:60 angle:60 drift:60 kick:60 !cudaMemcpy ~40"))),
    "one kernel and neighbour lists": (100, (10,
         "cells:40 count:30 neighbours:900 pair:1500 !cudaEventSynchronize ~2000", (9,
         "pair:1500 !cudaEventSynchronize ~2000"))),
    "irregular neighbour lists": ({149, 150, 151}, *LISTS),
    "equal stages and a kernel": (60, (60, (4, STAGE), "time_step:15")),
    "alternating sweeps": (12, (6, "calc_dt:40", SWEEP.format("y"), SWEEP.format("x"), HYDRO,
         "calc_dt:40", SWEEP.format("x"), SWEEP.format("y"), HYDRO)),
    "kernels in any order": ({39, 40, 41}, *JITTER),
    "runs with pauses between": (10,
        (10, named("run {n}", (50, "spmv dot axpy !cudaMemcpy")), "~2300")),
    "one kernel": (40, (40, "body_force:500 !")),
    "files now and then": ({99, 100, 101},
        (4, (25, "pack:30 stencil_inner:30 unpack:30 stencil_outer:30"),
         "gather_field:30 convert:30 !cudaMemcpy ~90000")),
}  # fmt: skip
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
MIXER = "layer_norm mixer_gemm:50 gelu_kernel transpose mixer_gemm_2:50 add_kernel"
PIPE_F, PIPE_B = "fprop_gemm:60 relu_kernel", "dgrad_gemm:60 wgrad_gemm:60 relu_bwd"
CHOSEN = random.Random(8)
# The numbers that they may have were written down before any of the programs was looked at.
KINDS: dict[str, tuple[Any, ...]] = {
    "three unrelated loops": ({0, 20}, (20, "a:50 b c"), (20, "d:50 e f g"), (20, "h:50 i")),
    "a loop with most of the work between two": ({0, 60}, (20, "a b", WAIT), (60, "d:200 e f"),
        (20, "h i j", WAIT)),
    "one pass of equal fused layers": (0, "embed:30", (32, FUSED), "head:300"),
    "a capture of two training steps": (0, (2, training(12), WAIT)),
    "passes of layers in ranges of unknown names": (20,
        (20, "gather", (8, named("Mixer stage", MIXER)), "head:90 argmax", WAIT)),
    "steps in ranges of another language": (10,
        (10, named("Schritt", (4, "a:50 b c"), "d:70"), WAIT)),
    "ranges around ten steps each": (6, (6, named("chunk", (10, "spmv:60 dot axpy")))),
    "samples loaded by another thread": (30, (30, training()), loading),
    "cycles of a multigrid method": (40,
        (40, (5, "smooth smooth restrict"), "coarse:40", (5, "prolong smooth"), "norm", WAIT)),
    "micro-batches of a pipeline stage": (9,
        (9, (3, PIPE_F), (5, PIPE_F, PIPE_B), (3, PIPE_B), "multi_tensor_apply:120")),
    "restarts of a method that converges": (set(range(100, 201)),
        *((1, "seed", (CHOSEN.randint(20, 40), "assign:90 sum div", WAIT)) for _ in range(5))),
    "two kernels by turns": ({500, 1_000}, (500, "even:60 odd:60")),
    "training that leaves layers out by chance": ({29, 30},
        *(training(CHOSEN.randint(3, 6)) for _ in range(30))),
    "frames with more or fewer objects": (60,
        *((*(1, "resize", (6, "conv_gemm:50 cudnn_relu"), "boxes"),
         *((CHOSEN.randint(1, 4), "crop"), WAIT)) for _ in range(60))),
}  # fmt: skip


@pytest.mark.parametrize("name", [*PROGRAMS, *KINDS])
def test_programs_have_as_many_iterations_as_their_loop(name: str) -> None:
    count, *parts = (PROGRAMS | KINDS)[name]
    found = Program().run(*parts).found()
    counts = {count} if isinstance(count, int) else count
    assert len(found) in counts, [(len(one), one.source, one.why) for one in found.levels]
    if name.endswith(" passes"):
        assert found.source == "repeated kernel sequence"


def test_loops_of_which_none_is_the_program_are_listed() -> None:
    found = Program().run(*KINDS["three unrelated loops"][1:]).found()
    assert len(found) == 0
    assert [len(one) for one in found.levels] == [20, 20, 20]


def test_a_pass_has_more_kinds_of_kernels_than_a_block() -> None:
    """Thirty images that a network of convolutions is asked about, without a wait."""
    block = " ".join(f"conv_{place} cudnn_bn relu" for place in range(12))
    assert len(Program().run((30, block, "fc_gemm")).found()) == 30


def test_layers_of_one_pass_are_a_finer_level() -> None:
    blocks = (12, named("transformer block {n}", layer()))
    program = Program().run(named("forward pass", kernel(ADD), blocks, kernel(GEMM, 90)))
    for found in (program.found(), Program().run(forward()).found()):
        assert len(found) == 0
        assert "no step of the program" in str(found.notes[0])
        assert any(len(one) in (11, 12, 24) for one in found.others)


def test_steps_in_a_warm_up_range_are_warm_up_unless_others_are_measured() -> None:
    program = Program().run(named("warm-up", (5, forward()), "!"))
    program.run(named("benchmark", (10, forward()), "!"))
    assert program.found().phase == (WARM_UP,) * 5 + (STEADY,) * 10
    assert Program().run(TUNED).found().phase == (WARM_UP,) * 3 + (STEADY,) * 57
    # where nothing but it was measured, it is what was measured
    only = Program().run(named("warm-up", (12, named("step_{n}", forward(), "!")), "!")).found()
    assert only.phase == (STEADY,) * 12
    passes = named("warmup", "~20000", (5, forward()), "!")
    found = Program().run(passes, (10, named("step_{n}", forward(), "!"))).found()
    assert (found.phase, found.source) == ((STEADY,) * 10, "repeated range 'step_#'")


def test_an_inner_loop_of_changing_length_is_counted_itself() -> None:
    chosen = random.Random(7)
    program = Program()
    for _ in range(60):
        inner = (chosen.randint(3, 30), "reset:1 relax:2 !cudaMemcpy")
        program.run("update:2", inner, "check:2")
    found = program.found()
    assert int(sorted(found.kernels)[len(found) // 2]) == 2


@pytest.mark.parametrize("name", ["BmmBackward#", "AddBackward0", "aten::mm", "AccumulateGrad"])
def test_names_of_operators_are_known(name: str) -> None:
    assert role_of(name) is Role.OPERATOR


def test_a_capture_cut_at_both_ends_has_edges() -> None:
    program = Program().run((10, TRAINING))
    kernels = program.kernels
    program.kernels = kernels[len(kernels) // 27 : -len(kernels) // 23]
    found = program.found()
    assert found.phase.count(STEADY) >= 8
    assert set(found.phase[1:-1]) == {STEADY}
    assert EDGE in (found.phase[0], found.phase[-1]) or len(found) == 9


def test_steps_of_the_profiler_go_first() -> None:
    batches = (2, named("batch {n}", forward(2), backward(2)))
    found = Program().run((6, named("ProfilerStep#{n}", batches, optimizer()))).found()
    assert (len(found), found.source) == (6, "repeated range 'ProfilerStep##'")
    assert any("batch" in one.source for one in found.others)


def test_two_iterations_after_warm_up_are_no_steady_state() -> None:
    warm = named("warm-up", named("it 0", forward()))
    found = Program().run(warm, (2, named("benchmark", named("it 1", forward())))).found()
    assert steady_state(found) is None
    assert len(found) or found.notes
