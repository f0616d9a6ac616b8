"""Measuring whole processes side by side, and saying what came out."""
