"""Rooflines and speed of light from the metrics of Nsight Compute."""
