"""Iterations of small programs of many kinds: steps, not layers, launches or warm-up."""

from __future__ import annotations

import random

import pytest

from nsightpy.analysis.iterations.steady import EDGE, STEADY, WARM_UP, steady_state
from nsightpy.analysis.iterations.vocabulary import Role, role_of
from tests.support.programs import ADD, GEMM, MUL, SUM, Program, backward, forward, layer, optimizer


@pytest.mark.parametrize("named", [False, True])
def test_layers_of_one_forward_pass_are_no_iterations(named: bool) -> None:
    program = Program()
    if named:
        with program.range("forward pass"):
            program.launch(ADD)
            for number in range(12):
                with program.range(f"transformer block {number}"):
                    layer(program)
            program.launch(GEMM, 90_000)
    else:
        forward(program)
    found = program.found()
    assert len(found) == 0
    assert "no step of the program" in str(found.notes[0])
    assert any(len(one) in (11, 12, 24) for one in found.others)


def test_blocks_that_the_host_waits_in_are_no_iterations() -> None:
    program = Program()
    for number in range(15):
        with program.range(f"FSDP::pre_forward (blocks.{number})"):
            program.launch(ADD)
        layer(program)
        program.wait("cudaStreamSynchronize")
    assert len(program.found()) == 0


@pytest.mark.parametrize("steps", [3, 10])
def test_forward_passes_without_ranges_are_iterations(steps: int) -> None:
    program = Program()
    for _ in range(steps):
        forward(program)
    found = program.found()
    assert len(found) == steps
    assert found.source == "repeated kernel sequence"


def test_three_passes_that_the_host_waits_for_are_iterations() -> None:
    """Layers all alike mark no pass: only the waits do."""
    program = Program()
    for _ in range(3):
        for _ in range(12):
            for name in (
                "elementwise",
                "ampere_sgemm_tn",
                "softmax_warp_forward",
                "ampere_sgemm_nn",
            ):
                program.launch(name)
        program.wait()
    assert len(program.found()) == 3


def test_measured_steps_count_and_warm_up_ranges_do_not() -> None:
    program = Program()
    with program.range("warmup"):
        for number in range(5):
            program.think(20_000_000 if number == 0 else 0)
            forward(program)
        program.wait()
    for number in range(10):
        with program.range(f"step_{number}"):
            forward(program)
            program.wait()
    found = program.found()
    assert (len(found), set(found.phase)) == (10, {STEADY})
    assert "step_#" in found.source


def test_warm_up_steps_of_their_own_name_do_not_count() -> None:
    program = Program()
    for number in range(20):
        with program.range(f"warmup step {number}"):
            forward(program)
    for number in range(6):
        with program.range(f"measured step {number}"):
            forward(program)
    assert len(program.found()) == 6


def test_steps_in_a_warm_up_range_are_warm_up() -> None:
    program = Program()
    with program.range("warm-up"):
        for _ in range(5):
            forward(program)
        program.wait()
    with program.range("benchmark"):
        for _ in range(10):
            forward(program)
        program.wait()
    found = program.found()
    assert found.phase == (WARM_UP,) * 5 + (STEADY,) * 10


def test_forward_backward_and_optimizer_ranges_are_one_step() -> None:
    program = Program()
    for _ in range(8):
        with program.range("forward"):
            forward(program, 4)
        with program.range("backward"):
            backward(program, 4)
        with program.range("optimizer step"):
            optimizer(program)
            program.wait()
    found = program.found()
    assert len(found) == 8
    assert all(name in found.source for name in ("forward", "backward", "optimizer step"))


def test_one_training_step_with_its_parts_is_no_iteration() -> None:
    program = Program()
    with program.range("forward pass"):
        forward(program)
    with program.range("backward pass"):
        backward(program)
    with program.range("optimizer step"):
        for _ in range(100):
            for name in (MUL, ADD, MUL, SUM, ADD):
                program.launch(name, 3_000)
    assert len(program.found()) == 0


