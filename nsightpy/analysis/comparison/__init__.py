"""Runs against runs: statistics, verdicts, attribution, matching. Pure functions."""
