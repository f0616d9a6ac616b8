"""nsightpy: where the GPU time goes, from Nsight Systems and Nsight Compute reports."""

from __future__ import annotations

__version__ = "0.1.0"
