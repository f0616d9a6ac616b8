"""The kernels of a simulated transformer: real-looking names, shapes and durations.

Durations are ns on an unhurried H100 at scale 1; shapes are what such kernels use.
"""

from dataclasses import dataclass
from typing import Any

Extent = tuple[int, int, int]

LAUNCH = "cudaLaunchKernel_v7000"
LAUNCH_EX = "cudaLaunchKernelExC_v11060"
LAUNCH_DRIVER = "cuLaunchKernelEx"


@dataclass(frozen=True)
class KernelSpec:
    """One kernel variant: demangled name, shape, resources and its usual duration in ns."""

    name: str
    duration_ns: int
    grid: Extent
    block: Extent = (128, 1, 1)
    registers: int = 32
    shared: tuple[int, int] = (0, 0)
    launch: str = LAUNCH


def _kernel(shape: tuple[Any, ...], name: str) -> KernelSpec:
    """A kernel; `shape` is its ns, grid, block, registers and shared bytes, as far as said."""
    return KernelSpec(name, *shape)


def _vectorized(functor: str, arrays: int, width: int = 4) -> str:
    return (
        f"void at::native::vectorized_elementwise_kernel<(int){width}, {functor}, "
        f"std::array<char *, (unsigned long){arrays}>>(int, T2, T3)"
    )


def _elementwise(functor: str) -> str:
    return (
        "void at::native::elementwise_kernel<(int)128, (int)4, "
        f"void at::native::gpu_kernel_impl_nocast<{functor}>(at::TensorIteratorBase &, "
        "const T1 &)::[lambda(int) (instance 1)]>(int, T3)"
    )


def _reduce(operation: str, wide: int = 512) -> str:
    return (
        f"void at::native::reduce_kernel<(int){wide}, (int)1, at::native::ReduceOp<float, "
        f"{operation}, unsigned int, float, (int)4, (int)4>>(T3)"
    )


def _nvjet(tile: str, layout: str, duration_ns: int, grid: Extent) -> KernelSpec:
    name = f"nvjet_tst_{tile}_{layout}"
    return KernelSpec(name, duration_ns, grid, (384, 1, 1), 168, (0, 213196), LAUNCH_EX)


def _xmma(tile: str, layout: str, duration_ns: int, grid: Extent) -> KernelSpec:
    name = (
        f"sm90_xmma_gemm_bf16bf16_bf16f32_f32_{layout}_n_tilesize{tile}"
        "_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"
    )
    return KernelSpec(name, duration_ns, grid, (384, 1, 1), 168, (0, 213248), LAUNCH_EX)


_BF16 = "c10::BFloat16"
_LAMBDA = "::[lambda() (instance 2)]::operator ()() const::[lambda() (instance 4)]"
_FLASH = (
    "Flash_fwd_kernel_traits<(int)128, (int)128, (int)64, (int)4, (bool)0, (bool)0, "
    "cutlass::bfloat16_t, Flash_kernel_traits<(int)128, (int)128, (int)64, (int)4, "
    "cutlass::bfloat16_t>>"
)
_FLASH_BACK = (
    "Flash_bwd_kernel_traits<(int)128, (int)64, (int)128, (int)8, (int)2, (int)4, (int)2, "
    "(bool)0, (bool)0, cutlass::bfloat16_t, Flash_kernel_traits<(int)128, (int)64, (int)128, "
    "(int)8, cutlass::bfloat16_t>>"
)