def test_training_with_evaluation_between_counts_training_steps() -> None:
    program = Program()
    for _ in range(4):
        for _ in range(10):
            forward(program, 4)
            backward(program, 4)
            optimizer(program)
        for _ in range(3):
            forward(program, 4)
            program.wait()
    found = program.found()
    assert len(found) in (40, 41)


def test_micro_steps_of_accumulated_gradients_are_parts_of_a_step() -> None:
    program = Program()
    for _ in range(9):
        for _ in range(4):
            forward(program, 3)
            backward(program, 3)
        optimizer(program)
    assert len(program.found()) == 9


def test_decoding_that_grows_longer_is_found_token_by_token() -> None:
    program = Program()
    forward(program, 4, 8.0, "prefill_gemm")
    for step in range(60):
        forward(program, 4, 0.1 + 0.01 * step)
        program.launch("void at::native::reduce_kernel<512, ArgMaxOps<float>> argmax", 5_000)
        program.wait("cudaMemcpy")
    found = program.found()
    assert abs(len(found) - 60) <= 1


def test_steps_of_changing_shapes_are_found() -> None:
    """Each step's matrix products run in one of three kernels, by its length."""
    chosen = random.Random(3)
    program = Program()
    for _ in range(24):
        tile = chosen.choice(("128x64", "64x64", "256x128"))
        scale = chosen.uniform(0.5, 2.0)
        forward(program, 4, scale, f"ampere_sgemm_{tile}_tn")
        backward(program, 4, scale, f"ampere_sgemm_{tile}")
        optimizer(program)
        program.wait("cudaMemcpyAsync")
    assert abs(len(program.found()) - 24) <= 1


def test_time_steps_around_an_inner_solver_of_fixed_length() -> None:
    program = Program()
    for _ in range(15):
        program.launch("advect", 300_000)
        program.launch("divergence", 200_000)
        for _ in range(20):
            for name in ("spmv", "dot", "axpy"):
                program.launch(name, 30_000)
        program.launch("project", 250_000)
    assert len(program.found()) == 15


