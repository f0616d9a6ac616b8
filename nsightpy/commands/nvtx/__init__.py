"""nvtx: code ranges, and the metrics sampled while what they launched was running."""
