"""roofline: kernels against the machine's limits."""
