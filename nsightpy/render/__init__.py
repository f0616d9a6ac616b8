"""Renderers: results in, bytes out. They only write what a result already says."""