LAYER_NORM = _kernel(
    (18_500, (8192, 1, 1), (32, 4, 1), 39, (24, 0)),
    "void at::native::<unnamed>::vectorized_layer_norm_kernel<c10::BFloat16, float, (bool)0>"
    "(int, T2, const T1 *, const T1 *, const T1 *, T2 *, T2 *, T1 *)",
)
QKV = _nvjet("192x192_64x4_2x1_v_bz_coopB", "TNT", 94_000, (2, 66, 1))
PROJECTION = _nvjet("128x256_64x4_1x2_h_bz_coopA", "TNT", 41_000, (132, 1, 1))
FC1 = _nvjet("256x128_64x4_2x1_v_bz_coopA_bias", "TNT", 132_000, (2, 66, 1))
FC2 = _xmma("128x256x64", "tn", 126_000, (64, 32, 1))
ROTARY = _kernel(
    (13_800, (16384, 1, 1), (128, 1, 1), 19),
    _elementwise(
        f"at::native::BinaryFunctor<{_BF16}, {_BF16}, {_BF16}, "
        "at::native::binary_internal::MulFunctor<float>>"
    ),
)
FLASH = _kernel(
    (118_000, (32, 8, 16), (128, 1, 1), 255, (0, 65536)),
    f"void flash::flash_fwd_kernel<{_FLASH}, (bool)0, (bool)1, (bool)0, (bool)0, (bool)1, "
    "(bool)1, (bool)0, (bool)0>(flash::Flash_fwd_params)",
)
ADD = _kernel(
    (15_600, (32768, 1, 1), (128, 1, 1), 37),
    _vectorized(f"at::native::CUDAFunctor_add<{_BF16}>", 3),
)
GELU = _kernel(
    (29_400, (65536, 1, 1)),
    _vectorized(
        "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase &, at::native::GeluType)"
        f"::[lambda() (instance 1)]::operator ()() const::[lambda({_BF16}) (instance 1)]",
        2,
        8,
    ),
)
GELU_BACKWARD = _kernel(
    (44_000, (65536, 1, 1)),
    _vectorized(
        "at::native::GeluBackwardCUDAKernelImpl(at::TensorIteratorBase &, "
        f"at::native::GeluType)::[lambda({_BF16}, {_BF16}) (instance 1)]",
        3,
        8,
    ),
)
DGRAD = _nvjet("192x208_64x4_1x1_h_bz_coopB", "NNT", 108_000, (1, 132, 1))
DGRAD_SMALL = _nvjet("128x160_64x5_2x1_v_bz_coopA", "NNT", 47_000, (2, 66, 1))
WGRAD = _xmma("256x128x64", "nt", 121_000, (32, 32, 1))
WGRAD_SMALL = _xmma("128x128x64", "nt", 45_000, (32, 16, 1))
SPLIT_K = _kernel(
    (8_200, (512, 16, 1), (32, 16, 1), 38),
    "void cublasLt::splitKreduce_kernel<(int)32, (int)16, int, float, __nv_bfloat16, float, "
    "__nv_bfloat16, (bool)0, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, (bool)1, (bool)0, "
    "(bool)0>(cublasLt::cublasSplitKParams<T6>, const T4 *, const T10 *, T9 *, T5 *)",
)
BIAS_GRADIENT = _kernel(
    (16_900, (128, 1, 1), (32, 16, 1), 48, (16, 2048)),
    _reduce(
        "at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>"
        "::operator ()(at::TensorIterator &)::[lambda(float, float) (instance 1)]>"
    ),
)
NORM_BACKWARD = _kernel(
    (27_500, (8192, 1, 1), (256, 1, 1), 40),
    "void at::native::<unnamed>::layer_norm_grad_input_kernel_vectorized<c10::BFloat16, float, "
    "(bool)0>(const T1 *, const T1 *, const T2 *, const T2 *, const T1 *, T1 *, int)",
)
NORM_GAMMA = _kernel(
    (22_300, (128, 1, 1), (32, 8, 1), 56, (2176, 0)),
    "void at::native::<unnamed>::GammaBetaBackwardCUDAKernelTemplate<c10::BFloat16, float, "
    "(unsigned int)32, (unsigned int)8, (unsigned int)64, (bool)0, (bool)1, (bool)0>"
    "(long, long, const T1 *, const T1 *, const T2 *, const T2 *, T1 *, T1 *)",
)
FLASH_DOT = _kernel(
    (12_100, (32, 8, 16), (256, 1, 1), 36),
    f"void flash::flash_bwd_dot_do_o_kernel<(bool)1, {_FLASH_BACK}>(flash::Flash_bwd_params)",
)
FLASH_BACKWARD = _kernel(
    (286_000, (16, 8, 16), (256, 1, 1), 255, (0, 147456)),
    f"void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<{_FLASH_BACK}, (bool)0, (bool)1, "
    "(bool)0, (bool)0, (bool)1, (bool)1, (bool)0>(flash::Flash_bwd_params)",
)
FLASH_CONVERT = _kernel(
    (9_700, (32, 8, 16), (256, 1, 1), 30, (0, 16384)),
    f"void flash::flash_bwd_convert_dq_kernel<{_FLASH_BACK}>(flash::Flash_bwd_params, int)",
)
EMBEDDING = _kernel(
    (21_000, (8192, 1, 1), (256, 1, 1), 26),
    "void at::native::vectorized_gather_kernel<(int)16, long>"
    "(char *, char *, T2 *, int, long, long, long, long, bool)",
)
EMBEDDING_BACKWARD = _kernel(
    (96_000, (2048, 8, 1), (32, 4, 1), 40),
    "void <unnamed>::indexing_backward_kernel<c10::BFloat16, (int)4>"
    "(const long *, const long *, const T1 *, T1 *, long, long, long, long, bool)",
)
HEAD = _xmma("256x128x64", "tn", 298_000, (250, 32, 1))
SOFTMAX = _kernel(
    (74_000, (8192, 1, 1), (1024, 1, 1), 40, (136, 0)),
    "void at::native::<unnamed>::cunn_SoftMaxForward<(int)8, c10::BFloat16, float, float, "
    "at::native::<unnamed>::LogSoftMaxForwardEpilogue>(T4 *, const T2 *, int)",
)
SOFTMAX_BACKWARD = _kernel(
    (88_000, (8192, 1, 1), (1024, 1, 1), 38, (136, 0)),
    "void at::native::<unnamed>::cunn_SoftMaxBackward<(int)8, c10::BFloat16, float, float, "
    "at::native::<unnamed>::LogSoftMaxBackwardEpilogue>(T2 *, const T4 *, const T4 *, long)",
)
LOSS = _kernel(
    (11_400, (1, 1, 1), (32, 1, 1), 38),
    "void at::native::<unnamed>::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>"
    "(T1 *, T1 *, const T1 *, const T3 *, const T1 *, bool, long, long, long, long)",
)
FILL = _kernel(
    (1_900, (1, 1, 1), (128, 1, 1), 16),
    _vectorized("at::native::FillFunctor<float>", 1),
)
GRADIENT_NORM = _kernel(
    (58_000, (320, 1, 1), (512, 1, 1), 40),
    "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::"
    "TensorListMetadata<(int)1>, at::native::<unnamed>::LpNormFunctor<float, (at::native::"
    "NormType)1, float, (int)1, (int)1, (int)0>, float *, int>(T1, T2, T3...)",
)
CLIP = _kernel(
    (41_000, (320, 1, 1), (512, 1, 1), 36),
    "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::"
    "TensorListMetadata<(int)1>, at::native::<unnamed>::BinaryOpScalarTensorFunctor<float, "
    "(int)1, (int)1, (int)0>, std::multiplies<float>, float *, float>(T1, T2, T3...)",
)
ADAM = _kernel(
    (176_000, (320, 1, 1), (512, 1, 1), 96),
    "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::"
    "FusedOptimizerTensorListMetadata<(int)4>, at::native::<unnamed>::FusedAdamMathFunctor"
    "<float, (int)4, (at::native::ADAM_MODE)1, (bool)0>, const float *, double, double, double, "
    "double, double, bool, const float *, const float *>(T1, T2, T3...)",
)
CAST = _kernel(
    (24_000, (16384, 1, 1), (128, 1, 1), 30),
    _vectorized(
        "at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase &)"
        f"{_LAMBDA}::operator ()() const::[lambda(float) (instance 1)]",
        2,
    ),
)

