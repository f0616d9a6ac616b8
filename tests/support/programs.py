"""Small programs as frames: a host that launches, one GPU that works in order, ranges, waits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from nsightpy.analysis.iterations.steady import Iterations, find_iterations
from nsightpy.frames import Frame, Labels

LAUNCH_NS = 4_000
GEMM = "ampere_sgemm_128x64_tn"
NORM = "void at::native::vectorized_elementwise_kernel<4, at::native::rsqrt_kernel_cuda>"
MUL = "void at::native::elementwise_kernel<128, 2, MulFunctor<float>>"
EXP = "void at::native::vectorized_elementwise_kernel<4, at::native::exp_kernel_cuda>"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
SUM = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, sum_functor>>"
GATHER = "void at::native::vectorized_gather_kernel<16, long>"
GELU = "void at::native::vectorized_elementwise_kernel<4, GeluCUDAKernelImpl>"


@dataclass
class Program:
    """What one process does; times in ns."""

    host: int = 1_000_000
    free: dict[int, int] = field(default_factory=lambda: {0: 0})
    kernels: list[tuple[int, int, int, str]] = field(default_factory=list)
    calls: list[tuple[int, int, int, int, str]] = field(default_factory=list)
    ranges: list[tuple[int, int, str, int]] = field(default_factory=list)
    thread: int = 1

    def launch(self, name: str, length: int = 20_000, repeat: int = 1, stream: int = 0) -> None:
        """Kernels of that name, queued behind what the stream has."""
        for _ in range(repeat):
            self.replay([(name, length)], "cudaLaunchKernel", stream)

    def replay(
        self, graph: Iterable[tuple[str, int]], call: str = "cudaGraphLaunch", stream: int = 0
    ) -> None:
        """Kernels, names and lengths, that one call launches."""
        number = len(self.calls) + 1
        self.calls.append((self.host, self.host + 3_000, number, self.thread, call))
        end = max(self.host + 5_000, self.free.get(stream, 0))
        for name, length in graph:
            self.kernels.append((end, end + length, number, name))
            end += length
        self.free[stream] = end
        self.host += LAUNCH_NS

    def wait(self, call: str = "cudaDeviceSynchronize") -> None:
        """The host waits until the GPU is done."""
        end = max(self.host, *self.free.values()) + 2_000
        self.calls.append((self.host, end, 0, self.thread, call))
        self.host = end

    def think(self, length: int) -> None:
        """The host does something else."""
        self.host += length

    @contextmanager
    def range(self, name: str) -> Iterator[None]:
        start = self.host
        self.host += 500
        yield
        self.host += 500
        self.ranges.append((start, self.host, name, self.thread))

    def found(self) -> Iterations:
        """The iterations that are found in it."""
        self.kernels.sort()
        kernels, calls = np.asarray([k[:3] for k in self.kernels]), self.calls
        ones = np.ones(len(kernels), dtype=np.int64)
        kernel_frame = Frame(
            {
                "start_ns": kernels[:, 0],
                "end_ns": kernels[:, 1],
                "pid": ones,
                "correlation_id": kernels[:, 2],
                "name": Labels.of(k[3] for k in self.kernels),
            }
        )
        numbers = np.asarray([c[:4] for c in calls], dtype=np.int64)
        call_frame = Frame(
            {
                "start_ns": numbers[:, 0],
                "end_ns": numbers[:, 1],
                "pid": np.ones(len(calls), dtype=np.int64),
                "tid": numbers[:, 3],
                "correlation_id": numbers[:, 2],
                "event_class": np.zeros(len(calls), dtype=np.int64),
                "name": Labels.of(c[4] for c in calls),
            }
        )
        spans = np.asarray([(r[0], r[1], r[3]) for r in self.ranges], dtype=np.int64).reshape(-1, 3)
        some = len(spans)
        range_frame = Frame(
            {
                "start_ns": spans[:, 0],
                "end_ns": spans[:, 1],
                "pid": np.ones(some, dtype=np.int64),
                "tid": spans[:, 2],
                "end_tid": spans[:, 2],
                "name": Labels.of(r[2] for r in self.ranges),
                "domain": Labels.constant("", some),
                "style": Labels.constant("PushPop", some),
            }
        )
        none = kernel_frame.take(np.zeros(len(kernels), dtype=np.bool_))
        return find_iterations(kernel_frame, none, call_frame, range_frame, call_frame)


def layer(program: Program, scale: float = 1.0, gemm: str = GEMM) -> None:
    """One transformer layer without fused kernels."""
    for name, length in (
        *((NORM, 5_000), (MUL, 5_000), (gemm, 60_000), (gemm, 60_000), (gemm, 60_000)),
        *((EXP, 9_000), (SUM, 4_000), (MUL, 5_000), (gemm, 60_000), (ADD, 5_000)),
        *((NORM, 5_000), (gemm, 90_000), (GELU, 8_000), (gemm, 90_000), (ADD, 5_000)),
    ):
        program.launch(name, int(length * scale))


def forward(program: Program, layers: int = 12, scale: float = 1.0, gemm: str = GEMM) -> None:
    """A forward pass: embedding, layers, head."""
    program.launch(GATHER, 10_000)
    for _ in range(layers):
        layer(program, scale, gemm)
    program.launch(NORM, 5_000)
    program.launch("ampere_sgemm_128x128_tn", int(150_000 * scale))


def backward(program: Program, layers: int = 12, scale: float = 1.0, gemm: str = GEMM) -> None:
    """A backward pass, the layers in reverse."""
    program.launch("void at::native::log_softmax_backward", 9_000)
    for _ in range(layers):
        program.launch("void at::native::sigmoid_backward", 8_000)
        for _ in range(5):
            program.launch(gemm + "_nt", int(60_000 * scale))
            program.launch(gemm + "_nn", int(60_000 * scale))
            program.launch(SUM, 5_000)
    program.launch("void at::native::embedding_backward_feature_kernel", 12_000)


def optimizer(program: Program) -> None:
    for _ in range(4):
        program.launch("void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>", 90_000)
