"""Rooflines and speed-of-light bars."""
