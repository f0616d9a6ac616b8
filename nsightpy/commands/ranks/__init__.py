"""ranks: every rank on one clock; kernels, pipeline stages and MPI calls that ranks wait in."""
