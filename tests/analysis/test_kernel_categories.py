"""What kernels compute, by the names that libraries give them, and how much real captures say."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from nsightpy.analysis.kernel_categories import CATEGORIES, category_of
from tests.support.reports import REPORTS, rows_of

ATEN = "void at::native::"
# As profilers print them, arguments shortened: from the sources of the libraries and public traces.
NAMES = {
    "gemm": (
        "ampere_sgemm_128x64_tn",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_execute_segment_k_off_kernel",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>(x)",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn>(x)",
        "fused_moe_kernel",
        "_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1_swiglu",
        "triton_tem_fused_addmm_relu_3",
    ),
    "attention": (
        "void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64>, cutlass::half_t>(x)",
        "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<x>>>(x)",
        "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel<x>)",
        "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<x>>(x)",
        "triton_tem_fused_flex_attention_1",
        "void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<128, 16, 1>>(x)",
    ),
    "convolution": (
        "volta_scudnn_128x64_relu_small_nn_v1",
        "sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_cudnn_train",
        "void cudnn::winograd_nonfused::winogradForwardFilter4x4<float, float>(x)",
        "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_nhwc>(x)",
    ),
    "normalisation": (
        f"{ATEN}(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(x)",
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>(x)",
        "void vllm::fused_add_rms_norm_kernel<c10::Half, 8>(x)",
        "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(x)",
        "triton_red_fused_add_mean_mul_pow_rsqrt_0",
    ),
    "softmax": (
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, true, false>(x)",
        f"{ATEN}(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float>(x)",
        "triton_per_fused__log_softmax_nll_loss_forward_4",
    ),
    "elementwise": (
        f"{ATEN}vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(x)",
        "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>>(x)",
        "cupy_multiply__float64_float64_float64",
        "triton_poi_fused_add_cos_sin_0",
        "loop_add_fusion_3",
    ),
    "reduction": (
        f"{ATEN}reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>(x)",
        f"{ATEN}multi_tensor_apply_kernel<TensorListMetadata<1>, LpNormFunctor<float>, int>(x)",
        "input_reduce_fusion_2",
    ),
    "embedding and gather": (
        f"{ATEN}(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long>(x)",
        f"{ATEN}index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<x>>(x)",
        "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel<x>(x)",
    ),
    "sort and scan": (
        "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>>(x)",
        "void cub::DeviceScanKernel<cub::AgentScanPolicy<128, 15, int>, int const*, int*>(x)",
        f"{ATEN}sbtopk::gatherTopK<float, unsigned int, 2, false>(x)",
    ),
    "sampling": (
        "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u, float, int>(x)",
        f"{ATEN}(anonymous namespace)::sampleMultinomialOnce<float, float>(x)",
    ),
    "optimizer": (
        f"{ATEN}multi_tensor_apply_kernel<FusedOptimizer<4>, FusedAdamMathFunctor<float>>(x)",
        "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(x)",
    ),
    "quantise and cast": (
        f"{ATEN}vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda(x)>(x)",
        "void vllm::scaled_fp8_quant_kernel_strided<c10::BFloat16, c10::Float8_e4m3fn>(x)",
        "void transformer_engine::cast_transpose_fused_kernel<true, false>(x)",
    ),
    "MoE routing": (
        "void vllm::moe::moe_align_block_size_kernel<int>(x)",
        "void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, int>(x)",
        "void tensorrt_llm::kernels::cutlass_kernels::expandInputRowsKernel<x>(x)",
        "_finalize_matmul_scatter_bf16",
    ),
    "copies": (
        f"{ATEN}unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(x)>(x)",
        f"{ATEN}(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 64, 64>(x)",
        "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(x)",
    ),
    "FFT": (
        "void regular_fft<192u, EPT<12u, 16u>, 16u, 2u, (padding_t)6, (twiddle_t)0, double>(x)",
        "void spRadix0064B::kernel1Mem<unsigned int, float, 0>(x)",
    ),
    "sparse and linear algebra": (
        "void cusparse::csrmv_v3_kernel<std::integral_constant<bool, false>, int, int, double>(x)",
        "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensorStridedBatched<x>>>(x)",
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


@pytest.mark.parametrize(
    ("category", "name"), [(category, name) for category in NAMES for name in NAMES[category]]
)
def test_names_of_libraries(category: str, name: str) -> None:
    assert category_of(name) == category


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