FORWARD_ATTENTION = (LAYER_NORM, QKV, ROTARY, ROTARY, FLASH, PROJECTION)
FORWARD_MLP = (LAYER_NORM, FC1, GELU, FC2)
BACKWARD_MLP = (DGRAD, WGRAD, SPLIT_K, GELU_BACKWARD, BIAS_GRADIENT, DGRAD, WGRAD)
BACKWARD_ATTENTION = (
    DGRAD_SMALL,
    WGRAD_SMALL,
    FLASH_DOT,
    FLASH_BACKWARD,
    FLASH_CONVERT,
    ROTARY,
    DGRAD_SMALL,
    WGRAD,
)
BACKWARD_NORM = (NORM_BACKWARD, NORM_GAMMA, ADD)
LOSS_FORWARD = (LAYER_NORM, HEAD, SOFTMAX, LOSS)
LOSS_BACKWARD = (SOFTMAX_BACKWARD, DGRAD, WGRAD)
OPTIMIZER = (GRADIENT_NORM, CLIP, ADAM, ADAM, CAST)
INFERENCE = (EMBEDDING, *FORWARD_ATTENTION, ADD, *FORWARD_MLP, ADD, LAYER_NORM, SOFTMAX)


def nccl(operation: str, data: str = "bf16") -> KernelSpec:
    """The kernel of an NCCL operation (>= 2.22); its duration comes from the bytes."""
    typed = operation in {"AllReduce", "ReduceScatter"}
    name = f"ncclDevKernel_{operation}" + (f"_Sum_{data}" * typed)
    if operation != "SendRecv":
        name += "_RING_LL"
    return KernelSpec(
        f"{name}(ncclDevKernelArgsStorage<(unsigned long)4096>)",
        0,
        (24, 1, 1) if operation != "SendRecv" else (8, 1, 1),
        (544, 1, 1) if operation != "SendRecv" else (640, 1, 1),
        96,
        (7104, 82240),
        LAUNCH_DRIVER,
    )
