"""CUDA graphs: what each replay ran, and how long that took."""
