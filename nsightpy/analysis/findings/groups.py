"""Groups of operations that share a trait: what evidence says of kernels and copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nsightpy.analysis.findings.thresholds import LEAST_TENSOR_SMS, ONE_OFF, VOLTA


@dataclass(frozen=True, slots=True)
class Place:
    """Where to look: start in the report's own time and length, in ns."""

    start_ns: int
    duration_ns: int


@dataclass(frozen=True, slots=True)
class Gpu:
    """What must be known of a GPU; 0 where the capture does not say. `ncu`: ncu measures it."""

    sm_count: int = 0
    compute_major: int = 0
    name: str = ""
    ncu: bool = True

    @property
    def has_tensor_cores(self) -> bool:
        """Compute capability 7.0 on, but for the small GPUs of Turing, which have none."""
        few = 0 < self.sm_count < LEAST_TENSOR_SMS
        return self.compute_major >= VOLTA and not (self.compute_major == VOLTA and few)


@dataclass(frozen=True, slots=True)
class Group:
    """Operations of a device that share a trait, inside its window.

    `busy_ns` is their united time, `alone_ns` the part with nothing beside that would hide or make
    up for them (kernels beside copies; larger kernels beside small grids), `work_ns` the sum of
    their durations, `edge_ns` what of alone_ns is before the kernels' work began or after it ended.
    `name` is that with the most work, named_ns; `detail` the blocks or threads of the `worst` one,
    of copies how many are of pageable memory; `by_name` the work of the names that matter.
    """

    busy_ns: int = 0
    alone_ns: int = 0
    work_ns: int = 0
    edge_ns: int = 0
    count: int = 0
    bytes: int = 0
    name: str = ""
    named_ns: int = 0
    detail: int = 0
    worst: Place | None = None
    by_name: Mapping[str, int] = field(default_factory=dict)

    @property
    def once(self) -> bool:
        """Whether nearly all of it is before or after the kernels' work: that of one-offs."""
        return 0 < ONE_OFF * self.alone_ns <= self.edge_ns

    @property
    def mean_bytes(self) -> float:
        return self.bytes / max(self.count, 1)

    @property
    def rate(self) -> float:
        """Bytes per ns (decimal GB/s) while busy."""
        return self.bytes / self.busy_ns if self.busy_ns else 0.0


NONE = Group()
# Which operations each group holds. Large copies are those of 16 KiB or more.
GROUPS: Mapping[str, str] = {
    "kernels": "compute kernels",
    "top": "the kernels of the name with the most work",
    "family": "the kernels made of the lambdas of one function, of that with the most work",
    "short": "kernels under 10 us",
    "small-grid": "kernels with too few blocks or threads for the multiprocessors",
    "tiny-blocks": "kernels with blocks of at most a warp",
    "fp32-gemm": "matrix products in FP32 without tensor cores, on a GPU that has some",
    "elementwise": "elementwise and reduction kernels that nothing has fused",
    "attention": "softmax kernels with a matrix product shortly before and after each",
    "unaligned": "matrix products on tensor cores whose operands are not aligned to 16 bytes",
    "collectives": "communication kernels",
    "exposed": "time of communication with nothing beside it",
    "slowed": "compute kernels beside communication that take longer than alone; work_ns is that",
    "graphs": "CUDA graphs traced as a whole",
    "h2d": "large copies from host to device",
    "d2h": "large copies from device to host",
    "d2d": "large copies and memory sets within or between devices",
    "small": "copies under 16 KiB",
    "unified": "pages of unified memory that migrate",
    "pageable": "large copies from or to pageable memory",
}


@dataclass(frozen=True, slots=True)
class Latency:
    """A kernel that takes `many_ns` with `many` blocks and no less, few_ns, with `few`."""

    few: int
    few_ns: int
    many: int
    many_ns: int
