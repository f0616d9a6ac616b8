"""Copies by the kind of host memory that they touch."""

from __future__ import annotations

import numpy as np

from nsightpy.frames import Frame, Labels

PAGEABLE, PINNED, MANAGED = "pageable", "pinned", "managed"
UNIFIED = "[CUDA memcpy Unified "


def host_memory(operations: Frame) -> Labels:
    """The kind of host memory that each operation touches: pageable, pinned, managed or none."""
    source, target = operations.labels("source_memory"), operations.labels("target_memory")
    kinds = (PAGEABLE, PINNED, MANAGED)
    codes = np.zeros(operations.rows, dtype=np.int32)
    for code, names in ((3, ("Managed", "Managed Static")), (2, ("Pinned",)), (1, ("Pageable",))):
        codes[source.equals(names) | target.equals(names)] = code
    return Labels(codes, ("", *kinds))
