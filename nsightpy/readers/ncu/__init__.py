"""Nsight Compute reports and CSV pages."""
