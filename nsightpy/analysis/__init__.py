"""Analyses: pure functions from frames to results; no files, no plots, no pandas."""
