"""What is known of each GPU generation by its compute capability, where a report does not say.

Measured on V100, T4, A100, A40, H100, GH200 and GB200 counters; FP64 lanes of 8.9 and 12.x were
never measured and are not guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Capability: TypeAlias = "tuple[int, int]"

_FP32_LANES = {
    **dict.fromkeys([(7, 0), (7, 2), (7, 5), (8, 0)], 64),
    **dict.fromkeys([(8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (10, 3), (11, 0)], 128),
    **dict.fromkeys([(12, 0), (12, 1)], 128),
}
_FP64_LANES = {(7, 0): 32, (8, 0): 32, (9, 0): 64, (10, 0): 64, (7, 5): 2, (8, 6): 2}
# Integrated memory: no DRAM counters, and so no DRAM roofline.
_INTEGRATED = ((8, 7), (11, 0), (12, 1))
_VOLTA = ((7, 0), (7, 2))
VOLTA_TENSOR_OPS_PER_SM = 1024
VOLTA_OPS_PER_INSTRUCTION = 512


@dataclass(frozen=True, slots=True)
class Chip:
    """Facts of a generation; lanes are thread instructions per SM and cycle."""

    capability: Capability

    @property
    def fp32_lanes(self) -> int | None:
        return _FP32_LANES.get(self.capability)

    @property
    def fp64_lanes(self) -> int | None:
        return _FP64_LANES.get(self.capability)

    @property
    def has_dram_roofline(self) -> bool:
        return self.capability not in _INTEGRATED

    @property
    def is_volta(self) -> bool:
        """Whether a tensor instruction is 512 operations: there only."""
        return self.capability in _VOLTA

    @property
    def l1_writeback(self) -> str:
        """The counter of L1 read returns: what it counts changed with the generation."""
        if self.capability <= (7, 2):
            return "l1tex__lsu_writeback_active"
        suffix = "lg" if self.capability < (9, 0) else "lgds"
        return f"l1tex__lsu_writeback_active_mem_{suffix}"