def test_an_inner_loop_of_changing_length_is_counted_itself() -> None:
    chosen = random.Random(7)
    program = Program()
    for _ in range(60):
        program.launch("update", 2_000)
        for _ in range(chosen.randint(3, 30)):
            program.launch("reset", 1_500)
            program.launch("relax", 2_000)
            program.wait("cudaMemcpy")
        program.launch("check", 2_000)
    found = program.found()
    assert int(sorted(found.kernels)[len(found) // 2]) == 2


def test_a_check_every_few_iterations_does_not_make_them_one() -> None:
    program = Program()
    for number in range(100):
        for name in ("spmv", "dot", "axpy", "axpy2", "norm2", "scale"):
            program.launch(name, 30_000)
        if number % 10 == 9:
            program.launch("residual", 5_000)
            program.wait("cudaMemcpy")
    assert len(program.found()) == 100


def test_a_neighbour_list_every_few_steps_does_not_make_them_one() -> None:
    program = Program()
    for number in range(200):
        for name in ("force", "bond", "angle", "drift", "kick"):
            program.launch(name, 60_000)
        if number % 10 == 0:
            program.launch("neighbours", 400_000)
        program.wait("cudaMemcpy")
        program.think(40_000)
    assert len(program.found()) == 200


def test_one_kernel_a_step_and_now_and_then_more_are_steps() -> None:
    """As molecular dynamics whose host integrates: neighbour lists every tenth step."""
    program = Program()
    for number in range(100):
        if number % 10 == 0:
            for name, length in (("cells", 40_000), ("count", 30_000), ("neighbours", 900_000)):
                program.launch(name, length)
        program.launch("pair", 1_500_000)
        program.wait("cudaEventSynchronize")
        program.think(2_000_000)
    assert len(program.found()) == 100


@pytest.mark.parametrize("once", ["kernel", "wait"])
def test_equal_stages_of_a_step_are_parts_of_it(once: str) -> None:
    """As the four stages of a Runge-Kutta method."""
    program = Program()
    for _ in range(60):
        for _ in range(4):
            for name in ("gradient", "flux", "rhs", "boundary", "axpy"):
                program.launch(name, 80_000)
        if once == "kernel":
            program.launch("time_step", 15_000)
        else:
            program.wait()
    assert len(program.found()) == 60


def test_passes_whose_first_launches_were_not_recorded_are_found() -> None:
    """The host ran ahead when the capture began: what was queued then has no launch."""
    program = Program()
    for _ in range(6):
        forward(program, 12)
    lost = len(program.kernels) // 4
    program.kernels = [
        (start, end, 0 if place < lost else number, name)
        for place, (start, end, number, name) in enumerate(program.kernels)
    ]
    assert len(program.found()) == 6


@pytest.mark.parametrize("name", ["BmmBackward#", "AddBackward0", "aten::mm", "AccumulateGrad"])
def test_names_of_operators_are_known(name: str) -> None:
    assert role_of(name) is Role.OPERATOR


def test_layers_of_several_kinds_in_turn_are_no_steps() -> None:
    """As XLA names them: four kinds of layers, whose order of launches is the same."""
    program = Program()
    for _ in range(20):
        for number in range(24):
            program.launch(f"loop_add_fusion_{number % 4}", 20_000)
            program.launch("ampere_bf16_s16816gemm_bf16_128x128_nn", 120_000)
            program.launch("input_reduce_fusion", 25_000)
            program.launch("gemm_fusion_dot_7", 60_000)
        program.launch("input_concatenate_reduce_select_fusion", 30_000)
        program.launch("wrapped_slice", 4_000)
        program.wait("cuStreamSynchronize")
        program.think(2_000_000)
    assert len(program.found()) == 20


def test_alternating_sweeps_are_a_step_each() -> None:
    """Every other time step sweeps the axes in the other order."""
    program = Program()
    for number in range(12):
        program.launch("calc_dt", 40_000)
        for axis in ("x", "y") if number % 2 else ("y", "x"):
            for name in ("flux", "cell", "momentum"):
                program.launch(f"{name}_{axis}", 60_000)
        for name in ("reset", "halo", "gas", "viscosity", "pdv", "accelerate"):
            program.launch(name, 50_000)
    assert len(program.found()) == 12


def test_requests_at_irregular_times_are_iterations() -> None:
    chosen = random.Random(1)
    program = Program()
    for _ in range(30):
        program.think(chosen.randint(1_000_000, 40_000_000))
        forward(program)
        program.wait("cudaMemcpy")
    found = program.found()
    assert len(found) == 30


@pytest.mark.parametrize("waits", [False, True])
def test_work_that_never_repeats_has_no_iterations(waits: bool) -> None:
    chosen = random.Random(11)
    program = Program()
    for number in range(2_000):
        program.launch(f"kernel_{chosen.randint(0, 60)}", chosen.randint(2_000, 90_000))
        if waits and number % 25 == 24:
            program.wait()
    assert len(program.found()) == 0


def test_a_loop_of_one_kernel_counts_its_launches() -> None:
    program = Program()
    for _ in range(40):
        program.launch("body_force", 500_000)
        program.wait()
    assert len(program.found()) == 40


def test_launches_of_one_kernel_of_very_different_length_are_no_steps() -> None:
    program = Program()
    chosen = random.Random(5)
    for _ in range(40):
        program.launch("traverse", chosen.choice((20_000, 400_000, 9_000_000)))
        program.wait()
    assert len(program.found()) == 0


@pytest.mark.parametrize(("grows", "count"), [(2, 0), (1, 200)])
def test_sizes_of_a_benchmark_are_no_steps(grows: int, count: int) -> None:
    """Twenty launches of one kernel between waits; each time twice as long, or as long."""
    program = Program()
    for size in range(10):
        for _ in range(20):
            program.launch("all_to_all", 10_000 * grows**size)
        program.wait()
    assert len(program.found()) == count


def test_a_few_different_kernels_are_no_iterations() -> None:
    program = Program()
    for name in ("init", "add", "add", "mul", "dot", "dot"):
        program.launch(name)
        program.wait()
    assert len(program.found()) == 0


def test_a_capture_cut_at_both_ends_has_edges() -> None:
    program = Program()
    for _ in range(10):
        forward(program, 4)
        backward(program, 4)
        optimizer(program)
    kernels = program.kernels
    program.kernels = kernels[len(kernels) // 27 : -len(kernels) // 23]
    found = program.found()
    assert found.phase.count(STEADY) >= 8
    assert set(found.phase[1:-1]) == {STEADY}
    assert EDGE in (found.phase[0], found.phase[-1]) or len(found) == 9


def test_steps_inside_epochs_are_the_iterations() -> None:
    program = Program()
    for epoch in range(3):
        with program.range(f"epoch {epoch}"):
            for number in range(7):
                with program.range(f"train_step {number}"):
                    forward(program, 2)
                    backward(program, 2)
                    optimizer(program)
            program.wait()
    assert len(program.found()) == 21


def test_steps_without_ranges_inside_epochs_are_the_iterations() -> None:
    program = Program()
    for epoch in range(3):
        with program.range(f"epoch {epoch}"):
            with program.range("train"):
                for _ in range(20):
                    forward(program, 2)
                    backward(program, 2)
                    optimizer(program)
                    program.wait("cudaMemcpy")
            with program.range("eval"):
                for _ in range(4):
                    forward(program, 2)
                    program.wait("cudaMemcpy")
    assert len(program.found()) == 60


def test_unlike_halves_of_a_solver_step_are_one() -> None:
    """A step of conjugate gradients: two scalar products, of which the host reads both."""
    program = Program()
    for _ in range(100):
        for names in (("spmv", "dot", "reduce"), ("axpy", "axpy", "dot", "reduce")):
            for name in names:
                program.launch(name)
            program.wait("cudaMemcpy")
        program.launch("axpy")
    assert len(program.found()) == 100


def test_two_optimizers_of_one_step_do_not_make_it_two() -> None:
    """Of two networks that play against each other one is larger."""
    program = Program()
    for _ in range(20):
        for layers, length in ((2, 60_000), (3, 40_000)):
            forward(program, 2)
            backward(program, layers)
            program.launch("multi_tensor_apply_kernel<FusedAdam>", length)
        program.wait("cudaMemcpy")
    assert len(program.found()) == 20


def test_runs_with_pauses_between_are_the_iterations() -> None:
    program = Program()
    for number in range(10):
        with program.range(f"run {number}"):
            for _ in range(50):
                for name in ("spmv", "dot", "axpy"):
                    program.launch(name)
                program.wait("cudaMemcpy")
        program.think(2_300_000)
    found = program.found()
    assert len(found) == 10
    assert [len(one) for one in found.others] == [500]


def test_tokens_are_counted_whatever_requests_begin_with() -> None:
    """Every fourth request begins in the middle of the capture, with a long step."""
    program = Program()
    for _ in range(4):
        for token in range(41):
            scale, gemm = (1.0, "gemvx_kernel") if token else (15.0, GEMM)
            forward(program, 6, scale, gemm)
            program.launch("argmax_kernel", 9_000)
            program.wait("cudaMemcpy")
    assert len(program.found()) == 164


def test_steps_of_the_profiler_go_first() -> None:
    program = Program()
    for number in range(6):
        with program.range(f"ProfilerStep#{number}"):
            for part in range(2):
                with program.range(f"batch {part}"):
                    forward(program, 2)
                    backward(program, 2)
            optimizer(program)
    found = program.found()
    assert (len(found), found.source) == (6, "repeated range 'ProfilerStep##'")
    assert any("batch" in one.source for one in found.others)


@pytest.mark.parametrize("kind", ["layers", "once", "two"])
def test_there_is_no_steady_state(kind: str) -> None:
    program = Program()
    if kind == "layers":
        forward(program)
    elif kind == "once":
        for number in range(30):
            program.launch(f"kernel_{number}")
    else:
        for number in range(3):
            with (
                program.range("warm-up" if number == 0 else "benchmark"),
                program.range(f"it {number}"),
            ):
                forward(program)
    found = program.found()
    assert steady_state(found) is None
    assert len(found) or found.notes


def test_passes_alone_have_a_steady_state() -> None:
    program = Program()
    for _ in range(8):
        forward(program)
    assert steady_state(program.found()) is not None


def test_layers_of_a_mixture_of_experts_are_no_iterations() -> None:
    """Rotary embeddings and expert routing come once a layer."""
    program = Program()
    program.launch("void vllm::embedding_kernel")
    for _ in range(36):
        for name in (
            *("nvjet_tst_64x64_bias_TNT", "void vllm::rotary_embedding_kernel<c10::BFloat16>"),
            *("fmhaSm100aKernel", "nvjet_tst_144x128", "vllm::fused_add_rms_norm_kernel"),
            *("_topk_forward", "moe::dev::routing::kernel", "bmm_MxE4m3", "moe::finalize"),
        ):
            program.launch(name, 30_000)
    program.launch("nvjet_head", 100_000)
    assert len(program.found()) == 0


def convolutions(program: Program, count: int) -> None:
    """A pass of a convolutional network without stacks of equal blocks."""
    for number in range(count):
        program.launch(f"sm80_xmma_fprop_implicit_gemm_{number % 5}", 50_000 + 1_000 * number)
        program.launch("void cudnn::bn_fw_inf_1C11_kernel_NCHW", 9_000)


def test_images_that_a_network_is_asked_about_are_iterations() -> None:
    program = Program()
    for _ in range(20):
        convolutions(program, 11)
        program.launch("void cudnn::softmax_fw_kernel", 4_000)
        program.wait("cudaMemcpy")
    assert len(program.found()) == 20


def test_compiled_steps_of_numbered_fusions_are_iterations() -> None:
    """As XLA and Triton name them: every kernel of a step has a name of its own."""
    program = Program()
    for number in range(9):
        program.launch(f"init_{number}", 70_000)
    for _ in range(15):
        for number in range(60):
            program.launch(f"loop_fusion_{number}", 20_000)
    assert len(program.found()) == 15


@pytest.mark.parametrize("streams", [1, 2])
def test_replays_of_a_graph_are_iterations(streams: int) -> None:
    program = Program()
    for _ in range(12):
        for number in range(streams):
            program.launch(f"CUDA graph {number}", 4_000_000)
        program.wait()
    assert len(program.found()) == 12


def test_two_threads_that_launch_at_once_are_steps_together() -> None:
    """A thread of its own launches the backward pass, another one loads data meanwhile."""
    chosen = random.Random(5)
    program = Program()
    for _ in range(16):
        forward(program, 3)
        program.thread = 2
        backward(program, 3)
        program.launch(f"decode_image_{chosen.randint(0, 3)}", 8_000, repeat=chosen.randint(1, 4))
        program.thread = 1
        optimizer(program)
    assert len(program.found()) == 16


def test_a_benchmark_of_one_operator_counts_its_runs() -> None:
    program = Program()
    for _ in range(100):
        program.launch("void at::native::vectorized_elementwise_kernel<FillFunctor<int>>", 30_000)
        program.launch("nvfuser_pointwise_f0_c1_r0_g0", 80_000)
    assert len(program.found()) == 100


def test_modules_in_a_list_are_layers_whatever_they_are_called() -> None:
    program = Program()
    program.launch(ADD)
    for number in range(12):
        with program.range(f"h.{number}"):
            layer(program)
    program.launch(GEMM, 90_000)
    assert len(program.found()) == 0
