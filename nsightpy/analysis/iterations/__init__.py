"""Iterations: found, cut to the steady state, accounted for."""
