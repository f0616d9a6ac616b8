"""Which kernels count as FP32 products and unfused steps, by name."""

from __future__ import annotations

import numpy as np
import pytest

from nsightpy.analysis.communication import is_communication, operation_of
from nsightpy.analysis.findings.evidence import Evidence, Gpu, Group
from nsightpy.analysis.findings.kernel_evidence import COLUMNS, with_kernels
from nsightpy.analysis.intervals import NOTHING
from nsightpy.analysis.time_budget import TimeBudget
from nsightpy.frames import Frame, Labels

A100 = Gpu(108, 8, "NVIDIA A100")


def group(name: str, of: str, blocks: int = 1000, gpu: Gpu = A100) -> Group:
    """The group of a kernel that runs alone."""
    shape = dict.fromkeys(COLUMNS, 1) | {"blocks": blocks, "threads": 128}
    columns = {"start_ns": 0, "end_ns": 50_000, "stream": 7, **shape}
    ints = {key: np.asarray([value], dtype=np.int64) for key, value in columns.items()}
    kernels = Frame({**ints, "name": Labels.of([name])})
    row = Evidence(0, 0, TimeBudget(0, *[50_000] * 3, *[0] * 6), gpu=gpu)
    return with_kernels(row, kernels, np.zeros(1, dtype=np.bool_), NOTHING)[of]


@pytest.mark.parametrize(
    ("name", "simt"),
    [
        ("volta_sgemm_128x64_tn", True),
        ("void cutlass::Kernel<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(T1::Params)", True),
        ("void gemmSN_NN_kernel<float, 128, 2, 4, 8, 2, 4, false>(P)", True),
        ("void gemmSN_NN_kernel<double, 128, 2, 4, 8, 2, 4, false>(P)", False),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_ffma_aligna4", True),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x64x32_tensor16x8x8", False),
        ("void cudnn::cnn::implicit_convolve_sgemm<float, float, 1024, 5>(int)", True),
        ("ampere_s1688gemm_fp16_128x128_ldg8_f2f_nn", False),
        ("void gemmk1_kernel<double, 256, 5, cublasGemmk1Params<double>>(P)", False),
        ("ampere_dgemm_64x64_nn", False),
    ],
)
def test_fp32_products(name: str, simt: bool) -> None:
    assert (group(name, "fp32-gemm").count == 1) == simt


def test_small_turing_gpus_have_no_tensor_cores() -> None:
    assert group("ampere_sgemm_128x64_tn", "fp32-gemm").count
    for model in ("NVIDIA GeForce GTX 1660 Ti", "NVIDIA T1000", "NVIDIA GeForce MX450"):
        assert not group("turing_sgemm_128x64_tn", "fp32-gemm", gpu=Gpu(22, 7, model)).count
    assert Gpu(40, 7, "Tesla T4").has_tensor_cores


@pytest.mark.parametrize(
    ("name", "unfused"),
    [
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(T3)", True),
        ("cupy_multiply__float64_float64_float64", True),
        ("void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<X>, int>(T1, T2)", True),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float>(P)", False),
        ("void clover::par_reduce_kernel<calc_dt_kernel>(int)", False),
        ("triton_per_fused_native_layer_norm_3", False),
        ("void at::native::multi_tensor_apply_kernel<M, FusedAdamMathFunctor<float>>(T1)", False),
        ("input_reduce_fusion_4", False),
    ],
)
def test_unfused_steps(name: str, unfused: bool) -> None:
    assert (group(name, "elementwise").count == 1) == unfused


def test_nearly_one_block_a_multiprocessor_is_no_small_grid() -> None:
    assert not group("persistent", "small-grid", 104).count
    assert group("few", "small-grid", 54).count


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "AllReduce"),
        ("void (anonymous namespace)::multimem_all_reduce<c10::Half>(int*)", "multimem_all_reduce"),
        ("void vllm::cross_device_reduce_1stage<int>(int)", "vllm::cross_device_reduce_1stage"),
    ],
)
def test_communication_has_the_name_of_its_operation_or_function(name: str, operation: str) -> None:
    assert operation_of(name) == operation


def test_libraries_of_their_own_communicate_and_names_like_theirs_do_not() -> None:
    theirs = [
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(int*)",
        "kuserbuffers_pushrecv(int, int)",
        "userbuffers_fp16_sum_inplace_gpu_rr_rs_oop<8>(int)",
        "void quickreduce::allreduce_prototype_twoshot<float>(float*)",
    ]
    others = ["copy_userbuffer(int)", "void at::native::reduce_kernel<512, 1>(int)"]
    assert is_communication(Labels.of([*theirs, *others])).tolist() == [True] * 4 + [False] * 2
