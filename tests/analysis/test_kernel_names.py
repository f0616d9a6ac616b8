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
    ("of", "name", "counts"),
    [
        ("fp32-gemm", "volta_sgemm_128x64_tn", True),
        ("fp32-gemm", "void cutlass::Kernel<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(P)", True),
        ("fp32-gemm", "void gemmSN_NN_kernel<float, 128, 2, 4, 8, 2, 4, false>(P)", True),
        ("fp32-gemm", "void gemmSN_NN_kernel<double, 128, 2, 4, 8, 2, 4, false>(P)", False),
        ("fp32-gemm", "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_ffma", True),
        ("fp32-gemm", "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x64x32_tensor16", False),
        ("fp32-gemm", "void cudnn::cnn::implicit_convolve_sgemm<float, float, 1024, 5>(P)", True),
        ("fp32-gemm", "ampere_s1688gemm_fp16_128x128_ldg8_f2f_nn", False),
        ("fp32-gemm", "void gemmk1_kernel<double, 256, 5, cublasGemmk1Params<double>>(P)", False),
        ("fp32-gemm", "ampere_dgemm_64x64_nn", False),
        ("elementwise", "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<x>>(P)", True),
        ("elementwise", "cupy_multiply__float64_float64_float64", True),
        ("elementwise", "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator>(P)", True),
        ("elementwise", "void cublasLt::splitKreduce_kernel<32, 16, int, float>(P)", False),
        ("elementwise", "void clover::par_reduce_kernel<calc_dt_kernel>(int)", False),
        ("elementwise", "triton_per_fused_native_layer_norm_3", False),
        ("elementwise", "void at::native::multi_tensor_apply_kernel<FusedAdam<float>>(P)", False),
        ("elementwise", "input_reduce_fusion_4", False),
    ],
)
def test_fp32_products_and_unfused_steps(of: str, name: str, counts: bool) -> None:
    assert (group(name, of).count == 1) == counts


def test_groups_depend_on_the_gpu_and_its_blocks() -> None:
    for model in ("NVIDIA GeForce GTX 1660 Ti", "NVIDIA T1000", "NVIDIA GeForce MX450"):
        assert not group("turing_sgemm_128x64_tn", "fp32-gemm", gpu=Gpu(22, 7, model)).count
    assert Gpu(40, 7, "Tesla T4").has_tensor_cores
    # nearly one block a multiprocessor is no small grid
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
