"""collectives: NCCL operations by size and group, by node, and between pairs of ranks."""
