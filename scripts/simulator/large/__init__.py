"""A simulated training job, written as the SQLite export Nsight Systems would make of it."""
