"""Collectives: NCCL's kernels, calls, names and payloads."""
