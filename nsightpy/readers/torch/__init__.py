"""PyTorch profiler traces (Kineto's JSON) as frames."""
