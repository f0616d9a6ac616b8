"""select: which kernels are worth measuring with ncu, and the commands."""
