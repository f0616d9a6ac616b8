"""What the names of kernels say: categories, FP32 products, unfused steps, communication."""

import csv
from pathlib import Path

import numpy as np
import pytest

from nsightpy.analysis.communication import is_communication, operation_of
from nsightpy.analysis.findings.evidence import Evidence, Gpu, Group
from nsightpy.analysis.findings.work_evidence import COLUMNS, with_kernels
from nsightpy.analysis.intervals import NOTHING, Spans
from nsightpy.analysis.kernel_categories import CATEGORIES, category_of
from nsightpy.analysis.time_budget import TimeBudget
from nsightpy.frames import Labels
from tests.support.frames import frame
from tests.support.reports import REPORTS, rows_of

ATEN = "void at::native::"
# As profilers print them, arguments shortened: from the sources of the libraries and public traces.
NAMES = {
    "gemm": (
        "ampere_sgemm_128x64_tn",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_execute_segment_k_off_kernel",
        "_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1_swiglu",
        "triton_tem_fused_addmm_relu_3",
    ),
    "attention": (
        "void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64>, cutlass::half_t>(x)",
        "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<x>>>(x)",
        "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<x>>(x)",
        "triton_tem_fused_flex_attention_1",
    ),
    "convolution": (
        "volta_scudnn_128x64_relu_small_nn_v1",
        "void cudnn::winograd_nonfused::winogradForwardFilter4x4<float, float>(x)",
    ),
    "normalisation": (
        f"{ATEN}(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(x)",
        "void vllm::fused_add_rms_norm_kernel<c10::Half, 8>(x)",
        "triton_red_fused_add_mean_mul_pow_rsqrt_0",
    ),
    "softmax": (
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, true, false>(x)",
        "triton_per_fused__log_softmax_nll_loss_forward_4",
    ),
    "elementwise": (
        f"{ATEN}vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(x)",
        "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>>(x)",
        "triton_poi_fused_add_cos_sin_0",
    ),
    "reduction": (
        f"{ATEN}reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>(x)",
        f"{ATEN}multi_tensor_apply_kernel<TensorListMetadata<1>, LpNormFunctor<float>, int>(x)",
    ),
    "embedding and gather": (
        f"{ATEN}(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long>(x)",
        "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel<x>(x)",
    ),
    "sort and scan": (
        "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>>(x)",
        "void cub::DeviceScanKernel<cub::AgentScanPolicy<128, 15, int>, int const*, int*>(x)",
    ),
    "sampling": (
        "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u, float, int>(x)",
    ),
    "optimizer": (
        f"{ATEN}multi_tensor_apply_kernel<FusedOptimizer<4>, FusedAdamMathFunctor<float>>(x)",
        "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(x)",
    ),
    "quantise and cast": (
        f"{ATEN}vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda(x)>(x)",
    ),
    "MoE routing": (
        "void vllm::moe::moe_align_block_size_kernel<int>(x)",
        "void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, int>(x)",
        "_finalize_matmul_scatter_bf16",
    ),
    "copies": (
        f"{ATEN}unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(x)>(x)",
        f"{ATEN}(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 64, 64>(x)",
    ),
    "FFT": (
        "void regular_fft<192u, EPT<12u, 16u>, 16u, 2u, (padding_t)6, (twiddle_t)0, double>(x)",
    ),
    "sparse and linear algebra": (
        "void cusparse::csrmv_v3_kernel<std::integral_constant<bool, false>, int, int, double>(x)",
    ),
    "stencil": ("jacobi_kernel(float*, float*, int)", "lbm_stream_collide(double*)"),
    "solver": ("void amg::smoother_sweep<double>(x)", "gmres_update(double*)"),
    "particles": ("nbnxn_kernel_ElecEw_VdwLJCombLB_F_cuda(x)", "lj_force_kernel(x)"),
    "JIT": ("fusion_12", "triton__0d1d2d3de"),
    "communication": (
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(x)",
    ),
    "other": (
        "Fan2(float *, float *, float *, int, int, int)",
        "void resolve_future_token_ids_kernel<long>(x)",
        "",
    ),
}
NSYS, KINETO = REPORTS / "nsys", REPORTS / "kineto"
LEARNING = (
    *sorted(KINETO.glob("*.json.gz")),
    *(
        path
        for path in sorted(NSYS.glob("*.sqlite"))
        if path.name.split("_")[0] in ("cudagraph", "ddp", "gpt2.7b", "mfu", "nvtx", "train")
    ),
)
MOST_OTHER = 0.01
# What TraceLens, which goes by operators, calls ours.
TRACELENS = {
    "GEMM": {"gemm"},
    # a cuDNN convolution transposes its tensors
    "CONV_fwd": {"convolution", "copies"},
    "NORM_fwd": {"normalisation"},
    "elementwise": {"elementwise"},
    "reduce": {"reduction"},
    # it has none for these operators
    "other": {"attention", "embedding and gather", "copies"},
    # what inductor fused
    "triton": {"elementwise", "normalisation"},
}
SHEETS = sorted(KINETO.glob("*.tracelens.kernel_summary.csv"))


@pytest.mark.parametrize("category", NAMES)
def test_names_of_libraries(category: str) -> None:
    assert {name: category_of(name) for name in NAMES[category]} == dict.fromkeys(
        NAMES[category], category
    )


def test_every_category_has_names() -> None:
    assert set(NAMES) == set(CATEGORIES)


@pytest.mark.slow
@pytest.mark.parametrize("path", LEARNING, ids=lambda path: path.name)
def test_names_of_deep_learning_are_known_nearly_all(path: Path) -> None:
    rows = rows_of("kernels", path, "--by", "category")
    times = {row["category"]: row["Total Time (ns)"] for row in rows}
    assert times.get("other", 0) <= MOST_OTHER * sum(times.values())


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.name)
def test_tracelens_says_the_same(path: Path) -> None:
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            assert category_of(row["Kernel name"]) in TRACELENS[row["Parent op category"]]


A100 = Gpu(108, 8, "NVIDIA A100")


def group(name: str, of: str, blocks: int = 1000, gpu: Gpu = A100) -> Group:
    """The group of a kernel that runs alone."""
    shape = dict.fromkeys(COLUMNS, 1) | {"blocks": blocks, "threads": 128}
    kernels = frame("start_ns end_ns stream name", [(0, 50_000, 7, name)], **shape)
    row = Evidence(0, 0, TimeBudget(Spans.of(0, 50_000), *[50_000] * 2, *[0] * 6), gpu=gpu)
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


OPERATIONS = {
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "AllReduce",
    "void (anonymous namespace)::multimem_all_reduce<c10::Half>(int*)": "multimem_all_reduce",
    "void vllm::cross_device_reduce_1stage<int>(int)": "vllm::cross_device_reduce_1stage",
}


def test_communication_has_the_name_of_its_operation_or_function() -> None:
    assert {name: operation_of(name) for name in OPERATIONS} == OPERATIONS


def test_libraries_of_their_own_communicate_and_names_like_theirs_do_not() -> None:
    theirs = [
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(int*)",
        "kuserbuffers_pushrecv(int, int)",
        "userbuffers_fp16_sum_inplace_gpu_rr_rs_oop<8>(int)",
        "void quickreduce::allreduce_prototype_twoshot<float>(float*)",
    ]
    others = ["copy_userbuffer(int)", "void at::native::reduce_kernel<512, 1>(int)"]
    assert is_communication(Labels.of([*theirs, *others])).tolist() == [True] * 4 + [False] * 2
