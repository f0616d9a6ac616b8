"""The strings of a simulated export: kernel names as PyTorch jobs have them, APIs, NVTX texts."""

from __future__ import annotations

from dataclasses import dataclass

KERNEL_NAMES = 400
COMMUNICATION_NAMES = 3

LAUNCH = "cudaLaunchKernel_v7000"
MEMCPY = "cudaMemcpyAsync_v3020"
MEMSET = "cudaMemsetAsync_v3020"
SYNCHRONIZE = "cudaStreamSynchronize_v3020"
RECORD = "cudaEventRecord_v3020"
WAIT = "cudaStreamWaitEvent_v3020"
OTHER_CALLS = (
    "cudaStreamIsCapturing_v10000",
    "cudaEventQuery_v3020",
    RECORD,
    WAIT,
    "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_v7000",
    "cudaFuncGetAttributes_v3020",
)

_COLLECTIVES = ("AllReduce_Sum_bf16_RING_LL", "ReduceScatter_Sum_bf16_RING_LL", "AllGather_RING_LL")
_TYPES = ("float", "c10::BFloat16", "c10::Half", "double", "int", "long", "bool")
_FUNCTORS = ("Add", "Mul", "Div", "Sub", "Maximum", "Minimum", "Pow", "Where", "Gelu", "Silu")
_TILES = (
    "64x64_32x6",
    "64x128_32x6",
    "128x64_64x3",
    "128x128_32x5",
    "256x128_32x3",
    "128x256_64x4",
)
_LAYOUTS = ("nn", "nt", "tn", "tt")


@dataclass(frozen=True)
class KernelName:
    """The three spellings under which an export lists one kernel."""

    demangled: str
    short: str
    mangled: str


def _mangled(*parts: str) -> str:
    body = "".join(f"{len(part)}{part}" for part in parts)
    return f"_ZN{body}ILi4EfSt5arrayIPcLm3EEEEviT0_T1_"


def _communication(index: int) -> KernelName:
    short = f"ncclDevKernel_{_COLLECTIVES[index]}"
    storage = "ncclDevKernelArgsStorage<(unsigned long)4096>"
    return KernelName(
        f"{short}({storage})", short, f"_Z{len(short)}{short}24{storage[:24]}ILm4096EE"
    )


def _elementwise(index: int) -> KernelName:
    kind = _TYPES[index % len(_TYPES)]
    functor = f"{_FUNCTORS[index % len(_FUNCTORS)]}Functor"
    width = 1 << (index // 70)
    short = "vectorized_elementwise_kernel" if index % 2 else "elementwise_kernel"
    operation = (
        f"at::native::BinaryFunctor<{kind}, {kind}, {kind}, "
        f"at::native::binary_internal::{functor}<{kind}>>"
    )
    if short == "elementwise_kernel":
        operation = (
            f"void at::native::gpu_kernel_impl_nocast<{operation}>(at::TensorIteratorBase &, "
            "const T1 &)::[lambda(int) (instance 1)]"
        )
    array = "std::array<char *, (unsigned long)3>"
    demangled = f"void at::native::{short}<(int){width}, {operation}, {array}>(int, T2, T3)"
    return KernelName(demangled, short, _mangled("at", "native", short, f"{functor}_{index}"))


def _gemm(index: int) -> KernelName:
    tile = _TILES[index % len(_TILES)]
    layout = _LAYOUTS[index // len(_TILES) % len(_LAYOUTS)]
    if index % 3:
        short = f"ampere_bf16_s16816gemm_bf16_{tile}_ldg8_stages_v{index}_f2f_{layout}"
        return KernelName(short, short, short)
    inner = f"cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_{tile}_{layout}_align8_{index}"
    demangled = f"void cutlass::Kernel2<{inner}>(T1::Params)"
    return KernelName(demangled, "Kernel2", _mangled("cutlass", "Kernel2", inner))


def _attention(index: int) -> KernelName:
    short = "flash_fwd_kernel" if index % 2 else "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel"
    traits = (
        f"Flash_kernel_traits<(int){32 * (index % 8 + 1)}, (int)128, (int){64 << index % 2}, "
        "(int)4, (bool)0, (bool)0, cutlass::bfloat16_t>"
    )
    flags = ", ".join(f"(bool){index >> bit & 1}" for bit in range(9))
    demangled = f"void pytorch_flash::{short}<{traits}, {flags}>(pytorch_flash::Flash_fwd_params)"
    return KernelName(demangled, short, _mangled("pytorch_flash", short, f"traits_{index}"))


def _triton(index: int) -> KernelName:
    kind = ("poi", "per", "red")[index % 3]
    short = f"triton_{kind}_fused_add_native_layer_norm_native_layer_norm_backward_{index}"
    return KernelName(short, short, short)


def _reduction(index: int) -> KernelName:
    kind = _TYPES[index % len(_TYPES)]
    operation = (
        f"at::native::func_wrapper_t<{kind}, at::native::sum_functor<{kind}, float, {kind}>>"
    )
    demangled = (
        f"void at::native::reduce_kernel<(int){128 << index % 3}, (int){index + 1}, "
        f"at::native::ReduceOp<{kind}, {operation}, unsigned int, {kind}, (int)4>>(T3)"
    )
    return KernelName(demangled, "reduce_kernel", _mangled("at", "native", f"reduce_{index}"))


_FAMILIES = (_elementwise, _gemm, _elementwise, _attention, _triton, _reduction)


def kernel_names(count: int = KERNEL_NAMES) -> list[KernelName]:
    """`count` different kernel names; the first three are NCCL's."""
    names = [_communication(index) for index in range(COMMUNICATION_NAMES)]
    while len(names) < count:
        index = len(names)
        names.append(_FAMILIES[index % len(_FAMILIES)](index))
    return names
