"""Small programs as frames: a host that launches, one GPU that works in order, ranges, waits."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from nsightpy.analysis.iterations.steady import Iterations, find_iterations
from tests.support.frames import frame

LAUNCH_NS = 4_000
GEMM = "ampere_sgemm_128x64_tn"
NORM = "void at::native::vectorized_elementwise_kernel<4, at::native::rsqrt_kernel_cuda>"
MUL = "void at::native::elementwise_kernel<128, 2, MulFunctor<float>>"
EXP = "void at::native::vectorized_elementwise_kernel<4, at::native::exp_kernel_cuda>"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
SUM = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, sum_functor>>"
GATHER = "void at::native::vectorized_gather_kernel<16, long>"
GELU = "void at::native::vectorized_elementwise_kernel<4, GeluCUDAKernelImpl>"

# Words of one line, a loop (how often, and what), or anything that is done with a program.
Part = str | tuple[Any, ...] | Callable[["Program"], None]


class Script:
    """What does words of lines, loops (how often, and what), and whatever takes it."""

    number: int = 0

    def run(self, *parts: Any) -> Self:
        """Do all of that in turn; {n} in a line is how often the loop around it has run."""
        for part in parts:
            if isinstance(part, str):
                for word in part.format(n=self.number).split():
                    self.do(word)
            elif isinstance(part, tuple):
                for number in range(part[0]):
                    for inner in part[1:]:
                        self.number = number
                        self.run(inner)
            else:
                part(self)
        return self

    def do(self, word: str) -> None:
        """What one word says."""
        raise NotImplementedError


@dataclass
class Program(Script):
    """What one process does; times in ns.

    A line's words are names of kernels, with us behind a colon (20 if there are none), `!call` for
    a wait of the host, and `~us` for what it does else.
    """

    host: int = 1_000_000
    free: dict[int, int] = field(default_factory=lambda: {0: 0})
    kernels: list[tuple[int, int, int, str]] = field(default_factory=list)
    calls: list[tuple[int, int, int, int, str]] = field(default_factory=list)
    ranges: list[tuple[int, int, str, int]] = field(default_factory=list)
    thread: int = 1

    def do(self, word: str) -> None:
        if word.startswith("!"):
            end = max(self.host, *self.free.values()) + 2_000
            call = word[1:] or "cudaDeviceSynchronize"
            self.calls.append((self.host, end, 0, self.thread, call))
            self.host = end
        elif word.startswith("~"):
            self.host += 1_000 * int(word[1:])
        else:
            name, _, us = word.partition(":")
            self.launch(name, 1_000 * int(us or 20))

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
        kernels = frame("start_ns end_ns correlation_id name", self.kernels, pid=1, device=1)
        names = "start_ns end_ns correlation_id tid name"
        calls = frame(names, self.calls, pid=1, event_class=0)
        spans = [(*span, span[-1]) for span in self.ranges]
        ranges = frame("start_ns end_ns name tid end_tid", spans, pid=1, domain="", style="")
        return find_iterations(kernels, calls, ranges, calls, first_ns=self.kernels[0][0])


def kernel(name: str, us: float = 20) -> Part:
    """One launch of a kernel of any name."""
    return lambda program: program.launch(name, int(1_000 * us))


def named(name: str, *parts: Part) -> Part:
    """Parts in a range; {n} in its name is how often the loop around it has run."""

    def run(program: Program) -> None:
        with program.range(name.format(n=program.number)):
            program.run(*parts)

    return run


def layer(scale: float = 1.0, gemm: str = GEMM) -> Part:
    """One transformer layer without fused kernels."""
    lengths = (
        *((NORM, 5), (MUL, 5), (gemm, 60), (gemm, 60), (gemm, 60), (EXP, 9), (SUM, 4), (MUL, 5)),
        *((gemm, 60), (ADD, 5), (NORM, 5), (gemm, 90), (GELU, 8), (gemm, 90), (ADD, 5)),
    )
    return (1, *(kernel(name, length * scale) for name, length in lengths))


def forward(layers: int = 12, scale: float = 1.0, gemm: str = GEMM) -> Part:
    """A forward pass: embedding, layers, head."""
    head = "ampere_sgemm_128x128_tn"
    last = (kernel(NORM, 5), kernel(head, 150 * scale))
    return (1, kernel(GATHER, 10), (layers, layer(scale, gemm)), *last)


def backward(layers: int = 12, scale: float = 1.0, gemm: str = GEMM) -> Part:
    """A backward pass, the layers in reverse."""
    products = (kernel(gemm + "_nt", 60 * scale), kernel(gemm + "_nn", 60 * scale), kernel(SUM, 5))
    return (
        *(1, kernel("void at::native::log_softmax_backward", 9)),
        (layers, kernel("void at::native::sigmoid_backward", 8), (5, *products)),
        kernel("void at::native::embedding_backward_feature_kernel", 12),
    )


def optimizer() -> Part:
    return (4, kernel("void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>", 90))
