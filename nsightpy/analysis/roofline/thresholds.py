"""The named number of what is said of rooflines; classes have the thresholds of NVIDIA's rule."""

# Longest / shortest launch of a kernel from which on both are told: less is noise of the clock.
SPREAD = 1.05
