"""NVTX ranges: how they nest, what they launched, what is theirs."""
