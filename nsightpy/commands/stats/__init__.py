"""stats: the summaries of nsys stats under their own names, with all their columns."""
