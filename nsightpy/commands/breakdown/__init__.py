"""breakdown: how the time of devices divides, over a window and over time."""
