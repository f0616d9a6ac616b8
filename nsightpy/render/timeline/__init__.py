"""Timelines: figures, the offline page, traces for viewers."""
